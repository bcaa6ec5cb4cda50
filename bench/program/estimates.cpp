// strata bench estimates: maximum likelihood estimates beside those of FP64.

#include <fmt/core.h>

#include <cstdio>

#include "bench/program/program.hpp"

namespace strata::cli {
namespace {

using bench::EstimatesRow;

Json row_json(const EstimatesRow& row) {
  Json object = {{"accuracy", row.asked.accuracy},
                 {"rule", row.asked.rule == PrecisionRule::paper ? "paper" : "factor"},
                 {"not_converged", row.not_converged},
                 {"in_fp64", row.in_fp64},
                 {"seconds", row.seconds}};
  for (std::size_t p = 0; p < bench::kEstimated; ++p) {
    Json& of = object[bench::kEstimatedNames[p]];
    of = {{"truth", row.truth[p]},
          {"quartiles", row.quartiles[p]},
          {"largest_relative_difference", row.largest_difference[p]}};
    for (const auto& estimate : row.estimates) of["estimates"].push_back(estimate[p]);
  }
  return object;
}

void print_row(const EstimatesRow& row) {
  fmt::print("range {:<8} {:>6}", row.truth[1],
             row.asked.on() ? fmt::format("{:.0e}", row.asked.accuracy) : "FP64");
  for (std::size_t p = 0; p < bench::kEstimated; ++p) {
    const auto& [lower, median, upper] = row.quartiles[p];
    fmt::print("  {} {:.4g} [{:.4g}, {:.4g}]", bench::kEstimatedNames[p], median, lower, upper);
    if (row.asked.on()) fmt::print(" off {:.1e}", row.largest_difference[p]);
  }
  fmt::print("  {:.3g} s", row.seconds);
  if (row.not_converged > 0) fmt::print(", {} not converged", row.not_converged);
  if (row.in_fp64 > 0) fmt::print(", {} ended in FP64", row.in_fp64);
  fmt::print("\n");
}

/// Quartiles of one parameter over its true value, against the accuracy; FP64 as 1e-16.
ReportChart chart_of(const std::vector<EstimatesRow>& rows, double range, std::size_t p) {
  constexpr double kAccuracyOfFp64 = 1e-16;
  ReportChart chart{fmt::format("Estimates of the {}, range {}", bench::kEstimatedNames[p], range),
                    "accuracy (1e-16: FP64)",
                    "estimate over truth",
                    {{"lower quartile", {}, {}}, {"median", {}, {}}, {"upper quartile", {}, {}}}};
  for (const EstimatesRow& row : rows) {
    if (row.truth[1] != range) continue;
    for (std::size_t q = 0; q < 3; ++q) {
      chart.series[q].x.push_back(row.asked.on() ? row.asked.accuracy : kAccuracyOfFp64);
      chart.series[q].y.push_back(row.quartiles[p][q] / row.truth[p]);
    }
  }
  return chart;
}

}  // namespace

int run_estimates(const bench::EstimatesBench& bench, const CommonOptions& common) {
  const auto rows =
      run_estimates_bench(bench, common.cholesky_options(), [&](const EstimatesRow& row) {
        if (common.json) return;
        print_row(row);
        std::fflush(stdout);
      });
  Json object = {{"benchmark", "estimates"},
                 {"n", bench.n},
                 {"data_sets", bench.data_sets},
                 {"seed", bench.seed},
                 {"results", Json::array()}};
  ReportData page;
  page.title = "Estimates in several precisions";
  page.subtitle = fmt::format("{} simulated data sets of {} points", bench.data_sets, bench.n);
  for (const EstimatesRow& row : rows) {
    object["results"].push_back(row_json(row));
    if (row.asked.on()) continue;  // once a range
    for (std::size_t p = 0; p < bench::kEstimated; ++p)
      page.charts.push_back(chart_of(rows, row.truth[1], p));
  }
  return finish(common, std::move(page), object, [] {});
}

}  // namespace strata::cli
