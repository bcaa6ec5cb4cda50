#pragma once
// RefinedSolver: what a factor in several precisions says to the accuracy of FP64.
//
// Contract: stands beside a CovarianceSolver, whose last factorization succeeded. Σ is generated in
// FP64 for every product, so what comes out is of Σ itself. Host memory for some blocks of as many
// columns as are solved for. Not thread-safe.

#include <vector>

#include "cholesky/covariance_solver.hpp"
#include "cholesky/log_determinant.hpp"
#include "cholesky/refinement.hpp"

namespace strata {

/// Whether the last factorization left fewer digits than FP64.
[[nodiscard]] bool has_few_digits(const CovarianceSolver& solver);

class RefinedSolver {
 public:
  explicit RefinedSolver(CovarianceSolver& solver) : solver_(solver) {}

  /// X ← Σ⁻¹·B by conjugate gradients, to attainable_backward_error(n).
  [[nodiscard]] Refinement solve(MatrixView<const double> b, MatrixView<double> x);
  /// bᵀΣ⁻¹b of each column from x and residuals that solve() gave, or combinations of them.
  [[nodiscard]] std::vector<QuadraticForm> quadratic_forms(MatrixView<const double> b,
                                                           MatrixView<const double> x,
                                                           MatrixView<const double> residuals,
                                                           const Refinement& refinement);
  [[nodiscard]] LogDeterminantCorrection log_determinant(const Probing& probing);

 private:
  [[nodiscard]] BlockOperator product();
  double norm();

  CovarianceSolver& solver_;
  double norm_ = 0;  ///< ‖Σ‖∞; 0: not known yet
};

/// ‖I − G⁻¹‖₂ with G = L̃⁻¹ΣL̃⁻ᵀ, by the Ritz values that conjugate gradients saw: how far
/// |wᵀw − cᵀΣ⁻¹c|, w = L̃⁻¹c, is from 0 relative to wᵀw. An estimate from below.
[[nodiscard]] double relative_error_of_squares(const Refinement& refinement);

}  // namespace strata
