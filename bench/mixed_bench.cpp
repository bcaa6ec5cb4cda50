#include "bench/mixed_bench.hpp"

#include <algorithm>
#include <map>

#include "bench/in_core_bench.hpp"
#include "bench/uniform_points.hpp"
#include "cholesky/covariance_solver.hpp"
#include "cholesky/planning.hpp"
#include "geostat/point_order.hpp"

namespace strata::bench {
namespace {

/// n × 2, column by column, in the order that is asked for.
std::vector<double> ordered(const Points& points, PointOrder how, std::int64_t tile) {
  const std::int64_t n = points.size();
  std::vector<double> given = points.x;
  given.insert(given.end(), points.y.begin(), points.y.end());
  const std::vector<std::int64_t> order = order_points({given.data(), n, 2, n}, how, tile);
  std::vector<double> all(given.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    all[i] = points.x[from];
    all[i + order.size()] = points.y[from];
  }
  return all;
}

std::vector<std::pair<std::string, double>> seconds_by_operation(const Trace& trace) {
  std::map<std::string, double> seconds;
  for (const Span& span : trace.spans) {
    if (span.kind != SpanKind::compute) continue;
    seconds[trace.operations[span.operation]] += span.end - span.begin;
  }
  return {seconds.begin(), seconds.end()};
}

MixedRow run_case(const MixedBench& bench, MatrixView<const double> points, double range,
                  const MixedPrecision& asked, CovarianceOptions options) {
  options.mixed = asked;
  CovarianceSolver solver(points, options);
  MixedRow row;
  row.range = range;
  row.asked = asked;
  for (int r = -1; r < bench.repeats; ++r) {
    const FactorInfo& info = solver.factor({1, range, bench.smoothness, 0, true});
    row.ok = info.ok;
    row.log_determinant = info.log_determinant;
    if (r >= 0) row.all_seconds.push_back(solver.report().seconds);
    if (!info.ok) break;
  }
  row.seconds = row.all_seconds.empty() ? 0 : median(row.all_seconds);
  row.run = solver.report();
  row.seconds_by_operation = seconds_by_operation(row.run.trace);
  return row;
}

}  // namespace

MixedResult run_mixed_bench(const MixedBench& bench, const CholeskyOptions& options,
                            const std::function<void(const MixedRow&)>& told) {
  for (const MixedPrecision& asked : bench.cases) check_mixed_precision(asked);
  MixedResult result;
  for (const std::int64_t n : bench.sizes) {
    CovarianceOptions mine{options};
    mine.tile = mixed_tile(n, 2, options);
    mine.order = bench.order;
    const Points points = uniform_points(n, bench.seed);
    const std::vector<double> coordinates = ordered(points, bench.order, mine.tile);
    for (const double range : bench.ranges) {
      for (const MixedPrecision& asked : bench.cases) {
        MixedRow row = run_case(bench, {coordinates.data(), n, 2, n}, range, asked, mine);
        if (bench.divergence && asked.on() && row.ok) {
          mine.mixed = asked;
          const MaternParameters parameters{1, range, bench.smoothness, 0};
          row.divergence = precision_divergence(points, parameters, mine);
        }
        if (!result.rows.empty()) result.rows.back().run.trace = {};
        result.rows.push_back(std::move(row));
        if (told) told(result.rows.back());
      }
    }
  }
  return result;
}

}  // namespace strata::bench
