// Kriging. With Σ = L·Lᵀ, w = L⁻¹c(p) for a target p and W = L⁻¹X:
//   mean      x(p)ᵀβ + wᵀ·L⁻¹(z − Xβ)
//   variance  c(0) − wᵀw + uᵀ(WᵀW)⁻¹u,   u = x(p) − Wᵀw
// of the process, plus the nugget for a new observation (universal kriging; Cressie, "Statistics
// for Spatial Data", 1993, section 3.4.5). Only solves with L are needed, and with W = Q·R the last
// term is ‖R⁻ᵀu‖². Only products of w with [W | L⁻¹(z − Xβ)] and its length are needed: w itself
// stays on the devices, for as many targets at a time as there is room for.
//
// Where L has few digits, w is that of L and wᵀw has its accuracy. But wᵀ·Lᵀ·Σ⁻¹v = c(p)ᵀ·Σ⁻¹v is
// right for any L: with refined solves and Lᵀ·Σ⁻¹ in place of L⁻¹ the mean, its coefficients and
// their uncertainty are those of Σ itself.

#include "geostat/kriging.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "cholesky/covariance_entries.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/likelihood_rounding.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/refined_solver.hpp"

namespace strata {
namespace {

const Model& checked(const Model& model, const char* where) {
  check_model(model, where);
  return model;
}

MatrixView<double> columns_of(std::vector<double>& data, std::int64_t rows, std::int64_t cols) {
  data.resize(static_cast<std::size_t>(rows * cols));
  return {data.data(), rows, cols, rows};
}

}  // namespace

void check_model(const Model& model, const char* where) {
  check_points(model.points, "points", where);
  check_values(model.points, model.values, where);
  check_mean(model.mean, model.points, where);
  check_parameters(model.parameters, where);
  const Separation& separation = model.parameters.separation;
  check_separation(separation, model.points, where);
  if (model.parameters.nugget == 0) check_distinct(model.points, separation.distance, where);
  const auto expected = static_cast<std::size_t>(
      coefficient_count(model.mean, std::ssize(model.points.covariates), separation.distance));
  require(model.mean_coefficients.empty() || model.mean_coefficients.size() == expected,
          ErrorKind::misuse, where, "{} coefficients of the mean, but the model has {}",
          model.mean_coefficients.size(), expected);
  for (const double c : model.mean_coefficients) {
    require(std::isfinite(c), ErrorKind::misuse, where, "a coefficient of the mean is {}", c);
  }
}

void check_targets(const Model& model, const Points& targets, const char* where) {
  check_points(targets, "targets", where);
  require(targets.z.empty() == model.points.z.empty(), ErrorKind::misuse, where,
          "the points of the model have {} z coordinates and the targets {}", model.points.z.size(),
          targets.z.size());
  require(targets.covariates.size() == model.points.covariates.size(), ErrorKind::misuse, where,
          "the points of the model have {} covariates and the targets {}",
          model.points.covariates.size(), targets.covariates.size());
  check_separation(model.parameters.separation, targets, where);
}

Kriging::Kriging(const Model& model, std::int64_t targets, std::int64_t chunk,
                 const CovarianceOptions& options, const char* where)
    : units_(checked(model, where).points, model.parameters, where),
      safe_(units_.as_given() ? std::nullopt : std::optional(units_.of(model))),
      model_(safe_ ? *safe_ : model),
      where_(where),
      points_(model_.points, options, &model_.parameters),
      basis_(model_.mean, points_.points(), model_.parameters.separation.distance),
      solver_(covariance_solver(points_, options)),
      coefficients_(model_.mean_coefficients) {
  solver_.reserve_for_targets(chunk > 0 ? std::min(chunk, targets) : targets, basis_.columns() + 1);
  factor_or_fail(solver_, model_.parameters, where);
  report_ = solver_.report();
  whiten();
}

/// The data seen through L⁻¹: what every target needs.
void Kriging::whiten() {
  const std::int64_t n = model_.points.size();
  const std::int64_t p = basis_.columns();
  if (coefficients_.empty() && model_.mean == Mean::sample) {
    coefficients_ = {sample_mean(model_.values)};
  }
  std::vector<double> work;
  const MatrixView<double> w = columns_of(work, n, p + 1);
  basis_.fill(points_.points(), w);
  const std::vector<double> values = points_.ordered(model_.values);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    w(i, p) = values[k] - mean_at(coefficients_, points_.points(), k);
  }
  largest_residual_ = norm_inf(n, w.column(p));
  if (has_few_digits(solver_)) {
    whiten_refined(w);
  } else {
    whiten_by_factor(w);
  }
}

