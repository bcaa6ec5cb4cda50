// strata bench mixed: factorizations in several precisions.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <set>

#include "bench/program/program.hpp"
#include "cli/precision.hpp"

namespace strata::cli {
namespace {

using bench::MixedRow;

double flops_per_second(const MixedRow& row) {
  const auto n = static_cast<double>(row.run.n);
  return row.seconds > 0 ? n * n * n / 3 / row.seconds : 0;
}

Json row_json(const MixedRow& row) {
  Json object = to_json(row.run);
  object["range"] = row.range;
  object["ok"] = row.ok;
  object["rule"] = row.asked.rule == PrecisionRule::paper ? "paper" : "factor";
  object["accuracy_asked"] = row.asked.accuracy;
  object["keep_all"] = row.asked.keep_all;
  object["seconds"] = row.seconds;
  object["all_seconds"] = row.all_seconds;
  object["flops_per_second"] = flops_per_second(row);
  object["log_determinant"] = number(row.log_determinant);
  if (row.divergence) {
    object["divergence"] = number(row.divergence->divergence);
    object["divergence_error"] = number(row.divergence->divergence_error);
    object["likelihood_difference_at_zero"] =
        number(row.divergence->likelihood_difference_at_zero());
  }
  for (const auto& [operation, seconds] : row.seconds_by_operation)
    object["seconds_by_operation"][operation] = seconds;
  return object;
}

void print_row(const MixedRow& row) {
  const bool mixed = row.run.mixed.has_value();
  fmt::print("{:7} {:8} {:6}{} {:7.0e} {:9.4g} s {:8.4g} TFLOP/s", row.run.n, row.range,
             row.asked.rule == PrecisionRule::paper ? "paper" : "factor",
             row.asked.keep_all ? "+" : " ", row.asked.accuracy, row.seconds,
             flops_per_second(row) / 1e12);
  if (mixed) {
    const MixedReport& m = *row.run.mixed;
    fmt::print(
        "  tiles {}  products {:.0f}  eps {:.1e}  pilot {:.2f} s  raised {} retries {}  "
        "probe {:.2g} in {:.2f} s  {}",
        fmt::join(m.tiles, "/"), fmt::join(m.products, "/"), m.accuracy, m.pilot_seconds,
        m.raised_tiles, m.retries, m.probe, m.probe_seconds, m.note);
  }
  fmt::print("{}\n          ", row.ok ? "" : "  NOT POSITIVE DEFINITE");
  if (row.divergence) {
    fmt::print(" divergence {:.3g} ± {:.1g}, likelihood at zero off by {:.3g};",
               row.divergence->divergence, row.divergence->divergence_error,
               row.divergence->likelihood_difference_at_zero());
  }
  for (const auto& [operation, seconds] : row.seconds_by_operation)
    fmt::print(" {} {:.3g}", operation, seconds);
  fmt::print("; plan {:.2g} s, predicted {:.3g} s, peak {:.3g} GB, {:.3g} GB in, {:.3g} GB out\n",
             row.run.plan_seconds, row.run.predicted_seconds.value_or(0),
             static_cast<double>(row.run.peak_device_bytes) / 1e9,
             static_cast<double>(row.run.traffic.host_to_device_bytes) / 1e9,
             static_cast<double>(row.run.traffic.device_to_host_bytes) / 1e9);
}

/// What a chart shows of a row; NaN: nothing.
using Figure = std::function<double(const MixedRow&)>;

std::string accuracy_name(double accuracy) {
  return accuracy > 0 ? fmt::format("{:.0e}", accuracy) : "FP64";
}

/// One chart a range: lines by accuracy against n. If there is one n only, one chart: lines by
/// range against the accuracy.
void add_charts(ReportData& data, const bench::MixedBench& bench, const bench::MixedResult& result,
                const std::string& title, const std::string& unit, const Figure& figure) {
  const bool by_size = bench.sizes.size() > 1;
  ReportChart chart{title, by_size ? "points" : "accuracy", unit, {}};
  for (const double range : bench.ranges) {
    std::set<double> accuracies;
    for (const MixedRow& row : result.rows) accuracies.insert(row.asked.accuracy);
    for (const double accuracy : by_size ? accuracies : std::set<double>{1}) {
      ReportSeries line{by_size ? accuracy_name(accuracy) : fmt::format("range {}", range), {}, {}};
      for (const MixedRow& row : result.rows) {
        const bool here = by_size ? row.asked.accuracy == accuracy : row.asked.on();
        const double y = row.range == range && here ? figure(row) : NAN;
        if (!std::isfinite(y)) continue;
        line.x.push_back(by_size ? static_cast<double>(row.run.n) : row.asked.accuracy);
        line.y.push_back(y);
      }
      if (line.x.size() > 1) chart.series.push_back(std::move(line));
    }
    if (!by_size) continue;
    chart.title = fmt::format("{}, range {}", title, range);
    if (!chart.series.empty()) data.charts.push_back(std::move(chart));
    chart = {title, "points", unit, {}};
  }
  if (!chart.series.empty()) data.charts.push_back(std::move(chart));
}

/// The figures of the four-precision paper for the machine at hand, as far as the rows have them.
ReportData page_of(const bench::MixedBench& bench, const bench::MixedResult& result) {
  ReportData data;
  data.title = "Covariances in several precisions";
  data.subtitle = "uniform random points, variance 1";
  add_charts(data, bench, result, "Rate", "TFLOP/s by n³/3",
             [](const MixedRow& row) { return flops_per_second(row) / 1e12; });
  add_charts(data, bench, result, "Traffic of a factorization", "GB", [](const MixedRow& row) {
    return static_cast<double>(row.run.traffic.total()) / 1e9;
  });
  add_charts(data, bench, result, "Products left out", "percent", [](const MixedRow& row) {
    return row.run.mixed ? 100 * share_left_out(*row.run.mixed) : NAN;
  });
  add_charts(data, bench, result, "Kullback-Leibler divergence from FP64", "log10 of nats",
             [](const MixedRow& row) {
               return row.divergence ? std::log10(row.divergence->divergence) : NAN;
             });
  add_charts(data, bench, result, "Log-likelihood at zero, difference from FP64", "log10",
             [](const MixedRow& row) {
               return row.divergence ? std::log10(row.divergence->likelihood_difference_at_zero())
                                     : NAN;
             });
  constexpr std::size_t kMapsMax = 12;
  for (const MixedRow& row : result.rows) {
    if (row.run.n != bench.sizes.back() || data.precision_maps.size() >= kMapsMax) continue;
    const char* matrix = row.asked.rule == PrecisionRule::paper ? "A" : "L";
    add_precision_map(data, row.run.mixed,
                      fmt::format("{}, range {}, {:.0e}", matrix, row.range, row.asked.accuracy));
  }
  if (!result.rows.empty()) data.run = result.rows.back().run;
  return data;
}

}  // namespace

int run_mixed(const bench::MixedBench& bench, const CommonOptions& common) {
  const CholeskyOptions options = common.cholesky_options();
  const bench::MixedResult result = run_mixed_bench(bench, options, [&](const MixedRow& row) {
    if (common.json) return;
    print_row(row);
    std::fflush(stdout);
  });
  Json results = Json::array();
  for (const MixedRow& row : result.rows) results.push_back(row_json(row));
  const Json object = {
      {"benchmark", "mixed"},     {"sizes", bench.sizes},           {"seed", bench.seed},
      {"repeats", bench.repeats}, {"smoothness", bench.smoothness}, {"results", results}};
  return finish(common, page_of(bench, result), object, [] {});
}

}  // namespace strata::cli
