#include "geostat/refined_solver.hpp"

#include <algorithm>
#include <cmath>

#include "cholesky/device_probes.hpp"

namespace strata {

bool has_few_digits(const CovarianceSolver& solver) {
  const auto& mixed = solver.report().mixed;
  return mixed && mixed->accuracy > 0;
}

BlockOperator RefinedSolver::product() {
  return [this](MatrixView<const double> v, MatrixView<double> y) { (void)solver_.multiply(v, y); };
}

double RefinedSolver::norm() {
  if (norm_ == 0) norm_ = solver_.known_norm();
  // No element of a covariance of Matérn's or Gneiting's class is negative.
  if (norm_ == 0) norm_ = nonnegative_norm(product(), solver_.n());
  return norm_;
}

Refinement RefinedSolver::solve(MatrixView<const double> b, MatrixView<double> x) {
  RefinementOptions options;
  options.norm = norm();
  for (std::int64_t j = 0; j < x.cols; ++j) std::fill_n(x.column(j), x.rows, 0.0);
  return refine(
      product(), [this](MatrixView<double> v) { (void)solver_.solve(v); }, b, x, options);
}

std::vector<QuadraticForm> RefinedSolver::quadratic_forms(MatrixView<const double> b,
                                                          MatrixView<const double> x,
                                                          MatrixView<const double> residuals,
                                                          const Refinement& refinement) {
  // Ritz values lie within the spectrum; G is near the identity.
  const double lambda = std::min(1.0, refinement.ritz_min > 0 ? refinement.ritz_min : 1.0) / 2;
  return strata::quadratic_forms(
      b, x, residuals, [this](MatrixView<double> v) { (void)solver_.solve(v); }, lambda, norm());
}

LogDeterminantCorrection RefinedSolver::log_determinant(const Probing& probing) {
  ProbeOptions options;
  options.probes = probing.probes;
  options.seed = probing.seed;
  return estimate_log_determinant(*solver_.probes(options), options);
}

double relative_error_of_squares(const Refinement& refinement) {
  if (!(refinement.ritz_min > 0)) return 0;  // it took no step
  return std::max(std::abs(1 / refinement.ritz_min - 1), std::abs(1 - 1 / refinement.ritz_max));
}

}  // namespace strata