/// The mean at a point. Where it is estimated coefficients of the columns give it, not those in
/// original units, whose terms cancel where points are far from the origin or few beside a line.
double Kriging::mean_of(const Points& points, std::size_t i) const {
  if (!coefficients_.empty() || basis_.columns() == 0) return mean_at(coefficients_, points, i);
  const std::vector<double> row = basis_.row(points, i);
  return dot(basis_.columns(), row.data(), regression_.coefficients.data());
}

/// … and the magnitudes that it is rounded beside.
double Kriging::mean_terms_of(const Points& points, std::size_t i) const {
  if (!coefficients_.empty() || basis_.columns() == 0)
    return mean_terms_at(coefficients_, points, i);
  const std::vector<double> row = basis_.row(points, i);
  double sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k)
    sum += std::abs(row[k] * regression_.coefficients[k]);
  return basis_.roundings() * sum;
}

void Kriging::whiten_by_factor(MatrixView<double> w) {
  const std::int64_t p = basis_.columns();
  solver_.solve_lower(w);
  data_.assign(w.data, w.data + w.rows * w.cols);
  regression_ = regress(w, where_);
  if (coefficients_.empty() && p > 0) std::copy_n(w.column(p), w.rows, data_.begin() + p * w.rows);
}

void Kriging::whiten_refined(MatrixView<const double> w) {
  const std::int64_t n = w.rows;
  const std::int64_t p = basis_.columns();
  const MatrixView<double> u = columns_of(data_, n, p + 1);
  const Refinement refinement = RefinedSolver(solver_).solve(w, u);
  note(refinement);
  design_.assign(w.data, w.data + n * p);
  solutions_.assign(data_.begin(), data_.begin() + n * p);
  const std::vector<double> solution(u.column(p), u.column(p) + n);
  regression_ = regress_by_solutions(w, u, where_);
  // Given coefficients were subtracted already.
  const bool given = !coefficients_.empty() || p == 0;
  if (given) std::copy(solution.begin(), solution.end(), u.column(p));
  solution_length_ = std::sqrt(dot(n, u.column(p), u.column(p)));
  largest_value_ = norm_inf(n, w.column(p));
  for (std::int64_t j = given ? p : 0; j <= p; ++j) {
    const double* left = refinement.residuals.column(j);
    const double factor = j < p ? regression_.coefficients[static_cast<std::size_t>(j)] : 1;
    residual_length_ += std::abs(factor) * std::sqrt(dot(n, left, left));
  }
  solver_.multiply_lower_transposed(u);
}

std::optional<PredictionCertificate> Kriging::certificate() const {
  std::optional<PredictionCertificate> out = certificate_in_units();
  if (out) units_.restore(*out);
  return out;
}

std::optional<PredictionCertificate> Kriging::certificate_in_units() const {
  std::optional<PredictionCertificate> out = certificate_;
  if (out)
    out->variance_error =
        relative_error_of_squares_ * model_.parameters.variance + rounding_of_variance_;
  return out;
}

void Kriging::note(const Refinement& refinement) {
  if (!certificate_) certificate_.emplace();
  certificate_->backward_error = std::max(certificate_->backward_error, refinement.backward_error);
  certificate_->refinement_steps = std::max(certificate_->refinement_steps, refinement.steps);
  relative_error_of_squares_ =
      std::max(relative_error_of_squares_, relative_error_of_squares(refinement));
}

