// Kriging. With Σ = L·Lᵀ, w = L⁻¹c(p) for a target p and W = L⁻¹X:
//   mean      x(p)ᵀβ + wᵀ·L⁻¹(z − Xβ)
//   variance  c(0) − wᵀw + uᵀ(WᵀW)⁻¹u,   u = x(p) − Wᵀw
// of the process, plus the nugget for a new observation (universal kriging; Cressie, "Statistics
// for Spatial Data", 1993, section 3.4.5). Only solves with L are needed, and with W = Q·R the last
// term is ‖R⁻ᵀu‖². Targets go in chunks, so memory is n × chunk whatever their number.

#include <algorithm>
#include <array>
#include <chrono>
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
  if (model.parameters.nugget == 0) check_distinct(model.points, kWhere);
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
  std::vector<double> design;    ///< L⁻¹X, n × p
  std::vector<double> residual;  ///< L⁻¹(z − Xβ), n
  std::vector<double> coefficients;
  Regression regression;
};

Whitened whiten(const Model& model, CovarianceSolver& solver) {
  const std::int64_t n = model.points.size();
  Whitened out{MeanBasis(model.mean, model.points), {}, {}, model.mean_coefficients, {}};
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
  out.design.assign(data.begin(), data.begin() + n * p);
  out.residual.assign(data.begin() + n * p, data.end());
  out.regression = regress(w, kWhere);
  if (out.coefficients.empty() && p > 0) {
    out.coefficients = out.basis.in_original_coordinates(out.regression.coefficients);
    out.residual.assign(data.begin() + n * p, data.end());
  }
  return out;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Mean and variances at one target, from its whitened covariances w with the data.
void predict_one(const Model& model, const Whitened& data, const double* w, double x, double y,
                 Prediction& out) {
  const std::int64_t n = model.points.size();
  out.mean.push_back(mean_at(data.coefficients, x, y) + dot(w, data.residual.data(), n));
  std::array<double, 3> u = data.basis.row(x, y);
  for (std::int64_t j = 0; j < data.basis.columns(); ++j) {
    u[static_cast<std::size_t>(j)] -= dot(w, data.design.data() + j * n, n);
  }
  // At a data point without nugget the difference is rounding, of either sign.
  const double variance =
      std::max(0.0, model.parameters.variance - dot(w, w, n)) + data.regression.leverage(u);
  out.process_standard_error.push_back(std::sqrt(variance));
  out.standard_error.push_back(std::sqrt(variance + model.parameters.nugget));
}

}  // namespace

Prediction predict(const Model& model, const Points& targets, const Options& options,
                   std::int64_t chunk) {
  const auto begin = std::chrono::steady_clock::now();
  check_model(model);
  check_points(targets, "targets", kWhere);
  require(chunk >= 0, ErrorKind::misuse, kWhere, "chunk is {}, but must be at least 0", chunk);
  const std::int64_t n = model.points.size();
  const std::int64_t m = targets.size();
  // 256 MiB of whitened covariances, but enough targets for a matrix product to be worth while.
  if (chunk == 0) chunk = std::clamp<std::int64_t>((std::int64_t{1} << 25) / n, 64, 8192);
  chunk = std::min(chunk, m);

  std::int64_t done = 0;
  bool factored = false;
  Options run_options = options;
  if (options.progress) {
    run_options.progress = [&](const Progress& p) {
      if (!factored) return options.progress(p);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      return options.progress(
          {static_cast<double>(done), static_cast<double>(m), elapsed.count(), "predict"});
    };
  }
  const auto coordinates = coordinate_matrix(model.points);
  CovarianceSolver solver(MatrixView<const double>{coordinates.data(), n, 2, n}, run_options);
  const MaternParameters& p = model.parameters;
  const FactorInfo info = solver.factor({p.variance, p.range, p.smoothness, p.nugget, true});
  require(info.ok, ErrorKind::numerical, kWhere,
          "the covariance of the model is not positive definite: pivot {} (counting from 0) is {}",
          info.first_bad_pivot, info.bad_pivot);
  factored = true;
  Prediction out;
  out.run = solver.report();
  const Whitened data = whiten(model, solver);
  std::vector<double> w(static_cast<std::size_t>(n * chunk));
  while (done < m) {
    require(!run_options.progress || run_options.progress({}), ErrorKind::cancelled, kWhere,
            "cancelled after {} of {} targets", done, m);
    const std::int64_t count = std::min(chunk, m - done);
    const auto first = targets.x.begin() + done;
    const Points some{{first, first + count},
                      {targets.y.begin() + done, targets.y.begin() + done + count}};
    solver.whitened_cross_covariance({coordinate_matrix(some).data(), count, 2, count},
                                     {w.data(), n, count, n});
    for (std::int64_t k = 0; k < count; ++k) {
      const auto i = static_cast<std::size_t>(k);
      predict_one(model, data, w.data() + k * n, some.x[i], some.y[i], out);
    }
    done += count;
  }
  return out;
}

}  // namespace strata
