// Kriging. With Σ = L·Lᵀ, w = L⁻¹c(p) for a target p and W = L⁻¹X:
//   mean      x(p)ᵀβ + wᵀ·L⁻¹(z − Xβ)
//   variance  c(0) − wᵀw + uᵀ(WᵀW)⁻¹u,   u = x(p) − Wᵀw
// of the process, plus the nugget for a new observation (universal kriging; Cressie, "Statistics
// for Spatial Data", 1993, section 3.4.5). Only solves with L are needed, and with W = Q·R the last
// term is ‖R⁻ᵀu‖². Of w only its products with [W | L⁻¹(z − Xβ)] and its length are needed: the
// devices keep the rest to themselves, as many targets at a time as there is room for.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "predict";

void check_model(const Model& model) {
  check_points(model.points, "points", kWhere);
  check_values(model.points, model.values, kWhere);
  check_parameters(model.parameters, kWhere);
  const Separation& separation = model.parameters.separation;
  check_separation(separation, model.points, kWhere);
  if (model.parameters.nugget == 0) check_distinct(model.points, separation.distance, kWhere);
  const auto expected = static_cast<std::size_t>(coefficient_count(model.mean));
  require(model.mean_coefficients.empty() || model.mean_coefficients.size() == expected,
          ErrorKind::misuse, kWhere, "{} coefficients of the mean, but the model has {}",
          model.mean_coefficients.size(), expected);
  for (const double c : model.mean_coefficients) {
    require(std::isfinite(c), ErrorKind::misuse, kWhere, "a coefficient of the mean is {}", c);
  }
}

/// The data seen through L⁻¹: what every target needs.
struct Whitened {
  MeanBasis basis;
  std::vector<double> data;  ///< [L⁻¹X | L⁻¹(z − Xβ)], n × (p + 1)
  std::vector<double> coefficients;
  Regression regression;
};

Whitened whiten(const Model& model, CovarianceSolver& solver) {
  const std::int64_t n = model.points.size();
  Whitened out{MeanBasis(model.mean, model.points), {}, model.mean_coefficients, {}};
  const std::int64_t p = out.basis.columns();
  if (out.coefficients.empty() && model.mean == Mean::sample) {
    out.coefficients = {sample_mean(model.values)};
  }
  std::vector<double> data(static_cast<std::size_t>(n * (p + 1)));
  const MatrixView<double> w{data.data(), n, p + 1, n};
  out.basis.fill(model.points, w);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    w(i, p) = model.values[k] - mean_at(out.coefficients, model.points.x[k], model.points.y[k]);
  }
  solver.solve_lower(w);
  out.data = data;
  out.regression = regress(w, kWhere);
  if (out.coefficients.empty() && p > 0) {
    out.coefficients = out.basis.in_original_coordinates(out.regression.coefficients);
    std::copy_n(w.column(p), n, out.data.begin() + p * n);
  }
  return out;
}

/// Mean and variances at one target: `products` of its whitened covariances with the columns of
/// `data.data`, and the `square` of their length.
void predict_one(const Model& model, const Whitened& data, const std::array<double, 4>& products,
                 double square, double x, double y, Prediction& out) {
  const auto p = static_cast<std::size_t>(data.basis.columns());
  out.mean.push_back(mean_at(data.coefficients, x, y) + products[p]);
  std::array<double, 3> u = data.basis.row(x, y);
  for (std::size_t j = 0; j < p; ++j) u[j] -= products[j];
  // At a data point without nugget the difference is rounding, of either sign.
  const double variance =
      std::max(0.0, model.parameters.variance - square) + data.regression.leverage(u);
  out.process_standard_error.push_back(std::sqrt(variance));
  out.standard_error.push_back(std::sqrt(variance + model.parameters.nugget));
}

}  // namespace

Prediction predict(const Model& model, const Points& targets, const Options& options,
                   std::int64_t chunk) {
  check_model(model);
  check_points(targets, "targets", kWhere);
  require(targets.z.empty() == model.points.z.empty(), ErrorKind::misuse, kWhere,
          "the points of the model have {} z coordinates and the targets {}", model.points.z.size(),
          targets.z.size());
  check_separation(model.parameters.separation, targets, kWhere);
  require(chunk >= 0, ErrorKind::misuse, kWhere, "chunk is {}, but must be at least 0", chunk);
  const std::int64_t n = model.points.size();
  const std::int64_t m = targets.size();
  const auto coordinates = coordinate_matrix(model.points);
  const std::int64_t d = coordinate_count(model.points);
  CovarianceSolver solver(MatrixView<const double>{coordinates.data(), n, d, n}, options);
  const std::int64_t columns = MeanBasis(model.mean, model.points).columns() + 1;
  solver.reserve_for_targets(chunk > 0 ? std::min(chunk, m) : m, columns);
  const FactorInfo info = solver.factor(covariance_parameters(model.parameters));
  require(info.ok, ErrorKind::numerical, kWhere,
          "the covariance of the model is not positive definite: pivot {} (counting from 0) is {}",
          info.first_bad_pivot, info.bad_pivot);
  Prediction out;
  out.run = solver.report();
  const Whitened data = whiten(model, solver);
  std::vector<double> sums(static_cast<std::size_t>(m * columns));
  std::vector<double> squares(static_cast<std::size_t>(m));
  const MatrixView<double> products{sums.data(), m, columns, m};
  out.solve = solver.whitened_sums({coordinate_matrix(targets).data(), m, d, m},
                                   {data.data.data(), n, columns, n}, products, squares, chunk);
  for (std::int64_t t = 0; t < m; ++t) {
    const auto i = static_cast<std::size_t>(t);
    std::array<double, 4> row{};
    for (std::int64_t j = 0; j < columns; ++j) row[static_cast<std::size_t>(j)] = products(t, j);
    predict_one(model, data, row, squares[i], targets.x[i], targets.y[i], out);
  }
  return out;
}

}  // namespace strata