/// Rounding at targets: of the covariance, of a factor's product or of a residual it changes a mean
/// by yᵀΔx, x = Σ⁻¹(z − Xβ), y = Σ⁻¹c the weights of the target, and a variance by yᵀΔy.
void Kriging::note_rounding(const Points& targets, const Prediction& part) {
  constexpr std::size_t kEvenly = 4;
  constexpr std::size_t kLeastKnown = 4;
  const auto m = static_cast<std::size_t>(targets.size());
  std::vector<std::int64_t> rows(m);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<std::int64_t> some;
  for (std::size_t k = 0; k < std::min(kEvenly, m); ++k)
    some.push_back(rows[(2 * k + 1) * m / (2 * std::min(kEvenly, m))]);
  const auto last = rows.begin() + static_cast<std::ptrdiff_t>(std::min(kLeastKnown, m));
  std::partial_sort(rows.begin(), last, rows.end(), [&](std::int64_t a, std::int64_t b) {
    const double p = part.process_standard_error[static_cast<std::size_t>(a)];
    const double q = part.process_standard_error[static_cast<std::size_t>(b)];
    return p != q ? p > q : a < b;
  });
  some.insert(some.end(), rows.begin(), last);
  const std::vector<double> at = coordinate_matrix(rows_of(targets, some));
  const std::vector<double> from = coordinate_matrix(points_.points());
  const std::int64_t n = points_.points().size();
  CovarianceParameters cross = covariance_of(model_.parameters);
  cross.same_points = false;
  DenseBlock weights(n, std::ssize(some));
  CovarianceEntries(cross).fill(view_of(from, n), 0, view_of(at, std::ssize(some)), 0,
                                weights.view());
  (void)solver_.solve(weights.view());
  double length = 0;
  for (std::int64_t j = 0; j < weights.cols(); ++j)
    length = std::max(length, std::sqrt(dot(n, weights.column(j), weights.column(j))));
  const double entry = entry_rounding(n, cross);
  const double mean = entry * (1 + length) * solution_length_ + length * residual_length_ +
                      0x1p-53 * (1 + length) * largest_value_;
  certificate_->mean_error = std::max(certificate_->mean_error, kRoundingDeviations * mean);
  rounding_of_variance_ =
      std::max(rounding_of_variance_, kRoundingDeviations * entry * (1 + length * length));
}

PredictionRounding Kriging::rounding() const {
  PredictionRounding out = rounding_;
  units_.restore(out);
  return out;
}

/// What the weights of any target are made of.
void Kriging::prepare_rounding() {
  const std::int64_t n = points_.points().size();
  const std::int64_t p = basis_.columns();
  solved_ = data_;
  const MatrixView<double> solved{solved_.data(), n, p + 1, n};
  solver_.solve_lower_transposed(solved);
  divide_by_triangle(regression_, solved.block(0, 0, n, p));
  const Distance distance = model_.parameters.separation.distance;
  for (std::int64_t i = 0; i < n; ++i) places_.push_back(place_of(points_.points(), i, distance));
  std::sort(places_.begin(), places_.end());
  const CovarianceParameters covariance = covariance_of(model_.parameters);
  FactoredProblem& problem = problem_.emplace();
  problem.entry = entry_rounding(n, covariance);
  problem.diagonal = covariance.variance + covariance.nugget;
  problem.solution_length = std::sqrt(dot(n, solved.column(p), solved.column(p)));
  problem.largest_residual = largest_residual_;
  problem.largest_value = norm_inf(n, model_.values.data());
  for (std::int64_t i = 0; i < n; ++i)
    problem.largest_value = std::max(problem.largest_value,
                                     mean_terms_of(points_.points(), static_cast<std::size_t>(i)));
  problem.amplification = rounding_amplification(probe_inverse(solver_), covariance);
  problem.column_rounding = basis_.roundings() * kUnitRoundoff;
}

/// Which targets are at the place of a data point and have no nugget: the mean is known there, and
/// its standard error is 0.
std::vector<char> Kriging::at_data(const Points& targets) const {
  std::vector<char> out(static_cast<std::size_t>(targets.size()), 0);
  if (model_.parameters.nugget > 0) return out;
  const Distance distance = model_.parameters.separation.distance;
  for (std::int64_t t = 0; t < targets.size(); ++t)
    out[static_cast<std::size_t>(t)] =
        std::binary_search(places_.begin(), places_.end(), place_of(targets, t, distance)) ? 1 : 0;
  return out;
}

