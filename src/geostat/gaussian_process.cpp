// Likelihood of a Gaussian process by Cholesky: Σ = L·Lᵀ, log|Σ| = 2·Σ log L_ii and, with
// W = L⁻¹[X | z], the generalized least squares estimate of the mean is the ordinary one of W's
// last column on its others; its residual square is the quadratic form (Rasmussen and Williams,
// "Gaussian Processes for Machine Learning", 2006, algorithm 2.1 and section 2.7). Where L has few
// digits the same comes from refined solves, and the log-determinant is corrected by what probes
// say of it.

#include "geostat/gaussian_process.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "geostat/checks.hpp"
#include "geostat/likelihood_rounding.hpp"
#include "geostat/refined_solver.hpp"
#include "geostat/units.hpp"

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

CovarianceSolver covariance_solver(const Points& points, const CovarianceOptions& options,
                                   std::shared_ptr<const Scout> scout) {
  const std::vector<double> coordinates = coordinate_matrix(points);
  return CovarianceSolver(view_of(coordinates, points.size()), options, std::move(scout));
}

CovarianceSolver covariance_solver(const OrderedPoints& ordered, const CovarianceOptions& options) {
  return covariance_solver(ordered.points(), ordered.options_of(options), ordered.scout());
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
                                 Distance distance, const CovarianceOptions& options,
                                 const MaternParameters* parameters)
    : points_(points, options, parameters),
      probing_(options.probing),
      n_(points.size()),
      mean_(mean),
      basis_(mean, points_.points(), distance),
      shift_(mean == Mean::zero ? 0 : sample_mean(values)),
      data_(static_cast<std::size_t>(n_ * (basis_.columns() + 1))),
      solver_(covariance_solver(points_, options)) {
  require(probing_.probes == 0 || probing_.probes >= 2, ErrorKind::misuse, "geostat",
          "probes is {}, but must be 0 or at least 2", probing_.probes);
  const MatrixView<double> data{data_.data(), n_, basis_.columns() + 1, n_};
  basis_.fill(points_.points(), data);
  const std::vector<double> ordered = points_.ordered(values);
  std::transform(ordered.begin(), ordered.end(), data.column(basis_.columns()),
                 [this](double z) { return z - shift_; });
}

GaussianProcess::Evaluation GaussianProcess::evaluate(const MaternParameters& parameters,
                                                      const char* where) {
  Evaluation out;
  out.factor = solver_.factor(covariance_of(parameters));
  if (mean_ == Mean::sample) out.mean_coefficients = {shift_};
  if (!out.factor.ok) {
    out.quadratic_form = std::numeric_limits<double>::quiet_NaN();
  } else if (has_few_digits(solver_)) {
    evaluate_refined(out, where);
  } else {
    evaluate_by_factor(out, where);
  }
  return out;
}

void GaussianProcess::evaluate_by_factor(Evaluation& out, const char* where) {
  work_ = data_;
  const MatrixView<double> work{work_.data(), n_, basis_.columns() + 1, n_};
  solver_.solve_lower(work);
  Regression regression = regress(work, where);
  out.quadratic_form = regression.residual_square;
  coefficients_ = regression.coefficients;
  if (basis_.columns() == 0) return;
  regression.coefficients[0] += shift_;
  out.mean_coefficients = basis_.in_original_units(regression.coefficients);
}

