// strata bench cholesky: our rate beside a peer's, in one run.

#include <fmt/format.h>

#include "bench/cholesky_bench.hpp"
#include "cli/app.hpp"

namespace strata::cli {
namespace {

using nlohmann::json;

struct BenchArguments {
  bench::CholeskyBench bench;
  std::string precision = "fp64";
};

json row_json(const bench::CholeskyBenchRow& row) {
  json object = to_json(row.run);
  object["all_seconds"] = row.seconds;
  object["source_seconds"] = row.source_seconds;
  object["residual"] = row.residual;
  if (!row.peer.name.empty()) {
    object["peer"] = {{"name", row.peer.name},
                      {"what", row.peer.what},
                      {"seconds", row.peer.seconds},
                      {"all_seconds", row.peer.all_seconds},
                      {"flops_per_second", row.run.flops / row.peer.seconds}};
    object["ratio_to_peer"] = row.peer.seconds / row.run.seconds;
  }
  return object;
}

void print_rows(const std::vector<bench::CholeskyBenchRow>& rows) {
  fmt::print("{:>8} {:>6} {:22} {:>10} {:>11} {:>11} {:>9} {:>7} {:>11} {:>7}\n", "n", "tile",
             "policy", "seconds", "GFLOP/s", "predicted", "plan %", "floor x", "peer", "ratio");
  for (const bench::CholeskyBenchRow& row : rows) {
    const RunReport& run = row.run;
    const double floor =
        static_cast<double>(run.traffic.total()) /
        static_cast<double>(std::max<std::int64_t>(1, run.planned_traffic.floor_bytes));
    const std::string peer =
        row.peer.name.empty() ? "" : fmt::format("{:.1f}", run.flops / row.peer.seconds / 1e9);
    const std::string ratio =
        row.peer.name.empty() ? "" : fmt::format("{:.3f}", row.peer.seconds / run.seconds);
    fmt::print("{:8} {:6} {:22} {:10.4f} {:11.1f} {:11.4f} {:9.3f} {:7.2f} {:>11} {:>7}\n", run.n,
               run.tile, run.policy, run.seconds, run.flops / run.seconds / 1e9,
               run.predicted_seconds, 100 * run.plan_seconds / run.seconds, floor, peer, ratio);
    if (!(run.traffic == run.planned_traffic))
      fmt::print("         traffic differs from the plan\n");
  }
  if (!rows.empty() && !rows[0].peer.name.empty())
    fmt::print("peer: {} ({})\n", rows[0].peer.name, rows[0].peer.what);
}

int run_bench(const BenchArguments& arguments, const CommonOptions& common) {
  bench::CholeskyBench bench = arguments.bench;
  bench.precision = arguments.precision == "fp32" ? Precision::fp32 : Precision::fp64;
  bench.seed = common.seed;
  const Options options = common.to_options();
  check_outputs(common, {}, {common.rates});
  const auto rows = run_cholesky_bench(bench, options);
  json results = json::array();
  for (const auto& row : rows) results.push_back(row_json(row));
  const json object = {{"benchmark", "cholesky"},
                       {"precision", arguments.precision},
                       {"repeats", bench.repeats},
                       {"results", results}};
  ReportData data;
  data.title = "Cholesky benchmark";
  data.run = rows.back().run;
  return finish(common, std::move(data), object, [&] { print_rows(rows); });
}

}  // namespace

void add_bench(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb = app.add_subcommand("bench", "benchmarks, with peers beside them");
  verb->require_subcommand(1);
  CLI::App* algorithm = verb->add_subcommand("cholesky", "dense tile Cholesky");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->bench.sizes = {8192};
  common.add_to(*algorithm);
  algorithm->add_option("--n", arguments->bench.sizes, "orders, separated by commas")
      ->delimiter(',')
      ->check(positive_number())
      ->capture_default_str();
  algorithm->add_option("--precision", arguments->precision, "fp64 or fp32")
      ->check(CLI::IsMember({"fp64", "fp32"}));
  algorithm->add_option("--repeats", arguments->bench.repeats, "runs of which the median counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  algorithm->add_option("--peer", arguments->bench.peer, "openblas or cusolver")
      ->check(CLI::IsMember({"openblas", "cusolver"}));
  algorithm
      ->add_option("--peer-threads", arguments->bench.peer_threads,
                   "threads of openblas (default: all cores)")
      ->check(CLI::Range(1, 1024));
  algorithm->add_flag("--calibrate", arguments->bench.calibrate,
                      "measure rates for the tile first, and predict with them");
  algorithm->callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_bench(*arguments, common); };
  });
}

}  // namespace strata::cli
