// strata bench covariance: elements a second, beside what the memory takes.

#include <fmt/core.h>

#include "bench/program/program.hpp"

namespace strata::cli {
namespace {

using bench::CovarianceResult;
using bench::CovarianceRow;

Json row_json(const CovarianceRow& row) {
  return {{"precision", to_string(row.precision)},
          {"smoothness", row.smoothness},
          {"seconds", row.seconds},
          {"all_seconds", row.all_seconds},
          {"elements_per_second", row.elements_per_second},
          {"bytes_per_second", row.bytes_per_second},
          {"share_of_copy", row.share_of_copy},
          {"relative_error", number(row.relative_error)}};
}

void print_rows(const CovarianceResult& result) {
  fmt::print("{} ({}), {} by {} elements; a copy reads and writes {:.4g} GB/s\n", result.device,
             result.model, result.n, result.n, result.copy_bytes_per_second / 1e9);
  fmt::print("{:>9} {:>10} {:>11} {:>13} {:>9} {:>10} {:>9}\n", "precision", "smoothness",
             "seconds", "Gelements/s", "GB/s", "% of copy", "error");
  for (const CovarianceRow& row : result.rows) {
    fmt::print("{:>9} {:10} {:11.4g} {:13.4g} {:9.4g} {:10.1f} {:9.1e}\n", to_string(row.precision),
               row.smoothness, row.seconds, row.elements_per_second / 1e9,
               row.bytes_per_second / 1e9, 100 * row.share_of_copy, row.relative_error);
  }
}

}  // namespace

int run_covariance(const bench::CovarianceBench& bench, const CommonOptions& common) {
  const RunOptions options = common.run_options();
  const CovarianceResult result = run_covariance_bench(bench, options);
  Json results = Json::array();
  for (const CovarianceRow& row : result.rows) results.push_back(row_json(row));
  const Json object = {
      {"benchmark", "covariance"}, {"device", result.device},
      {"model", result.model},     {"n", result.n},
      {"repeats", bench.repeats},  {"copy_bytes_per_second", result.copy_bytes_per_second},
      {"results", results}};
  return finish(common, {}, object, [&] { print_rows(result); });
}

}  // namespace strata::cli