/// With U = Σ⁻¹[X | z] by refined solves: Σ⁻¹r of the residual r = z − Xβ̂ and what its solve left
/// over are combinations of their columns, and so its quadratic form is as accurate as theirs.
void GaussianProcess::evaluate_refined(Evaluation& out, const char* where) {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t p = basis_.columns();
  const MatrixView<const double> data{data_.data(), n_, p + 1, n_};
  work_.resize(data_.size());
  const MatrixView<double> u{work_.data(), n_, p + 1, n_};
  RefinedSolver refined(solver_);
  Refinement refinement = refined.solve(data, u);
  Regression regression = regress_by_solutions(data, u, where);
  std::vector<double> residual(data.column(p), data.column(p) + n_);
  for (std::int64_t j = 0; j < p; ++j) {
    const double factor = -regression.coefficients[static_cast<std::size_t>(j)];
    add_scaled(n_, factor, data.column(j), residual.data());
    add_scaled(n_, factor, refinement.residuals.column(j), refinement.residuals.column(p));
  }
  const MatrixView<const double> left{refinement.residuals.column(p), n_, 1, n_};
  const QuadraticForm form = refined.quadratic_forms({residual.data(), n_, 1, n_},
                                                     {u.column(p), n_, 1, n_}, left, refinement)[0];
  out.quadratic_form = form.value;
  coefficients_ = regression.coefficients;
  if (p > 0) {
    regression.coefficients[0] += shift_;
    out.mean_coefficients = basis_.in_original_units(regression.coefficients);
  }
  LikelihoodCertificate& certificate = out.certificate.emplace();
  certificate.quadratic_form_remainder = form.remainder;
  certificate.backward_error = refinement.backward_error;
  certificate.refinement_steps = refinement.steps;
  estimate_log_determinant(out);
  certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void GaussianProcess::estimate_log_determinant(Evaluation& out) {
  LikelihoodCertificate& certificate = *out.certificate;
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  certificate.log_determinant_difference = unknown;
  certificate.log_determinant_remainder = unknown;
  certificate.divergence = unknown;
  certificate.divergence_error = unknown;
  if (probing_.probes == 0) return;
  const LogDeterminantCorrection found = RefinedSolver(solver_).log_determinant(probing_);
  certificate.probes = found.probes;
  certificate.lanczos_steps = found.steps;
  if (!std::isfinite(found.correction)) return;  // then nothing is known
  certificate.log_determinant_difference = found.correction;
  certificate.corrected = std::abs(found.correction) >= 2 * found.statistical_bound_applied();
  certificate.log_determinant_remainder = certificate.corrected
                                              ? found.statistical_bound_applied()
                                              : found.statistical_bound_unapplied();
  certificate.divergence = found.divergence;
  certificate.divergence_error = found.divergence_standard_error;
  if (certificate.corrected) out.factor.log_determinant += found.correction;
}

LikelihoodError GaussianProcess::rounding(const MaternParameters& parameters,
                                          const Evaluation& evaluation) {
  const std::int64_t p = basis_.columns();
  const MatrixView<const double> data{data_.data(), n_, p + 1, n_};
  DenseBlock solutions(n_, kInverseProbes + 1);
  const MatrixView<double> probes = solutions.view().block(0, 0, n_, kInverseProbes);
  fill_with_signs(probes);
  const DenseBlock signs = solutions;
  // The residual, and the squares of what it is made of.
  double* residual = solutions.column(kInverseProbes);
  std::copy_n(data.column(p), n_, residual);
  std::vector<double> squares(static_cast<std::size_t>(n_));
  const auto add_square = [&](std::int64_t j, double factor) {
    for (std::int64_t i = 0; i < n_; ++i) {
      const double term = factor * data(i, j);
      squares[static_cast<std::size_t>(i)] += term * term;
    }
  };
  add_square(p, 1);
  for (std::int64_t j = 0; j < p; ++j) {
    const double coefficient = coefficients_[static_cast<std::size_t>(j)];
    add_scaled(n_, -coefficient, data.column(j), residual);
    add_square(j, basis_.roundings() * coefficient);
  }
  (void)solver_.solve(solutions.view());
  const std::vector<double> coordinates = coordinate_matrix(points_.points());
  const CovarianceParameters covariance = covariance_of(parameters);
  return likelihood_rounding(
      {.points = view_of(coordinates, n_),
       .parameters = covariance,
       .solution = {residual, static_cast<std::size_t>(n_)},
       .data_square = squares,
       .mean_rounding = mean_ == Mean::sample ? shift_ : 0,
       .quadratic_form = evaluation.quadratic_form,
       .log_determinant = evaluation.factor.log_determinant,
       .inverse = inverse_norms(signs.view().block(0, 0, n_, kInverseProbes), probes)});
}

double gaussian_log_likelihood(std::int64_t n, double log_determinant, double quadratic_form) {
  constexpr double log_two_pi = 1.8378770664093454836;
  return -0.5 * (static_cast<double>(n) * log_two_pi + log_determinant + quadratic_form);
}

namespace {

constexpr const char* kLikelihoodWhere = "log_likelihood";

Likelihood likelihood_in_safe_units(const Points& points, std::span<const double> values,
                                    const MaternParameters& parameters, Mean mean,
                                    const CovarianceOptions& options) {
  GaussianProcess process(points, values, mean, parameters.separation.distance, options,
                          &parameters);
  const auto evaluation = process.evaluate(parameters, kLikelihoodWhere);
  Likelihood out;
  out.factor = evaluation.factor;
  out.quadratic_form = evaluation.quadratic_form;
  require(!out.factor.ok || std::isfinite(out.quadratic_form), ErrorKind::numerical,
          kLikelihoodWhere,
          "the values are too large for this variance and nugget: their quadratic form, and with "
          "it the log-likelihood, is out of the range of doubles");
  out.log_likelihood =
      out.factor.ok
          ? gaussian_log_likelihood(process.n(), out.factor.log_determinant, out.quadratic_form)
          : std::numeric_limits<double>::quiet_NaN();
  out.mean_coefficients = evaluation.mean_coefficients;
  out.certificate = evaluation.certificate;
  if (out.factor.ok) out.rounding = process.rounding(parameters, evaluation);
  out.run = process.report();
  return out;
}

}  // namespace

Likelihood log_likelihood(const Points& points, std::span<const double> values,
                          const MaternParameters& parameters, Mean mean,
                          const CovarianceOptions& options) {
  const char* where = kLikelihoodWhere;
  check_points(points, "points", where);
  check_values(points, values, where);
  check_mean(mean, points, where);
  check_parameters(parameters, where);
  check_separation(parameters.separation, points, where);
  if (parameters.nugget == 0) check_distinct(points, parameters.separation.distance, where);
  const Units units(points, parameters, where);
  if (units.as_given()) return likelihood_in_safe_units(points, values, parameters, mean, options);
  Likelihood out = likelihood_in_safe_units(units.of(points), units.of(values),
                                            units.of(parameters), mean, options);
  units.restore(out, points.size(), mean);
  return out;
}

}  // namespace strata
