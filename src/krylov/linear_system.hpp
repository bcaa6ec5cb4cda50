#pragma once
// A sparse system as it is solved: scaled, preconditioned, in an order of its own.
//
// Contract: the system γ·R·A·C·u = R·b, x = γ·C·u, R and C diagonal, with rows and columns in
// `order`; γ = 2^exponent() is 1 unless squares of what A has might leave the range of doubles.
// With a preconditioner that is not diagonal it is R·A·M⁻¹·R⁻¹·u = R·b, x = M⁻¹·R⁻¹·u: matrix() is
// γ·R·A·C as before, and precondition() multiplies by C⁻¹·M⁻¹·R⁻¹/γ. Checks what the caller gave:
// Error{misuse} for shapes, Error{input} with the place of an entry that is not finite, or of a
// diagonal or a diagonal block that is singular.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "strata/krylov.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

struct SystemOptions {
  bool balance = false;
  RightPreconditioner preconditioner = {};
  bool reorder = false;
  const char* what = "gmres";
};

class LinearSystem {
 public:
  /// `a` is as check_matrix() wants it. The crew outlives it.
  LinearSystem(const SparseMatrix& a, const SystemOptions& options, WorkCrew& crew);

  /// As it is solved.
  [[nodiscard]] const SparseMatrix& matrix() const noexcept { return matrix_; }
  [[nodiscard]] std::vector<double> rhs(std::span<const double> b) const;
  /// The diagonal of R, in the order of the caller; empty: 1.
  [[nodiscard]] std::span<const double> row_scale() const noexcept { return row_; }
  /// u with x = 2^−shift·C·u, and x = 2^shift·C·u.
  [[nodiscard]] std::vector<double> unknowns(std::span<const double> x, int shift = 0) const;
  void solution(std::span<const double> u, std::span<double> x, int shift = 0) const;
  [[nodiscard]] int exponent() const noexcept { return exponent_; }

  /// Whether u is multiplied by more than a diagonal before matrix() is.
  [[nodiscard]] bool preconditioned() const noexcept { return inverse_ || apply_; }
  /// C⁻¹·M⁻¹·R⁻¹/γ where it is a matrix, else null.
  [[nodiscard]] const SparseMatrix* inverse() const noexcept {
    return inverse_ ? &*inverse_ : nullptr;
  }
  /// y ← C⁻¹·M⁻¹·R⁻¹·u/γ on the host.
  void precondition(std::span<const double> u, std::span<double> y) const;

  /// Approximate norm of what u is multiplied by: the largest row sum of magnitudes of matrix(),
  /// or, with a preconditioner, the largest element of the product with a vector of random signs.
  [[nodiscard]] double norm() const noexcept { return norm_; }

 private:
  void scale_matrix(const SystemOptions& options);
  void reorder();
  void call(std::span<const double> u, std::span<double> y) const;
  void measure();

  SparseMatrix matrix_;
  std::vector<double> row_, col_;    ///< scales, in the order of the caller; empty: 1
  std::vector<std::int32_t> order_;  ///< empty: as given
  std::optional<SparseMatrix> inverse_;
  std::function<void(std::span<const double>, std::span<double>)> apply_;
  const char* what_;
  WorkCrew& crew_;
  int exponent_ = 0;
  double norm_ = 0;
};

/// Throws Error{misuse} for a matrix that is not well formed, not square, or empty, Error{input}
/// for one with an element that is not finite.
void check_matrix(const SparseMatrix& a, const char* what, WorkCrew& crew);

/// The longest row over the shortest, by their largest elements; rows of zeros are left out.
[[nodiscard]] double rows_apart(const SparseMatrix& a, WorkCrew& crew);

/// Throws Error{input} naming the first element of a vector that is not finite.
void require_finite(std::span<const double> values, const char* what, const char* name);

/// The exponent of the power of two by which the largest magnitude comes between 1 and 2, where it
/// is so far from 1 that squares might overflow or underflow; else 0.
[[nodiscard]] int scaling_exponent(std::span<const double> values, WorkCrew& crew);
[[nodiscard]] double norm_of(std::span<const double> x);

}  // namespace strata
