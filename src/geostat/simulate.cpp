// Simulation of Gaussian fields.
//
// Method: y = m + L·ε with Σ = L·Lᵀ and ε standard normal, which is exact: cov(y) = L·Lᵀ. Element i
// of realization r is the pure function random_normal(seed, r·n + i), so that a field is the same
// on any machine, and the first of many realizations is the only one of one.
//
// Given observations, by conditioning by kriging (Chilès and Delfiner, "Geostatistics", 2nd ed.,
// 2012, section 7.3). S is a field without mean simulated at data and targets together, and K the
// kriging from values at the data. Then K(z) + S − K(S) honours the data, and its error S − K(S)
// has the covariance of the kriging error, that of an estimated mean included. Where there is no
// nugget, a place that occurs several times is one unknown.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/kriging.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/units.hpp"

namespace strata {
namespace {

constexpr const char* kSimulateWhere = "simulate";

void check_options(const SimulateOptions& options) {
  require(options.realizations >= 1, ErrorKind::misuse, kSimulateWhere,
          "realizations is {}, but must be at least 1", options.realizations);
}

void check_coefficients(const Points& points, Distance distance,
                        std::span<const double> coefficients) {
  const std::int64_t covariates = std::ssize(points.covariates);
  const std::int64_t constant = coefficient_count(Mean::constant, covariates);
  const std::int64_t linear = coefficient_count(Mean::linear, covariates, distance);
  const std::int64_t given = std::ssize(coefficients);
  require(given == constant || given == linear || (given == 0 && covariates == 0),
          ErrorKind::misuse, kSimulateWhere,
          "{} coefficients of the mean, but there are {}{} or {}", given,
          covariates == 0 ? "0, " : "", constant, linear);
  for (const double c : coefficients) {
    require(std::isfinite(c), ErrorKind::misuse, kSimulateWhere, "a coefficient of the mean is {}",
            c);
  }
}

/// L·ε, n × realizations, with the reports of its two halves.
Simulation centred_field(const Points& points, const MaternParameters& parameters,
                         const SimulateOptions& options) {
  const Units units(points, parameters, kSimulateWhere);
  const OrderedPoints ordered(units.of(points), options);
  CovarianceSolver solver = covariance_solver(ordered.points(), options);
  factor_or_fail(solver, units.of(parameters), kSimulateWhere);
  Simulation out;
  out.run = solver.report();
  const std::int64_t n = points.size();
  out.values.resize(static_cast<std::size_t>(n * options.realizations));
  for (std::size_t k = 0; k < out.values.size(); ++k)
    out.values[k] = random_normal(options.seed, k);
  const MatrixView<double> fields{out.values.data(), n, options.realizations, n};
  out.multiply = solver.multiply_lower(fields);
  ordered.restore(fields);
  units.restore(out.values);
  return out;
}

/// Where a field is simulated for data and targets, and which of its sites each of them is.
struct Sites {
  Points points;
  std::vector<std::int64_t> of;  ///< of the data, then of the targets
};

Sites make_sites(const Points& data, const Points& targets, bool distinct, Distance distance) {
  Sites sites;
  Points all = data;
  append(all, targets);
  sites.of.resize(static_cast<std::size_t>(all.size()));
  std::iota(sites.of.begin(), sites.of.end(), 0);
  if (!distinct) {
    sites.points = std::move(all);
    return sites;
  }
  const std::vector<std::int64_t> first = first_rows(all, distance);
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool is_first = first[i] == static_cast<std::int64_t>(i);
    sites.of[i] = is_first ? std::ssize(rows) : sites.of[static_cast<std::size_t>(first[i])];
    if (is_first) rows.push_back(first[i]);
  }
  sites.points = rows_of(all, rows);
  return sites;
}

/// The rows first … first + count − 1 of data and targets, from the columns of a field at sites.
std::vector<double> at_sites(const Simulation& field, const Sites& sites, std::int64_t first,
                             std::int64_t count, std::int64_t realizations) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(count * realizations));
  for (std::int64_t r = 0; r < realizations; ++r) {
    const double* column = field.values.data() + r * sites.points.size();
    for (std::int64_t i = 0; i < count; ++i)
      out.push_back(column[sites.of[static_cast<std::size_t>(first + i)]]);
  }
  return out;
}

