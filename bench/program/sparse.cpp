// strata bench sparse: sparse Cholesky factorization beside CHOLMOD and cuDSS.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/output_file.hpp"
#include "bench/program/program.hpp"
#include "bench/program/sparse_methods.hpp"
#include "bench/sparse_matrices.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"
#include "kernels/backend/blas_table.hpp"

namespace strata::cli {
namespace {

using bench::CholmodLibrary;
using bench::CudssPeer;
using bench::SparseRow;
using bench::SparseSolver;
using bench::SparseTiming;
using bench::WidthBin;

/// The peers, or why there are none.
struct PeerOf {
  std::optional<CholmodLibrary> library;
  std::string why;
  std::optional<CudssPeer> cudss;
  std::string why_no_cudss;
};

/// Loads a peer, unless another, or none, is asked for; why it is not there.
template <class Peer, class From>
std::string load_peer(const std::string& asked, const std::string& name, const From& from,
                      std::optional<Peer>& peer) {
  if (!asked.empty() && asked != name) return "not asked for";
  try {
    peer.emplace(from);
    return {};
  } catch (const Error& error) {
    if (asked == name || error.kind() != ErrorKind::device) throw;
    return fmt::format("not installed: {}", error.what());
  }
}

PeerOf peer_of(const SparseBenchArguments& a, const CommonOptions& common) {
  PeerOf peer;
  peer.why = load_peer(a.peer, "cholmod", a.peer_threads, peer.library);
  peer.why_no_cudss = load_peer(a.peer, "cudss", common.devices, peer.cudss);
  return peer;
}

bool has_there(const SparseSolver& solver) { return !solver.refactor_there.all_seconds.empty(); }

/// Its seconds over ours, of a refactorization with values on the GPU.
double cudss_speedup(const SparseRow& row) {
  return row.cudss->refactor_there.seconds / row.ours.refactor_there.seconds;
}

// ---- JSON

Json timing_json(const SparseTiming& timing) {
  return {{"seconds", timing.seconds},
          {"cpu_seconds", timing.cpu_seconds},
          {"all_seconds", timing.all_seconds}};
}

Json solver_json(const SparseSolver& solver) {
  const bool definite = solver.bad_row < 0;
  Json object = {{"flops", solver.flops},           {"factor_entries", solver.factor_entries},
                 {"supernodes", solver.supernodes}, {"panel_bytes", solver.panel_bytes},
                 {"bad_row", solver.bad_row},       {"analysis", timing_json(solver.analysis)}};
  if (!definite) return object;
  object.update({{"factor", timing_json(solver.factor)},
                 {"refactor", timing_json(solver.refactor)},
                 {"solve", timing_json(solver.solve)},
                 {"solve_many", timing_json(solver.solve_many)},
                 {"flops_per_second", solver.flops_per_second()},
                 {"log_determinant", number(solver.log_determinant)},
                 {"backward_error", number(solver.backward_error)}});
  if (has_there(solver))
    object["on_device"] = {{"refactor", timing_json(solver.refactor_there)},
                           {"solve", timing_json(solver.solve_there)},
                           {"solve_many", timing_json(solver.solve_many_there)}};
  return object;
}

Json cudss_json(const SparseRow& row) {
  Json object = solver_json(*row.cudss);
  for (const char* unknown :
       {"flops", "flops_per_second", "supernodes", "panel_bytes", "log_determinant"})
    object.erase(unknown);
  if (row.fine() && has_there(row.ours)) object["ratio"] = cudss_speedup(row);
  return object;
}

Json row_json(const SparseRow& row) {
  Json object = {{"matrix", row.name},
                 {"n", row.n},
                 {"entries_lower", row.entries},
                 {"ordering", to_string(row.ordering)},
                 {"stored_flops", row.stored_flops},
                 {"levels", std::ssize(row.levels)},
                 {"ours", solver_json(row.ours)},
                 {"disagreement", row.disagreement}};
  if (row.ours.bad_row < 0) object["run"] = to_json(row.report);
  if (!row.methods.empty()) object["methods"] = methods_json(row);
  if (row.cudss) object["cudss"] = cudss_json(row);
  if (!row.peer) return object;
  object["peer"] = solver_json(*row.peer);
  object["peer"]["own_flops"] = row.peer->own_flops;
  object["peer"]["analysis_given"] = timing_json(row.peer->analysis_given);
  if (row.fine()) object["ratio_to_peer"] = row.speedup();
  return object;
}

Json figures_json(const SparseRow& row) {
  Json widths = Json::array();
  for (const WidthBin& bin : row.widths)
    widths.push_back({{"width_max", bin.width_max},
                      {"supernodes", bin.supernodes},
                      {"multifrontal_calls", bin.multifrontal_calls},
                      {"left_looking_calls", bin.left_looking_calls},
                      {"flops", bin.flops}});
  Json levels = Json::array();
  for (const TreeLevel& level : row.levels)
    levels.push_back({{"supernodes", level.supernodes}, {"flops", level.flops}});
  return {{"matrix", row.name}, {"widths", std::move(widths)}, {"levels", std::move(levels)}};
}

Json blas_json(const std::string& file, const std::string& kernels, int threads) {
  return {{"file", file}, {"kernels", kernels}, {"threads", threads}};
}

Json peer_json(const PeerOf& peer) {
  if (!peer.library) return {{"installed", false}, {"why", peer.why}};
  const bench::CholmodAbout& about = peer.library->about();
  return {{"installed", true},
          {"name", "CHOLMOD"},
          {"version", about.version},
          {"openmp_threads", about.openmp_threads},
          {"blas", blas_json(about.blas, about.blas_kernels, about.blas_threads)}};
}

Json cudss_about_json(const PeerOf& peer) {
  if (!peer.cudss) return {{"installed", false}, {"why", peer.why_no_cudss}};
  return {{"installed", true}, {"version", peer.cudss->version()}};
}

// ---- text

std::string kernels_text(const std::string& kernels) {
  return kernels.empty() ? "kernels not known" : kernels + " kernels";
}

void print_head(const PeerOf& peer) {
  const BlasDescription& ours = host_blas().about;
  fmt::print("ours on CPUs: {}, {}, one thread a call\n", ours.file, kernels_text(ours.kernels));
  if (peer.library) {
    const bench::CholmodAbout& about = peer.library->about();
    fmt::print("peer: CHOLMOD {} with {}, {}, {} threads, of OpenMP at most {}\n", about.version,
               about.blas, kernels_text(about.blas_kernels), about.blas_threads,
               about.openmp_threads);
  } else {
    fmt::print("peer: CHOLMOD {}\n", peer.why);
  }
  if (peer.cudss)
    fmt::print("peer: cuDSS {}\n", peer.cudss->version());
  else
    fmt::print("peer: cuDSS {}\n", peer.why_no_cudss);
  fmt::print(
      "seconds, and in brackets those of all threads on a processor; "
      "rates by the flops of L, without stored zeros\n");
  fmt::print("{:<22} {:<8} {:>16} {:>16} {:>16} {:>8} {:>16} {:>16} {:>8} {:>6}\n", "", "",
             "analysis", "first factor", "refactor", "GFLOP/s", "solve 1", "solve many", "error",
             "ratio");
}

std::string timing_text(const SparseTiming& timing) {
  return fmt::format("{:.3g} ({:.2g})", timing.seconds, timing.cpu_seconds);
}

void print_solver(const char* who, const SparseSolver& solver, const std::string& ratio) {
  fmt::print("{:<22} {:<8} {:>16} {:>16} {:>16} {:>8.3g} {:>16} {:>16} {:>8.1e} {:>6}\n", "", who,
             timing_text(solver.analysis), timing_text(solver.factor), timing_text(solver.refactor),
             solver.flops_per_second() / 1e9, timing_text(solver.solve),
             timing_text(solver.solve_many), solver.backward_error, ratio);
}

/// Rates by the operations of our L.
void print_there(const SparseSolver& solver, double flops) {
  if (!has_there(solver)) return;
  fmt::print(
      "  values and vectors on the GPU: refactor {:.4g} s, {:.4g} GFLOP/s; solves {:.4g} and "
      "{:.4g} s\n",
      solver.refactor_there.seconds, flops / solver.refactor_there.seconds / 1e9,
      solver.solve_there.seconds, solver.solve_many_there.seconds);
}

void print_row(const SparseRow& row) {
  fmt::print("{}: order {}, {} entries below and on the diagonal, by {}\n", row.name, row.n,
             row.entries, to_string(row.ordering));
  fmt::print("  L: {:.0f} entries, {:.4g} flops; {} supernodes, {}", row.ours.factor_entries,
             row.ours.flops, row.ours.supernodes, format_bytes(row.ours.panel_bytes));
  if (row.peer)
    fmt::print("; CHOLMOD: {} supernodes, {}, {:.4g} flops by its own METIS", row.peer->supernodes,
               format_bytes(row.peer->panel_bytes), row.peer->own_flops);
  fmt::print("\n");
  if (row.ours.bad_row >= 0) {
    fmt::print("  not positive definite: row {}\n", row.ours.bad_row);
    return;
  }
  print_solver("ours", row.ours,
               row.fine() && row.peer ? fmt::format("{:.3g}", row.speedup()) : "");
  print_there(row.ours, row.ours.flops);
  if (row.peer && row.peer->bad_row < 0) print_solver("CHOLMOD", *row.peer, "");
  if (row.cudss && row.cudss->bad_row < 0) {
    fmt::print("  cuDSS: {:.0f} entries in L\n", row.cudss->factor_entries);
    SparseSolver rated = *row.cudss;  // by the operations of our L
    rated.flops = row.ours.flops;
    print_solver("cuDSS", rated, "");
    print_there(*row.cudss, row.ours.flops);
    if (row.fine() && has_there(row.ours))
      fmt::print("  refactorization by cuDSS takes {:.3g} times as long\n", cudss_speedup(row));
  }
  fmt::print("  log-determinant {:.15g}", row.ours.log_determinant);
  if (row.peer) fmt::print(", CHOLMOD {:.15g}", row.peer->log_determinant);
  fmt::print("\n");
  std::fflush(stdout);
}

// ---- the page

ReportBars width_bars(const SparseRow& row) {
  ReportBars bars{
      fmt::format("{}: operations by inner dimension", row.name), "flops", {"operations"}, {}};
  for (const WidthBin& bin : row.widths)
    bars.bars.push_back({fmt::format("up to {}", bin.width_max), {bin.flops}});
  return bars;
}

ReportChart call_chart(const SparseRow& row) {
  ReportChart chart{fmt::format("{}: BLAS calls by inner dimension", row.name),
                    "inner dimension, at most",
                    "calls",
                    {{"multifrontal", {}, {}}, {"left-looking", {}, {}}},
                    AxisScale::logarithmic,
                    AxisScale::logarithmic};
  for (const WidthBin& bin : row.widths) {
    for (ReportSeries& line : chart.series) line.x.push_back(static_cast<double>(bin.width_max));
    chart.series[0].y.push_back(static_cast<double>(bin.multifrontal_calls));
    chart.series[1].y.push_back(static_cast<double>(bin.left_looking_calls));
  }
  return chart;
}

ReportTable width_table(const SparseRow& row) {
  ReportTable table{
      fmt::format("{}: supernodes and calls by inner dimension", row.name),
      {"inner dimension", "supernodes", "calls, multifrontal", "calls, left-looking", "flops"},
      {}};
  for (const WidthBin& bin : row.widths)
    table.rows.push_back({fmt::format("up to {}", bin.width_max), fmt::format("{}", bin.supernodes),
                          fmt::format("{}", bin.multifrontal_calls),
                          fmt::format("{}", bin.left_looking_calls),
                          fmt::format("{:.3g}", bin.flops)});
  return table;
}

/// A number of each level.
ReportChart level_chart(const SparseRow& row, const std::string& what,
                        double (*of)(const TreeLevel&)) {
  ReportChart chart{fmt::format("{}: {} by level", row.name, what),
                    "level, from the leaves",
                    what,
                    {{what, {}, {}}},
                    AxisScale::linear,
                    AxisScale::logarithmic};
  for (std::size_t k = 0; k < row.levels.size(); ++k) {
    chart.series[0].x.push_back(static_cast<double>(k));
    chart.series[0].y.push_back(of(row.levels[k]));
  }
  return chart;
}

/// "hex" of "hex:10".
std::string family_of(const std::string& name) {
  const bool is_file = is_called(name, ".mtx") || is_called(name, ".npy");
  return is_file ? "files" : name.substr(0, name.find(':'));
}

/// A point for each matrix that `speedup` has a number for, a line for each family.
ReportChart speedup_chart(const std::vector<SparseRow>& rows, const std::string& peer,
                          std::optional<double> (*speedup)(const SparseRow&)) {
  ReportChart chart{"Speedup over " + peer, "flops of L", "its seconds over ours", {}};
  std::vector<const SparseRow*> sorted;
  for (const SparseRow& row : rows)
    if (row.fine() && speedup(row)) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(),
            [](const SparseRow* a, const SparseRow* b) { return a->ours.flops < b->ours.flops; });
  for (const SparseRow* row : sorted) {
    const std::string family = family_of(row->name);
    auto line = std::find_if(chart.series.begin(), chart.series.end(),
                             [&](const ReportSeries& other) { return other.name == family; });
    if (line == chart.series.end()) line = chart.series.insert(line, {family, {}, {}});
    line->x.push_back(row->ours.flops);
    line->y.push_back(*speedup(*row));
  }
  return chart;
}

/// Those of the peers that are there.
std::vector<ReportChart> speedup_charts(const std::vector<SparseRow>& rows) {
  std::vector<ReportChart> charts;
  charts.push_back(speedup_chart(rows, "CHOLMOD", [](const SparseRow& row) {
    return row.peer ? std::optional(row.speedup()) : std::nullopt;
  }));
  charts.push_back(speedup_chart(rows, "cuDSS", [](const SparseRow& row) {
    return row.cudss && has_there(row.ours) ? std::optional(cudss_speedup(row)) : std::nullopt;
  }));
  std::erase_if(charts, [](const ReportChart& chart) { return chart.series.empty(); });
  return charts;
}

ReportTable row_table(const std::vector<SparseRow>& rows) {
  ReportTable table{"Seconds",
                    {"matrix", "order", "flops of L", "", "analysis", "first factorization",
                     "factorization", "GFLOP/s", "solve"},
                    {}};
  const auto add = [&](const SparseRow& row, const char* who, const SparseSolver& solver) {
    table.rows.push_back(
        {row.name, fmt::format("{}", row.n), fmt::format("{:.3g}", solver.flops), who,
         timing_text(solver.analysis), timing_text(solver.factor), timing_text(solver.refactor),
         fmt::format("{:.3g}", solver.flops_per_second() / 1e9), timing_text(solver.solve)});
  };
  for (const SparseRow& row : rows) {
    if (!row.fine()) continue;
    add(row, "ours", row.ours);
    if (row.peer) add(row, "CHOLMOD", *row.peer);
  }
  return table;
}

ReportData page_of(const std::vector<SparseRow>& rows, bool collection) {
  ReportData data;
  data.title = "Sparse Cholesky factorization beside its peers";
  data.subtitle = rows.size() == 1 ? rows[0].name : fmt::format("{} matrices", rows.size());
  for (ReportChart& chart : speedup_charts(rows)) data.charts.push_back(std::move(chart));
  data.tables.push_back(row_table(rows));
  data.run = rows.back().report;
  if (collection) return data;  // so many matrices would each have three figures
  for (const SparseRow& row : rows) {
    data.bars.push_back(width_bars(row));
    data.charts.push_back(call_chart(row));
    data.charts.push_back(level_chart(row, "supernodes", [](const TreeLevel& level) {
      return static_cast<double>(level.supernodes);
    }));
    data.charts.push_back(
        level_chart(row, "operations", [](const TreeLevel& level) { return level.flops; }));
    data.tables.push_back(width_table(row));
  }
  return data;
}

Json object_of(const std::vector<SparseRow>& rows, const PeerOf& peer,
               const bench::SparseBench& bench, bool figures) {
  const BlasDescription& ours = host_blas().about;
  Json object = {
      {"benchmark", "sparse"},          {"repeats", bench.repeats},
      {"right_hand_sides", bench.nrhs}, {"blas", blas_json(ours.file, ours.kernels, ours.threads)},
      {"peer", peer_json(peer)},        {"cudss", cudss_about_json(peer)},
      {"results", Json::array()}};
  for (const SparseRow& row : rows) object["results"].push_back(row_json(row));
  for (const SparseRow& row : rows)
    if (figures) object["figures"].push_back(figures_json(row));
  return object;
}

/// The first matrix that is not as it should be, in one line.
int status_of_rows(const std::vector<SparseRow>& rows) {
  for (const SparseRow& row : rows) {
    if (row.fine()) continue;
    end_progress();
    fmt::print(stderr, "strata: {}: {}\n", row.name,
               row.disagreement.empty()
                   ? fmt::format("not positive definite: row {}", row.ours.bad_row)
                   : fmt::format("ours and a peer disagree: {}", row.disagreement));
    return kNumbersSaidNo;
  }
  return kDone;
}

}  // namespace

