// strata bench mixed: factorizations in several precisions.

#include <fmt/format.h>

#include "cli/bench.hpp"

namespace strata::cli {
namespace {

using bench::MixedRow;
using nlohmann::json;

double flops_per_second(const MixedRow& row) {
  const auto n = static_cast<double>(row.run.n);
  return row.seconds > 0 ? n * n * n / 3 / row.seconds : 0;
}

json row_json(const MixedRow& row) {
  json object = to_json(row.run);
  object["range"] = row.range;
  object["ok"] = row.ok;
  object["rule"] = row.asked.rule == PrecisionRule::paper ? "paper" : "factor";
  object["accuracy_asked"] = row.asked.accuracy;
  object["keep_all"] = row.asked.keep_all;
  object["seconds"] = row.seconds;
  object["all_seconds"] = row.all_seconds;
  object["flops_per_second"] = flops_per_second(row);
  object["log_determinant"] = number(row.log_determinant);
  for (const auto& [operation, seconds] : row.seconds_by_operation)
    object["seconds_by_operation"][operation] = seconds;
  return object;
}

void print_row(const MixedRow& row) {
  const bool mixed = row.run.mixed.has_value();
  fmt::print("{:8} {:6}{} {:7.0e} {:9.4g} s {:8.4g} TFLOP/s", row.range,
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
  for (const auto& [operation, seconds] : row.seconds_by_operation)
    fmt::print(" {} {:.3g}", operation, seconds);
  fmt::print("; plan {:.2g} s, predicted {:.3g} s, peak {:.3g} GB, {:.3g} GB in, {:.3g} GB out\n",
             row.run.plan_seconds, row.run.predicted_seconds.value_or(0),
             static_cast<double>(row.run.peak_device_bytes) / 1e9,
             static_cast<double>(row.run.traffic.host_to_device_bytes) / 1e9,
             static_cast<double>(row.run.traffic.device_to_host_bytes) / 1e9);
}

}  // namespace

int run_mixed(const bench::MixedBench& bench, const CommonOptions& common) {
  const Options options = common.to_options();
  const bench::MixedResult result = run_mixed_bench(bench, options);
  json results = json::array();
  for (const MixedRow& row : result.rows) results.push_back(row_json(row));
  const json object = {{"benchmark", "mixed"},
                       {"n", bench.n},
                       {"seed", bench.seed},
                       {"repeats", bench.repeats},
                       {"smoothness", bench.smoothness},
                       {"results", results}};
  ReportData report;
  if (!result.rows.empty()) report.run = result.rows.back().run;
  return finish(common, std::move(report), object, [&] {
    for (const MixedRow& row : result.rows) print_row(row);
  });
}

}  // namespace strata::cli
