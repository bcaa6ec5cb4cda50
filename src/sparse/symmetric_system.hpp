#pragma once
// SymmetricSystem: products with A + shift·I and residuals, in double-double.
//
// Contract: A is given as analyze() takes it, and outlives this; nothing is copied unless A is
// multiplied by a power of two. Where both triangles are given, and elements that mirror each other
// differ by rounding, products are those of A as it is given, though a factor is that of the
// triangle below the diagonal. Pure host code; const calls may come from several threads.

#include <cstdint>
#include <vector>

#include "strata/matrix_view.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

class SymmetricSystem {
 public:
  /// The system of 2^(−exponent)·(A + shift·I).
  SymmetricSystem(const SparseMatrix& a, double shift, int exponent = 0);
  SymmetricSystem(const SymmetricSystem&) = delete;
  SymmetricSystem& operator=(const SymmetricSystem&) = delete;
  ~SymmetricSystem() = default;

  [[nodiscard]] std::int64_t n() const noexcept { return a_->rows; }
  /// 2^(−exponent)·A, without the shift.
  [[nodiscard]] const SparseMatrix& matrix() const noexcept { return *a_; }
  /// ‖·‖₁ = ‖·‖∞.
  [[nodiscard]] double norm() const;
  [[nodiscard]] const std::vector<double>& diagonal() const noexcept { return diagonal_; }
  /// Square roots of the diagonal: what a symmetric scaling to a unit diagonal divides by.
  [[nodiscard]] std::vector<double> roots() const;
  /// The norm of the matrix so scaled.
  [[nodiscard]] double scaled_norm() const;

  /// What elements lost that became subnormal numbers by the power of two; of all others nothing.
  struct Loss {
    double relative = 0;     ///< the most that an element did, beside itself
    double scaled_norm = 0;  ///< ‖·‖∞ of all that was lost, divided by roots of the diagonal
  };
  [[nodiscard]] const Loss& loss() const noexcept { return loss_; }

  /// ‖·‖ of what elements above the diagonal differ by from those below it, divided by roots of the
  /// diagonal: the larger of the norms of rows and columns.
  [[nodiscard]] double asymmetry() const;

  /// r ← b − (A + shift·I)·x, summed in double-double, and terms ← |A + shift·I|·|x| + |b|.
  void residual(const double* b, const double* x, double* r, double* terms) const;
  /// Y ← (A + shift·I)·V, summed in double-double.
  void multiply(MatrixView<const double> v, MatrixView<double> y) const;

 private:
  /// By how much an element above the diagonal is more than the one that mirrors it.
  struct Difference {
    std::int32_t row = 0;
    std::int32_t col = 0;
    double value = 0;
  };
  void find_differences();
  void find_loss(const SparseMatrix& a, double shift, int exponent);

  SparseMatrix scaled_;  // empty unless there is an exponent
  const SparseMatrix* a_;
  double shift_;
  std::vector<double> diagonal_;         // of A + shift·I, rounded
  std::vector<Difference> differences_;  // of elements that are not equal
  Loss loss_;
};

}  // namespace strata
