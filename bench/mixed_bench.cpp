#include "bench/mixed_bench.hpp"

#include <algorithm>
#include <map>

#include "base/random.hpp"
#include "cholesky/covariance_solver.hpp"
#include "geostat/point_order.hpp"

namespace strata::bench {
namespace {

/// n × 2, column by column, in the order that is asked for.
std::vector<double> ordered_points(const MixedBench& bench, std::int64_t tile) {
  const std::int64_t n = bench.n;
  std::vector<double> points(static_cast<std::size_t>(2 * n));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = random_uniform(bench.seed, i);
  const MatrixView<const double> view{points.data(), n, 2, n};
  const std::vector<std::int64_t> order = order_points(view, bench.order, tile);
  std::vector<double> ordered(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    ordered[i] = view(order[i], 0);
    ordered[i + order.size()] = view(order[i], 1);
  }
  return ordered;
}

std::vector<std::pair<std::string, double>> seconds_by_operation(const Trace& trace) {
  std::map<std::string, double> seconds;
  for (const Span& span : trace.spans) {
    if (span.kind != SpanKind::compute) continue;
    seconds[trace.operations[span.operation]] += span.end - span.begin;
  }
  return {seconds.begin(), seconds.end()};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

MixedResult run_mixed_bench(const MixedBench& bench, const Options& options) {
  MixedResult result;
  const std::int64_t tile = options.tile > 0 ? options.tile : 2048;
  const std::vector<double> points = ordered_points(bench, tile);
  for (const double range : bench.ranges) {
    for (const MixedPrecision& asked : bench.cases) {
      Options mine = options;
      mine.tile = tile;
      mine.mixed = asked;
      CovarianceSolver solver({points.data(), bench.n, 2, bench.n}, mine);
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
      row.seconds = median(row.all_seconds);
      row.run = solver.report();
      row.seconds_by_operation = seconds_by_operation(row.run.trace);
      if (!result.rows.empty()) result.rows.back().run.trace = {};
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

}  // namespace strata::bench