/// The same but for rounding of coordinates, at the few targets that are looked at: any covariance
/// that falls by as much as the distance grows tells it.
std::vector<char> Kriging::near_data(const std::vector<double>& targets, std::int64_t m) const {
  std::vector<char> out(static_cast<std::size_t>(m), 0);
  if (model_.parameters.nugget > 0) return out;
  CovarianceParameters plain = covariance_of(model_.parameters);
  plain.variance = 1;
  plain.smoothness = std::min(plain.smoothness, 0.5);
  plain.same_points = false;
  const std::vector<double> from = coordinate_matrix(points_.points());
  const std::int64_t n = points_.points().size();
  DenseBlock correlations(n, m);
  CovarianceEntries(plain).fill(view_of(from, n), 0, view_of(targets, m), 0, correlations.view());
  for (std::int64_t t = 0; t < m; ++t) {
    const double nearest = norm_inf(n, correlations.column(t));
    out[static_cast<std::size_t>(t)] = nearest >= 1 - 16 * kUnitRoundoff ? 1 : 0;
  }
  return out;
}

/// Rounding at some of the targets, from their weights λ = Σ⁻¹c + V·(R⁻ᵀx − Vᵀc), V = Σ⁻¹X·R⁻¹.
void Kriging::estimate_rounding(const Points& targets, const Prediction& part) {
  if (!problem_) prepare_rounding();
  const std::int64_t n = points_.points().size();
  const std::int64_t p = basis_.columns();
  const std::vector<double>& error = part.process_standard_error;
  const std::vector<std::int64_t> some = telling_rows(part.mean, error, at_data(targets));
  const Points at = rows_of(targets, some);
  const std::vector<double> coordinates = coordinate_matrix(at);
  const std::vector<double> from = coordinate_matrix(points_.points());
  CovarianceParameters cross = covariance_of(model_.parameters);
  cross.same_points = false;
  DenseBlock weights(n, std::ssize(some));
  CovarianceEntries(cross).fill(view_of(from, n), 0, view_of(coordinates, std::ssize(some)), 0,
                                weights.view());
  const DenseBlock c = weights;
  (void)solver_.solve(weights.view());
  const std::vector<char> exact = near_data(coordinates, at.size());
  for (std::int64_t t = 0; t < weights.cols(); ++t) {
    const auto k = static_cast<std::size_t>(t);
    const auto row = static_cast<std::size_t>(some[k]);
    std::vector<double> x = basis_.row(at, k);
    divide_by_triangle(regression_, {x.data(), 1, p, 1});
    for (std::int64_t j = 0; j < p; ++j) {
      const double* v = solved_.data() + j * n;
      double& left = x[static_cast<std::size_t>(j)];
      left -= dot(n, v, c.column(t));
      add_scaled(n, left, v, weights.column(t));
    }
    FactoredProblem problem = *problem_;
    problem.largest_value = std::max(problem.largest_value, mean_terms_of(at, k));
    const double square = dot(n, weights.column(t), weights.column(t));
    note_errors(rounding_,
                rounding_at(problem, std::sqrt(1 + square), regression_.length_of_solution(x)),
                part.standard_error[row], error[row], exact[k] == 0);
  }
}

std::int64_t Kriging::targets_at_a_time(std::int64_t targets, std::int64_t chunk) const {
  return solver_.targets_at_a_time(targets, basis_.columns() + 1, chunk);
}

/// Mean and variances at one target: `products` of its whitened covariances with the columns of
/// the data, and the `square` of their length.
void Kriging::predict_one(const Points& targets, std::size_t t, const double* products,
                          double square, Prediction& out) const {
  const auto p = static_cast<std::size_t>(basis_.columns());
  out.mean.push_back(mean_of(targets, t) + products[p]);
  std::vector<double> u = basis_.row(targets, t);
  for (std::size_t j = 0; j < p; ++j) u[j] -= products[j];
  // At a data point without nugget the difference is rounding, of either sign.
  const double variance =
      std::max(0.0, model_.parameters.variance - square) + regression_.leverage(u);
  out.process_standard_error.push_back(std::sqrt(variance));
  out.standard_error.push_back(std::sqrt(variance + model_.parameters.nugget));
}

Prediction Kriging::predict(const Points& targets, std::int64_t chunk) {
  if (units_.as_given()) return predict_in_units(targets, chunk);
  Prediction out = predict_in_units(units_.of(targets), chunk);
  units_.restore(out);
  return out;
}

