#pragma once
// A pencil A·v = λ·M·v, and a factor of A − σ·M below its eigenvalues.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "strata/sparse_factor.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

inline constexpr const char* kEigsWhere = "eigs";

/// (A + Aᵀ)/2: elements that mirror each other may differ by rounding. Throws Error{numerical,
/// input} naming what is not symmetric, or not finite, in a matrix of this name.
[[nodiscard]] SparseMatrix symmetric_part(const SparseMatrix& a, const char* name);

/// The pencil, and a factor of it at some σ.
class ShiftedPencil {
 public:
  ShiftedPencil(SparseMatrix a, std::optional<SparseMatrix> mass,
                const SparseCholeskyOptions& options)
      : a_(std::move(a)), mass_(std::move(mass)), options_(options) {}

  [[nodiscard]] const SparseMatrix& a() const noexcept { return a_; }
  [[nodiscard]] const SparseMatrix* mass() const noexcept { return mass_ ? &*mass_ : nullptr; }
  [[nodiscard]] const SparseCholesky& factor() const noexcept { return *factor_; }
  [[nodiscard]] double sigma() const noexcept { return sigma_; }
  [[nodiscard]] std::int64_t factorizations() const noexcept { return factorizations_; }
  [[nodiscard]] double lost() const { return factor_errors(*factor_, factored()).inverse; }

  /// Whether A − σ·M was factored, and is not singular to rounding.
  bool factor_at(double sigma);
  /// The largest a_ii/m_ii in size: of what order shifts are.
  [[nodiscard]] double scale() const;

 private:
  [[nodiscard]] const SparseMatrix& factored() const { return mass_ ? matrix_ : a_; }

  SparseMatrix a_;
  std::optional<SparseMatrix> mass_;
  SparseCholeskyOptions options_;
  SparseMatrix matrix_;  // A − σ·M, where there is an M
  double sigma_ = 0;
  std::unique_ptr<SparseCholesky> factor_;
  std::int64_t factorizations_ = 0;
};

/// σ below the spectrum: as given, 0, or steps of a hundred downwards from a small share of A.
/// Throws Error{numerical} where a σ that is given is not below, or none is found.
void find_sigma(ShiftedPencil& pencil, const std::optional<double>& given);

}  // namespace strata
