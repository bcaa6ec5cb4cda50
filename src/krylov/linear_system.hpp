#pragma once
// A sparse system as it is solved: scaled, preconditioned, in an order of its own.
//
// Contract: the system R·A·C·u = R·b, x = C·u, R and C diagonal, with rows and columns in `order`.
// Checks what the caller gave: Error{misuse} for shapes, Error{input} with the place of an entry
// that is not finite, or of a diagonal that is zero.

#include <cstdint>
#include <span>
#include <vector>

#include "strata/sparse_matrix.hpp"

namespace strata {

struct SystemOptions {
  bool balance = false;
  bool jacobi = false;
  bool reorder = false;
  const char* what = "gmres";
};

class LinearSystem {
 public:
  LinearSystem(const SparseMatrix& a, const SystemOptions& options);

  /// As it is solved.
  [[nodiscard]] const SparseMatrix& matrix() const noexcept { return matrix_; }
  [[nodiscard]] std::vector<double> rhs(std::span<const double> b) const;
  [[nodiscard]] std::vector<double> unknowns(std::span<const double> x) const;
  void solution(std::span<const double> u, std::span<double> x) const;
  /// The largest sum of the magnitudes in a row.
  [[nodiscard]] double norm() const noexcept { return norm_; }

 private:
  SparseMatrix matrix_;
  std::vector<double> row_, col_;    ///< scales, in the order of the caller; empty: 1
  std::vector<std::int32_t> order_;  ///< empty: as given
  double norm_ = 0;
};

/// Throws Error{input} naming the first element of a vector that is not finite.
void require_finite(std::span<const double> values, const char* what, const char* name);

/// ‖b − A·x‖₂.
[[nodiscard]] double residual_norm(const SparseMatrix& a, std::span<const double> b,
                                   std::span<const double> x);
[[nodiscard]] double norm_of(std::span<const double> x);

}  // namespace strata