Prediction Kriging::predict_in_units(const Points& targets, std::int64_t chunk) {
  const std::int64_t n = model_.points.size();
  const std::int64_t m = targets.size();
  const std::int64_t columns = basis_.columns() + 1;
  std::vector<double> sums;
  const MatrixView<double> products = columns_of(sums, m, columns);
  std::vector<double> squares(static_cast<std::size_t>(m));
  const std::vector<double> coordinates = coordinate_matrix(targets);
  Prediction out;
  out.solve = solver_.whitened_sums(view_of(coordinates, m), {data_.data(), n, columns, n},
                                    products, squares, chunk);
  std::vector<double> row(static_cast<std::size_t>(columns));
  for (std::int64_t t = 0; t < m; ++t) {
    for (std::int64_t j = 0; j < columns; ++j) row[static_cast<std::size_t>(j)] = products(t, j);
    const auto k = static_cast<std::size_t>(t);
    predict_one(targets, k, row.data(), squares[k], out);
  }
  if (certificate_ && m > 0) note_rounding(targets, out);
  if (!certificate_ && m > 0) estimate_rounding(targets, out);
  out.certificate = certificate_in_units();
  out.rounding = rounding_;
  return out;
}

/// Subtracts from each column of values, in the order of the matrix, its estimated mean, and makes
/// it what the whitened covariances of a target are multiplied with. Coefficients are those of the
/// columns of basis_.
void Kriging::subtract_means(MatrixView<double> values,
                             std::vector<std::vector<double>>& coefficients) {
  const std::int64_t n = values.rows;
  const std::int64_t p = basis_.columns();
  const bool refined = has_few_digits(solver_);
  const std::vector<double> right(values.data, values.data + n * values.cols);
  if (refined) {
    note(RefinedSolver(solver_).solve({right.data(), n, values.cols, n}, values));
  } else {
    solver_.solve_lower(values);
  }
  std::vector<double> work;
  std::vector<double> solutions;
  for (std::int64_t j = 0; j < values.cols; ++j) {
    const MatrixView<double> w = columns_of(work, n, p + 1);
    const MatrixView<double> u = columns_of(solutions, n, p + 1);
    Regression found;
    if (refined) {
      std::copy_n(design_.begin(), n * p, work.begin());
      std::copy_n(right.begin() + j * n, n, w.column(p));
      std::copy_n(solutions_.begin(), n * p, solutions.begin());
      std::copy_n(values.column(j), n, u.column(p));
      found = regress_by_solutions(w, u, where_);
      std::copy_n(u.column(p), n, values.column(j));
    } else {
      std::copy_n(data_.begin(), n * p, work.begin());  // L⁻¹X
      std::copy_n(values.column(j), n, w.column(p));
      found = regress(w, where_);
      std::copy_n(w.column(p), n, values.column(j));
    }
    coefficients.push_back(std::move(found.coefficients));
  }
  if (refined) solver_.multiply_lower_transposed(values);
}

/// The values keep the unit in which they are given: only how they combine is needed.
std::vector<double> Kriging::interpolate(MatrixView<const double> values, const Points& given) {
  const Points targets = units_.of(given);
  // Few enough that they are small beside the factor, many enough that the covariances of a target
  // are computed for many columns at once.
  constexpr std::int64_t kColumns = 128;
  const std::int64_t n = model_.points.size();
  const std::int64_t m = targets.size();
  const std::vector<double> coordinates = coordinate_matrix(targets);
  std::vector<double> out;
  const MatrixView<double> means = columns_of(out, m, values.cols);
  std::vector<double> squares(static_cast<std::size_t>(m));
  for (std::int64_t first = 0; first < values.cols; first += kColumns) {
    const std::int64_t count = std::min(kColumns, values.cols - first);
    std::vector<double> whitened;
    const MatrixView<double> some = columns_of(whitened, n, count);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::vector<double> column =
          points_.ordered({values.column(first + j), static_cast<std::size_t>(n)});
      std::copy(column.begin(), column.end(), some.column(j));
    }
    std::vector<std::vector<double>> coefficients;
    subtract_means(some, coefficients);
    std::vector<double> sums;
    const MatrixView<double> products = columns_of(sums, m, count);
    solver_.whitened_sums(view_of(coordinates, m), {whitened.data(), n, count, n}, products,
                          squares);
    for (std::int64_t t = 0; t < m; ++t) {
      const std::vector<double> row = basis_.row(targets, static_cast<std::size_t>(t));
      for (std::int64_t j = 0; j < count; ++j)
        means(t, first + j) =
            products(t, j) +
            dot(basis_.columns(), row.data(), coefficients[static_cast<std::size_t>(j)].data());
    }
  }
  return out;
}

}  // namespace strata