SparseMatrix bench_matrix(const std::string& name) {
  std::optional<SparseMatrix> generated = bench::generated_matrix(name);
  return generated ? std::move(*generated) : read_symmetric(name, "").matrix;
}

void SparseBenchArguments::add_to(Command& algorithm) {
  algorithm
      .add_list(
          "--matrix", matrices,
          "one or more, separated by commas: files .mtx, .npy or these .gz; or 2d5:N, 3d7:N, "
          "3d27:N (Laplacians on N points a side), hex:N (an elastic cube, N elements a side)")
      .capture_default_str();
  algorithm
      .add_option("--collection", collection,
                  "so many generated matrices of all families and several sizes instead")
      .check(in_range(1, 40));
  algorithm
      .add_option("--batch", batch,
                  "so many matrices of each pattern instead, factored and solved together, and "
                  "one by one beside")
      .check(in_range(1, 1'000'000));
  algorithm.add_option("--ordering", ordering, "metis, amd, natural or best, for both")
      .capture_default_str();
  algorithm.add_option("--repeats", bench.repeats, "runs of which the median counts")
      .check(in_range(1, 100))
      .capture_default_str();
  algorithm.add_option("--nrhs", bench.nrhs, "right-hand sides of the second solve")
      .check(in_range(1, 10'000))
      .capture_default_str();
  algorithm.add_flag("--once", bench.once,
                     "one analysis and one first factorization, whatever the repeats");
  algorithm
      .add_option(
          "--peer", peer,
          "cholmod, cudss or none (default: those that are installed, cuDSS where the first "
          "device is a GPU)")
      .check(one_of({"cholmod", "cudss", "none"}));
  algorithm
      .add_option("--peer-threads", peer_threads,
                  "of its BLAS, and at most of its loops (default: all cores)")
      .check(in_range(1, 1024));
  algorithm
      .add_option("--branches", branches,
                  "how ours factors on a GPU: by programs, or batched, level by level, which needs "
                  "a device that holds all")
      .check(one_of({"programs", "batched"}))
      .capture_default_str();
  algorithm.add_option("--level-batch", levels.batch, "small fronts of a batch, at most")
      .check(in_range(1, 1'000'000))
      .capture_default_str();
  algorithm.add_option("--streams", levels.streams, "of batched branches")
      .check(in_range(1, 64))
      .capture_default_str();
  algorithm.add_flag("--methods", bench.methods,
                     "also factor on the CPUs, level by level, one by one and batched, and measure "
                     "small fronts and products by batches and streams alone");
  algorithm.add_option("-o,--output", output, "also write the JSON object to this file");
  algorithm.add_option("--figures", figures,
                       "write a page: operations and BLAS calls by inner dimension, the levels of "
                       "the tree, speedup against the size");
}

int run_sparse_comparison(const SparseBenchArguments& arguments, const CommonOptions& common) {
  CommonOptions mine = common;
  if (!arguments.figures.empty()) mine.report = arguments.figures;
  const std::vector<std::string> names = arguments.collection > 0
                                             ? bench::matrix_collection(arguments.collection)
                                             : arguments.matrices;
  std::vector<std::string> inputs = names;
  inputs.push_back(common.rates);
  check_outputs(mine, {{"--output", arguments.output}}, inputs);
  bench::SparseBench bench = arguments.bench;
  bench.options.run = common.run_options();
  bench.options.tile = common.tile;
  bench.options.analysis.seed = common.seed;
  bench.options.analysis.ordering = parse_sparse_ordering(arguments.ordering);
  require(bench.options.analysis.ordering != SparseOrdering::given, ErrorKind::misuse, "cli",
          "--ordering given: an order of your own is for 'strata analyze'");
  const bool batched = arguments.branches == "batched";
  if (batched) bench.options.batches = arguments.levels;
  if (arguments.batch > 0) {
    require(!batched && !bench.methods, ErrorKind::misuse, "cli",
            "--batch has no --branches batched and no --methods");
    require(arguments.collection == 0 && arguments.figures.empty(), ErrorKind::misuse, "cli",
            "--batch has no collection and no figures");
    return run_batch_comparison(arguments, bench, common);
  }
  const PeerOf peer = peer_of(arguments, common);
  SmallRates rates;
  if (bench.methods) rates = measure_small_rates(bench.options.run);
  bench.levels = arguments.levels;
  std::vector<SparseRow> rows;
  for (const std::string& name : names) {
    const SparseMatrix matrix = bench_matrix(name);
    check_interrupt();
    rows.push_back(run_sparse_bench(name, matrix, bench, peer.library ? &*peer.library : nullptr,
                                    peer.cudss ? &*peer.cudss : nullptr));
    end_progress();
    if (rows.size() > 1) {
      rows[rows.size() - 2].report.trace = {};
      for (bench::SparseMethod& method : rows[rows.size() - 2].methods) method.trace = {};
    }
    if (common.json) continue;
    if (rows.size() == 1) print_head(peer);
    print_row(rows.back());
    print_methods(rows.back());
  }
  if (!common.json) print_small_rates(rates);
  const bool figures = !arguments.figures.empty();
  Json object = object_of(rows, peer, bench, figures);
  if (bench.methods) object["small"] = small_rates_json(rates);
  ReportData page = page_of(rows, arguments.collection > 0);
  add_method_figures(rows, rates, page);
  if (!arguments.output.empty()) {
    begin_output();
    OutputFile file(arguments.output);
    file.write(object.dump(2) + "\n");
    file.commit();
  }
  finish(mine, page, object, [&] {
    if (!arguments.output.empty()) fmt::print("results written to {}\n", arguments.output);
  });
  return status_of_rows(rows);
}

}  // namespace strata::cli
