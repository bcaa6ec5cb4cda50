#include "bench/estimates_bench.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "bench/uniform_points.hpp"

namespace strata::bench {
namespace {

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - std::floor(at));
}

/// Quartiles, and differences from what FP64 found in the same data.
void summarize(EstimatesRow& row, const EstimatesRow& exact) {
  for (std::size_t p = 0; p < kEstimated; ++p) {
    std::vector<double> values;
    for (std::size_t d = 0; d < row.estimates.size(); ++d) {
      values.push_back(row.estimates[d][p]);
      row.largest_difference[p] = std::max(
          row.largest_difference[p], std::fabs(row.estimates[d][p] / exact.estimates[d][p] - 1));
    }
    row.quartiles[p] = {quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
  }
}

EstimatesRow fit_all(const EstimatesBench& bench, const Points& points, const Simulation& fields,
                     double range, const MixedPrecision& asked, const CholeskyOptions& options) {
  EstimatesRow row;
  row.truth = {1, range, bench.smoothness};
  row.asked = asked;
  FitOptions how{CovarianceOptions{options, asked, bench.order}};
  how.mean = Mean::zero;
  how.nugget = 0;
  how.standard_errors = StandardErrorMethod::none;
  const auto n = static_cast<std::size_t>(points.size());
  for (int d = 0; d < bench.data_sets; ++d) {
    const std::span<const double> values{fields.values.data() + static_cast<std::size_t>(d) * n, n};
    const FitResult found = fit(points, values, how);
    const MaternParameters& at = found.parameters;
    row.estimates.push_back({at.variance, at.range, at.smoothness});
    row.seconds += found.seconds;
    if (!found.converged) ++row.not_converged;
    if (found.mixed && found.mixed->accuracy == 0) ++row.in_fp64;
  }
  return row;
}

}  // namespace

std::vector<EstimatesRow> run_estimates_bench(
    const EstimatesBench& bench, const CholeskyOptions& options,
    const std::function<void(const EstimatesRow&)>& told) {
  for (const MixedPrecision& asked : bench.cases) check_mixed_precision(asked);
  std::vector<EstimatesRow> rows;
  const Points points = uniform_points(bench.n, bench.seed);
  for (const double range : bench.ranges) {
    SimulateOptions simulation{CovarianceOptions{options}};
    simulation.realizations = bench.data_sets;
    simulation.seed = random_bits(bench.seed, static_cast<std::uint64_t>(rows.size()));
    const Simulation fields = simulate(points, {1, range, bench.smoothness, 0}, {}, simulation);
    const std::size_t first = rows.size();
    std::vector<MixedPrecision> cases{{}};  // FP64 first
    cases.insert(cases.end(), bench.cases.begin(), bench.cases.end());
    for (const MixedPrecision& asked : cases) {
      rows.push_back(fit_all(bench, points, fields, range, asked, options));
      summarize(rows.back(), rows[first]);
      if (told) told(rows.back());
    }
  }
  return rows;
}

}  // namespace strata::bench
