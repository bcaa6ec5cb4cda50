// strata bench qr: passes over a tall matrix, beside one reading of it.

#include <fmt/format.h>

#include "cli/bench.hpp"

namespace strata::cli {
namespace {

using bench::QrBenchResult;
using bench::QrBenchRow;
using nlohmann::json;

void print_rows(const QrBenchResult& result) {
  fmt::print("{} ({}), {} rows\n", result.device, result.model, result.m);
  fmt::print("{:>5} {:<30} {:>11} {:>12}\n", "n", "", "ms", "times read");
  for (const QrBenchRow& row : result.rows)
    fmt::print("{:>5} {:<30} {:11.4g} {:12.4g}\n", row.n, row.what, 1e3 * row.seconds,
               row.times_read);
}

}  // namespace

int run_qr_kernels(const bench::QrBench& bench, const CommonOptions& common) {
  const QrBenchResult result = run_qr_bench(bench, common.to_options());
  json rows = json::array();
  for (const QrBenchRow& row : result.rows) {
    rows.push_back({{"n", row.n},
                    {"what", row.what},
                    {"seconds", row.seconds},
                    {"all_seconds", row.all_seconds},
                    {"times_read", row.times_read}});
  }
  const json object = {{"benchmark", "qr"}, {"device", result.device},  {"model", result.model},
                       {"m", result.m},     {"repeats", bench.repeats}, {"results", rows}};
  return finish(common, {}, object, [&] { print_rows(result); });
}

}  // namespace strata::cli
