// strata bench lu: rates of LU beside LAPACK's.

#include <fmt/core.h>

#include "base/check.hpp"
#include "bench/lu_in_core.hpp"
#include "bench/lu_storage.hpp"
#include "bench/program/program.hpp"

namespace strata::cli {
namespace {

using bench::LuBenchRow;

Json row_json(const LuBenchRow& row) {
  Json object = to_json(row.run);
  object["all_seconds"] = row.seconds;
  object["call_seconds"] = row.call_seconds;
  object["growth"] = number(row.growth);
  object["hpl_residual"] = number(row.hpl_residual);
  if (!row.peer.name.empty()) {
    object["peer"] = {{"name", row.peer.name},
                      {"what", row.peer.what},
                      {"seconds", row.peer.seconds},
                      {"all_seconds", row.peer.all_seconds},
                      {"hpl_residual", number(*row.peer.residual)},
                      {"flops_per_second", row.run.flops / row.peer.seconds}};
    object["ratio_to_peer"] = row.peer.seconds / row.run.seconds;
  }
  return object;
}

void print_rows(const std::vector<LuBenchRow>& rows) {
  fmt::print("{:>8} {:>6} {:16} {:>9} {:>9} {:>10} {:>10} {:>8} {:>8} {:>9} {:>7} {:>9}\n", "n",
             "panel", "policy", "seconds", "call", "GFLOP/s", "predicted", "floor x", "residual",
             "peer", "ratio", "residual");
  for (const LuBenchRow& row : rows) {
    const RunReport& run = row.run;
    const bool peer = !row.peer.name.empty();
    const double floor =
        static_cast<double>(std::max<std::int64_t>(1, run.planned_traffic.floor_bytes));
    fmt::print(
        "{:8} {:6} {:16} {:9.4f} {:9.4f} {:10.1f} {:>10} {:8.2f} {:8.2g} {:>9} {:>7} {:>9}\n",
        run.n, run.tile, run.policy, run.seconds, row.call_seconds, run.flops / run.seconds / 1e9,
        run.predicted_seconds ? fmt::format("{:.4f}", *run.predicted_seconds) : "",
        static_cast<double>(run.traffic.total()) / floor, row.hpl_residual,
        peer ? fmt::format("{:.1f}", run.flops / row.peer.seconds / 1e9) : "",
        peer ? fmt::format("{:.3f}", row.peer.seconds / run.seconds) : "",
        peer ? fmt::format("{:.2g}", *row.peer.residual) : "");
    if (!(run.traffic == run.planned_traffic))
      fmt::print("         traffic differs from the plan\n");
  }
  if (!rows.empty() && !rows[0].peer.name.empty())
    fmt::print("peer: {} ({})\n", rows[0].peer.name, rows[0].peer.what);
}

}  // namespace

int run_lu_comparison(const bench::LuBench& bench, const CommonOptions& common) {
  const LuOptions options = lu_options_of(common.cholesky_options());
  check_outputs(common, {}, {common.rates});
  const std::vector<LuBenchRow> rows = run_lu_bench(bench, options);
  Json results = Json::array();
  for (const LuBenchRow& row : rows) results.push_back(row_json(row));
  const Json object = {{"benchmark", "lu"},
                       {"precision", to_string(bench.precision)},
                       {"repeats", bench.repeats},
                       {"results", results}};
  ReportData data;
  data.title = "LU benchmark";
  data.run = rows.back().run;
  return finish(common, std::move(data), object, [&] { print_rows(rows); });
}

int run_lu_mixed(const bench::LuBench& bench, const CommonOptions& common) {
  const LuOptions options = lu_options_of(common.cholesky_options());
  check_outputs(common, {}, {common.rates});
  const std::vector<bench::LuSolutionRow> rows = bench::run_lu_solutions(bench, options);
  Json results = Json::array();
  for (const bench::LuSolutionRow& row : rows) {
    results.push_back({{"n", row.n},
                       {"solver", row.solver},
                       {"factor_precision", row.factor_precision},
                       {"seconds", row.median_seconds},
                       {"all_seconds", row.seconds},
                       {"factor_seconds", row.factor_seconds},
                       {"solve_seconds", row.solve_seconds},
                       {"backward_error", number(row.backward_error)},
                       {"forward_error", number(row.forward_error)},
                       {"hpl_residual", number(row.hpl_residual)},
                       {"refinement_steps", row.steps},
                       {"gmres_iterations", row.gmres_iterations},
                       {"fallback", row.fallback}});
  }
  const Json object = {{"benchmark", "certified solutions by lu"}, {"results", results}};
  ReportData data;
  data.title = "Certified solutions by LU";
  return finish(common, std::move(data), object, [&] {
    fmt::print("{:>8} {:9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6}\n", "n", "solver",
               "factor", "seconds", "factor s", "solves s", "backward", "forward", "residual",
               "steps", "gmres");
    for (const bench::LuSolutionRow& row : rows) {
      fmt::print("{:8} {:9} {:>8} {:9.4g} {:9.4g} {:9.4g} {:9.2g} {:9.2g} {:9.2g} {:6} {:6}\n",
                 row.n, row.solver, row.factor_precision, row.median_seconds, row.factor_seconds,
                 row.solve_seconds, row.backward_error, row.forward_error, row.hpl_residual,
                 row.steps, row.gmres_iterations);
      if (!row.fallback.empty()) fmt::print("         in fp64 again: {}\n", row.fallback);
    }
    if (!rows.empty() && rows.back().solver == "cusolver")
      fmt::print(
          "cusolver: cusolverDnIRSXgesv, no error bounds; seconds with copies of A, \"factor s\" "
          "of "
          "the call alone\n");
  });
}

int run_lu_storage(const bench::LuBench& bench, const std::vector<std::string>& directories,
                   const CommonOptions& common) {
  LuOptions options = lu_options_of(common.cholesky_options());
  options.run.storage.directories = directories;
  check_outputs(common, {}, {common.rates});
  const std::vector<bench::LuStorageRow> rows = bench::run_lu_storage(bench, options);
  Json results = Json::array();
  for (const bench::LuStorageRow& row : rows) {
    Json object = to_json(row.run);
    object["total_seconds"] = row.total_seconds;
    object["read_bytes_per_second"] = row.read_rate;
    object["write_bytes_per_second"] = row.write_rate;
    object["bound_seconds"] = row.bound_seconds;
    object["solve_seconds"] = row.solve_seconds;
    object["largest_residual"] = number(row.largest_residual);
    object["hpl_residual"] = number(row.hpl_residual);
    object["growth"] = number(row.growth);
    object["how"] = row.how;
    if (!row.refusal.empty()) object["refusal"] = row.refusal;
    results.push_back(std::move(object));
  }
  const Json object = {{"benchmark", "lu in storage"}, {"results", results}};
  ReportData data;
  data.title = "LU in storage";
  data.run = rows.back().run;
  return finish(common, std::move(data), object, [&] {
    fmt::print("{:>8} {:>6} {:28} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9} {:>8} {:>8}\n", "n", "panel",
               "policy", "seconds", "of disks", "predicted", "GFLOP/s", "read GB", "written",
               "GB/s", "residual");
    for (const bench::LuStorageRow& row : rows) {
      const RunReport& run = row.run;
      fmt::print("{:8} {:6} {:28} {:9.4g} {:9.4g} {:>9} {:10.1f} {:9.3f} {:9.3f} {:>8} {:8.2g}\n",
                 row.n, run.tile, run.policy, run.seconds, row.bound_seconds,
                 run.predicted_seconds ? fmt::format("{:.4g}", *run.predicted_seconds) : "",
                 run.flops / run.seconds / 1e9,
                 static_cast<double>(run.traffic.storage_read_bytes) / 1e9,
                 static_cast<double>(run.traffic.storage_write_bytes) / 1e9,
                 fmt::format("{:.1f}/{:.1f}", row.read_rate / 1e9, row.write_rate / 1e9),
                 row.hpl_residual);
      fmt::print(
          "         {}; {:.4g} s with the passes over A; solved in {:.4g} s, max |Ax - b| {:.2g}\n",
          row.how, row.total_seconds, row.solve_seconds, row.largest_residual);
      if (!row.refusal.empty()) fmt::print("         refused: {}\n", row.refusal);
      if (!(run.traffic == run.planned_traffic))
        fmt::print("         traffic differs from the plan\n");
    }
  });
}

int run_lu_in_core_comparison(const bench::LuBench& bench, const CommonOptions& common) {
  const RunOptions run = common.cholesky_options().run;
  check_outputs(common, {}, {common.rates});
  const bench::LuInCoreResult result = run_lu_in_core(bench, run);
  Json results = Json::array();
  for (const bench::LuInCoreRow& row : result.rows) {
    Json object = {{"n", row.n},
                   {"seconds", row.seconds},
                   {"all_seconds", row.all_seconds},
                   {"flops", row.flops},
                   {"flops_per_second", row.flops / row.seconds},
                   {"residual", number(row.residual)}};
    if (!row.peer.name.empty()) {
      object["peer"] = {{"name", row.peer.name},
                        {"what", row.peer.what},
                        {"seconds", row.peer.seconds},
                        {"all_seconds", row.peer.all_seconds},
                        {"residual", number(*row.peer.residual)},
                        {"flops_per_second", row.flops / row.peer.seconds}};
      object["ratio_to_peer"] = row.peer.seconds / row.seconds;
      object["residual_ratio"] = number(row.residual / *row.peer.residual);
    }
    results.push_back(std::move(object));
  }
  Json object = {{"benchmark", bench.batch > 0 ? "getrf_batched" : "lu in core"},
                 {"precision", to_string(bench.precision)},
                 {"repeats", bench.repeats},
                 {"device", result.device},
                 {"model", result.model},
                 {"results", results}};
  if (bench.batch > 0) object["matrices"] = bench.batch;
  ReportData data;
  data.title = "LU in core";
  data.subtitle = fmt::format("{}, {}", result.device, result.model);
  return finish(common, std::move(data), object, [&] {
    fmt::print("{} ({}), in core, {}\n", result.device, result.model, to_string(bench.precision));
    fmt::print("{:>8} {:>11} {:>10} {:>10} {:>7} {:>9} {:>9}\n", "n", "seconds", "GFLOP/s", "peer",
               "ratio", "residual", "peer's");
    for (const bench::LuInCoreRow& row : result.rows) {
      const bool peer = !row.peer.name.empty();
      fmt::print("{:8} {:11.4g} {:10.1f} {:>10} {:>7} {:9.1e} {:>9}\n", row.n, row.seconds,
                 row.flops / row.seconds / 1e9,
                 peer ? fmt::format("{:.1f}", row.flops / row.peer.seconds / 1e9) : "",
                 peer ? fmt::format("{:.3f}", row.peer.seconds / row.seconds) : "", row.residual,
                 peer ? fmt::format("{:.1e}", *row.peer.residual) : "");
    }
    if (!result.rows.empty() && !bench.peer.empty())
      fmt::print("peer: {}\n", result.rows[0].peer.name);
  });
}

}  // namespace strata::cli