bool same_covariates(const Points& a, std::int64_t i, const Points& b, std::int64_t j) {
  for (std::size_t k = 0; k < a.covariates.size(); ++k) {
    if (a.covariates[k][static_cast<std::size_t>(i)] !=
        b.covariates[k][static_cast<std::size_t>(j)]) {
      return false;
    }
  }
  return true;
}

}  // namespace

Simulation simulate(const Points& points, const MaternParameters& parameters,
                    std::span<const double> mean_coefficients, const SimulateOptions& options) {
  check_points(points, "points", kSimulateWhere);
  check_parameters(parameters, kSimulateWhere);
  check_options(options);
  check_coefficients(points, parameters.separation.distance, mean_coefficients);
  MaternParameters used = parameters;
  if (!options.noise) used.nugget = 0;
  check_separation(used.separation, points, kSimulateWhere);
  if (used.nugget == 0) check_distinct(points, used.separation.distance, kSimulateWhere);
  Simulation out = centred_field(points, used, options);
  const auto n = static_cast<std::size_t>(points.size());
  for (std::size_t k = 0; k < out.values.size(); ++k)
    out.values[k] += mean_at(mean_coefficients, points, k % n);
  return out;
}

Simulation conditional_simulate(const Model& model, const Points& targets,
                                const SimulateOptions& options) {
  check_model(model, kSimulateWhere);
  check_targets(model, targets, kSimulateWhere);
  check_options(options);
  const std::int64_t n = model.points.size();
  const std::int64_t m = targets.size();
  const std::int64_t realizations = options.realizations;
  MaternParameters used = model.parameters;
  if (!options.noise) used.nugget = 0;
  const bool distinct = used.nugget == 0;
  const Sites sites = make_sites(model.points, targets, distinct, used.separation.distance);
  Simulation out = centred_field(sites.points, used, options);
  std::vector<double> at_data = at_sites(out, sites, 0, n, realizations);
  if (distinct && model.parameters.nugget > 0) {
    // The process was simulated; what is observed of it has noise of its own.
    const double deviation = std::sqrt(model.parameters.nugget);
    const std::uint64_t seed = random_bits(options.seed, 1);
    for (std::size_t k = 0; k < at_data.size(); ++k)
      at_data[k] += deviation * random_normal(seed, k);
  }
  // One factor at a time in memory: that of the field is gone.
  Kriging kriging(model, m, 0, options, kSimulateWhere);
  const Prediction known = kriging.predict(targets, 0);
  const std::vector<double> explained =
      kriging.interpolate({at_data.data(), n, realizations, n}, targets);
  out.values = at_sites(out, sites, n, m, realizations);
  for (std::size_t k = 0; k < out.values.size(); ++k) {
    out.values[k] += known.mean[k % static_cast<std::size_t>(m)] - explained[k];
  }
  if (model.parameters.nugget > 0) return out;
  // A target that was observed, without noise: the difference above is rounding. Where covariates
  // differ from those of the observation, so does the mean.
  std::vector<std::int64_t> data_of(static_cast<std::size_t>(sites.points.size()), -1);
  for (std::int64_t i = 0; i < n; ++i)
    data_of[static_cast<std::size_t>(sites.of[static_cast<std::size_t>(i)])] = i;
  for (std::int64_t r = 0; r < realizations; ++r) {
    for (std::int64_t t = 0; t < m; ++t) {
      const auto site = static_cast<std::size_t>(sites.of[static_cast<std::size_t>(n + t)]);
      const std::int64_t i = data_of[site];
      if (i >= 0 && same_covariates(model.points, i, targets, t)) {
        out.values[static_cast<std::size_t>(r * m + t)] = model.values[static_cast<std::size_t>(i)];
      }
    }
  }
  return out;
}

}  // namespace strata
