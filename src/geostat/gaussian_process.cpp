// Likelihood of a Gaussian process by Cholesky: Σ = L·Lᵀ, log|Σ| = 2·Σ log L_ii and, with
// W = L⁻¹[X | z], the generalized least squares estimate of the mean is the ordinary one of W's
// last column on its others; its residual square is the quadratic form (Rasmussen and Williams,
// "Gaussian Processes for Machine Learning", 2006, algorithm 2.1 and section 2.7).

#include "geostat/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "geostat/checks.hpp"

namespace strata {

std::int64_t coordinate_count(const Points& points) {
  return 2 + (points.z.empty() ? 0 : 1) + (points.t.empty() ? 0 : 1);
}

std::vector<double> coordinate_matrix(const Points& points) {
  std::vector<double> out(points.x);
  for (const std::vector<double>* coordinate : {&points.y, &points.z, &points.t})
    out.insert(out.end(), coordinate->begin(), coordinate->end());
  return out;
}

MatrixView<const double> view_of(const std::vector<double>& coordinates, std::int64_t n) {
  return {coordinates.data(), n, std::ssize(coordinates) / n, n};
}

CovarianceSolver covariance_solver(const Points& points, const Options& options) {
  const std::vector<double> coordinates = coordinate_matrix(points);
  return CovarianceSolver(view_of(coordinates, points.size()), options);
}

CovarianceParameters covariance_of(const MaternParameters& p) {
  return {p.variance, p.range, p.smoothness, p.nugget, true, p.separation};
}

void factor_or_fail(CovarianceSolver& solver, const MaternParameters& parameters,
                    const char* where) {
  const FactorInfo& info = solver.factor(covariance_of(parameters));
  require(info.ok, ErrorKind::numerical, where,
          "the covariance of the model is not positive definite: pivot {} (counting from 0) is {}",
          info.first_bad_pivot, info.bad_pivot);
}

GaussianProcess::GaussianProcess(const Points& points, std::span<const double> values, Mean mean,
                                 const Options& options)
    : n_(points.size()),
      mean_(mean),
      basis_(mean, points),
      shift_(mean == Mean::zero ? 0 : sample_mean(values)),
      data_(static_cast<std::size_t>(n_ * (basis_.columns() + 1))),
      solver_(covariance_solver(points, options)) {
  const MatrixView<double> data{data_.data(), n_, basis_.columns() + 1, n_};
  basis_.fill(points, data);
  std::transform(values.begin(), values.end(), data.column(basis_.columns()),
                 [this](double z) { return z - shift_; });
}

GaussianProcess::Evaluation GaussianProcess::evaluate(const MaternParameters& parameters,
                                                      const char* where) {
  Evaluation out;
  out.factor = solver_.factor(covariance_of(parameters));
  if (mean_ == Mean::sample) out.mean_coefficients = {shift_};
  if (!out.factor.ok) {
    out.quadratic_form = std::numeric_limits<double>::quiet_NaN();
    return out;
  }
  work_ = data_;
  const MatrixView<double> work{work_.data(), n_, basis_.columns() + 1, n_};
  solver_.solve_lower(work);
  Regression regression = regress(work, where);
  out.quadratic_form = regression.residual_square;
  if (basis_.columns() > 0) {
    regression.coefficients[0] += shift_;
    out.mean_coefficients = basis_.in_original_coordinates(regression.coefficients);
  }
  return out;
}

double gaussian_log_likelihood(std::int64_t n, double log_determinant, double quadratic_form) {
  constexpr double log_two_pi = 1.8378770664093454836;
  return -0.5 * (static_cast<double>(n) * log_two_pi + log_determinant + quadratic_form);
}

Likelihood log_likelihood(const Points& points, std::span<const double> values,
                          const MaternParameters& parameters, Mean mean, const Options& options) {
  const char* where = "log_likelihood";
  check_points(points, "points", where);
  check_values(points, values, where);
  check_parameters(parameters, where);
  check_separation(parameters.separation, points, where);
  if (parameters.nugget == 0) check_distinct(points, parameters.separation.distance, where);
  GaussianProcess process(points, values, mean, options);
  const auto evaluation = process.evaluate(parameters, where);
  Likelihood out;
  out.factor = evaluation.factor;
  out.quadratic_form = evaluation.quadratic_form;
  out.log_likelihood =
      out.factor.ok
          ? gaussian_log_likelihood(process.n(), out.factor.log_determinant, out.quadratic_form)
          : std::numeric_limits<double>::quiet_NaN();
  out.mean_coefficients = evaluation.mean_coefficients;
  out.run = process.report();
  return out;
}

}  // namespace strata
