// strata analyze A, and strata plan sparse A: what a sparse Cholesky factorization will take.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"
#include "matrix/symmetry.hpp"

namespace strata::cli {
namespace {

struct AnalyzeArguments {
  std::string matrix;
  std::string triangle;
  std::string output;              // of analyze
  std::string precision = "fp64";  // of a factor that is planned
  AnalysisArguments analysis;
};

std::vector<std::string> inputs_of(const AnalyzeArguments& a, const CommonOptions& common) {
  std::vector<std::string> inputs = a.analysis.inputs();
  inputs.insert(inputs.end(), {a.matrix, common.rates});
  return inputs;
}

std::string pattern_text(const PatternFingerprint& f) {
  return fmt::format("{:016x}{:016x}", f.hash[0], f.hash[1]);
}

double ratio(double a, double b) { return b > 0 ? a / b : 1; }

void print_analysis(const SparseAnalysis& a, const SummedEntries& summed) {
  const AnalysisCounts& c = a.counts;
  fmt::print("order {}, {} entries below the diagonal, pattern {}\n", a.fingerprint.order,
             a.fingerprint.entries, pattern_text(a.fingerprint));
  if (summed.count > 0)
    fmt::print(
        "  summed            {} entries were added to others at their places, the first at "
        "({}, {})\n",
        summed.count, summed.row, summed.col);
  if (c.empty_diagonals > 0)
    fmt::print(
        "  empty diagonals   {}, the first in row {} (counted from 0): not positive definite as it "
        "is\n",
        c.empty_diagonals, c.first_empty_diagonal);
  fmt::print("  ordering          {}\n", to_string(a.ordering));
  fmt::print("  L                 {} entries, {:.4g} flops\n", c.factor_entries, c.flops);
  fmt::print("  supernodes        {} ({} before amalgamation), the widest {} columns\n",
             a.supernodes(), c.fundamental_supernodes, c.widest);
  fmt::print("  tree              {} levels, {:.1f} % of the flops on the longest way\n", c.height,
             100 * ratio(c.critical_flops, c.stored_flops));
  fmt::print("  panels            {}; entries {:.3f} times, flops {:.3f} times those of L\n",
             format_bytes(c.panel_bytes),
             ratio(static_cast<double>(c.stored_entries), static_cast<double>(c.factor_entries)),
             ratio(c.stored_flops, c.flops));
}

int run_analyze(const AnalyzeArguments& a, const CommonOptions& common) {
  check_outputs(common, {{"--output", a.output}}, inputs_of(a, common));
  const AnalysisOptions options = a.analysis.to_options(common.seed);
  const SymmetricFile file = read_symmetric(a.matrix, a.triangle);
  check_interrupt();
  const SparseAnalysis analysis = analyze(file.matrix, options);
  begin_output();
  if (!a.output.empty()) save_analysis(analysis, a.output);
  return finish(common, {}, to_json(analysis, file.summed), [&] {
    print_analysis(analysis, file.summed);
    fmt::print("  time              {:.3g} s: pattern {:.3g}, ordering {:.3g}, symbolic {:.3g}\n",
               analysis.seconds.total(), analysis.seconds.pattern, analysis.seconds.ordering,
               analysis.seconds.symbolic);
    if (!a.output.empty()) fmt::print("analysis written to {}\n", a.output);
  });
}

// ---- plan

/// What fits on the devices as whole branches, and what is above them.
struct Branches {
  std::int64_t count = 0;
  double flops = 0;
};

Branches branches_of(const SparseAnalysis& a, std::int64_t bytes) {
  Branches result;
  for (const std::int32_t top : branches_within(a, bytes)) {
    ++result.count;
    for (std::int32_t s = a.branch[static_cast<std::size_t>(top)]; s <= top; ++s)
      result.flops += a.flops(s);
  }
  return result;
}

void print_levels(const SparseAnalysis& a) {
  constexpr std::size_t kShown = 40;
  const std::vector<TreeLevel> levels = tree_levels(a);
  fmt::print("  {:>7}{:>12}{:>12}{:>9}{:>13}{:>12}\n", "level", "supernodes", "columns", "widest",
             "panels", "flops");
  for (std::size_t k = 0; k < std::min(kShown, levels.size()); ++k) {
    const TreeLevel& level = levels[k];
    fmt::print("  {:>7}{:>12}{:>12}{:>9}{:>13}{:>12.3g}\n", k, level.supernodes, level.columns,
               level.widest, format_bytes(level.panel_bytes), level.flops);
  }
  if (levels.size() > kShown) fmt::print("  … {} more with --json\n", levels.size() - kShown);
}

void print_plan(const SparseAnalysis& a, const Machine& machine, const Branches& branches,
                Element element) {
  const AnalysisCounts& c = a.counts;
  print_levels(a);
  const auto bytes = [&](std::int64_t in_fp64) {
    return format_bytes(in_fp64 / bytes_of(Element::fp64) * bytes_of(element));
  };
  fmt::print("  {:18}{:>14} for the factor in {}\n", "memory", bytes(c.panel_bytes),
             to_string(element));
  fmt::print("  {:18}{:>14} multifrontal: updates and a panel, at most\n", "",
             bytes(c.stack_bytes));
  fmt::print("  {:18}{:>14} left-looking: the largest product\n", "", bytes(c.product_bytes));
  fmt::print("  {:18}{:>14} the largest panel\n", "", bytes(c.largest_panel_bytes));
  fmt::print("  {:18}{:>14} with {:.1f} % of the flops fit {} each\n", "branches", branches.count,
             100 * ratio(branches.flops, c.stored_flops),
             format_bytes(machine.devices.front().memory_bytes));
}

/// What the schedule makes of it on the machine, and of a solve of one right-hand side.
struct SimulatedRun {
  RunReport factor, solve;
};

SimulatedRun simulated_run(const SparseAnalysis& a, const SparseMatrix& matrix,
                           const Machine& machine, const CommonOptions& common,
                           const RunOptions& run, Element element) {
  SparseCholeskyOptions options;
  options.run = run;
  options.precision = element;
  options.tile = common.tile;
  return {simulate_sparse_cholesky(a, matrix, machine, options),
          simulate_sparse_solve(a, matrix, machine, 1, options)};
}

/// Its rate is that of the flops of L, which are printed above.
void print_simulated(const SimulatedRun& run, double flops, bool measured_rates) {
  const RunReport& report = run.factor;
  const double seconds = report.predicted_seconds.value_or(0);
  fmt::print("  {:18}{:>12.3g} s by the schedule ({:.1f} GFLOP/s{}), {} tasks\n", "predicted",
             seconds, seconds > 0 ? flops / seconds / 1e9 : 0,
             measured_rates ? "" : "; nominal rates", report.tasks);
  print_traffic(report, false);
  fmt::print("  {:18}{:>14} on each device\n", "peak memory",
             format_bytes(report.peak_device_bytes));
  fmt::print("  {:18}{:>14} for the factor\n", "host memory", format_bytes(report.host_bytes));
  if (run.solve.path.empty()) return fmt::print("  {:18}{:>14} by the host\n", "solves", "");
  fmt::print("  a solve of one right-hand side\n");
  print_traffic(run.solve, false);
}

ReportData analysis_report(const SparseAnalysis& a, const AnalyzeArguments& arguments,
                           const RunReport& run) {
  ReportData data;
  data.title =
      fmt::format("Plan of a sparse Cholesky factorization of order {}", a.fingerprint.order);
  data.subtitle = fmt::format("{}, {} supernodes, ordered by {}", arguments.matrix, a.supernodes(),
                              to_string(a.ordering));
  data.figures = {{"Flops", fmt::format("{:.3g}", a.counts.flops), "", "of L"},
                  {"Entries of L", fmt::format("{:.3g}", double(a.counts.factor_entries)), "", ""},
                  {"Factor", format_bytes(a.counts.panel_bytes), "", "as panels"}};
  if (run.predicted_seconds)
    data.figures.push_back(
        {"Predicted", fmt::format("{:.3g}", *run.predicted_seconds), "s", "by the schedule"});
  data.tree = tree_of(a);
  data.run = run;
  data.simulated = true;
  return data;
}

int run_plan_sparse(const AnalyzeArguments& arguments, const CommonOptions& common) {
  const RunOptions run = common.run_options();
  check_outputs(common, {}, inputs_of(arguments, common));
  const Machine machine = machine_of(common, run);
  const SymmetricFile file = read_symmetric(arguments.matrix, arguments.triangle);
  check_interrupt();
  const SparseAnalysis a = analysis_of(arguments.analysis, file.matrix, common.seed);
  const Branches branches = branches_of(a, machine.devices.front().memory_bytes);
  const Element element = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  const SimulatedRun simulated = simulated_run(a, file.matrix, machine, common, run, element);
  Json object = to_json(a, file.summed);
  object["precision"] = to_string(element);
  Json names = Json::array();
  for (const DeviceModel& device : machine.devices) names.push_back(device.name);
  object["devices"] = std::move(names);
  if (simulated.factor.predicted_seconds)
    object["predicted_seconds"] = number(*simulated.factor.predicted_seconds);
  object["branches"] = {{"device_memory_bytes", machine.devices.front().memory_bytes},
                        {"count", branches.count},
                        {"flops", branches.flops}};
  object["simulated"] = to_json(simulated.factor);
  if (!simulated.solve.path.empty()) object["solve"] = to_json(simulated.solve);
  return finish(common, analysis_report(a, arguments, simulated.factor), object, [&] {
    print_analysis(a, file.summed);
    print_plan(a, machine, branches, element);
    print_simulated(simulated, a.counts.flops, run.rates.has_value());
  });
}

/// What the file holds, were it declared symmetric.
const char* triangle_of(const SparseMatrix& a) {
  bool below = false;
  bool above = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    for (auto k = static_cast<std::size_t>(a.start[i]);
         k < static_cast<std::size_t>(a.start[i + 1]); ++k) {
      const auto j = static_cast<std::size_t>(a.column[k]);
      if (j != i && a.value[k] != 0) (j < i ? below : above) = true;
    }
  }
  return below == above ? nullptr : below ? "lower" : "upper";
}

void check_symmetric(const SparseMatrix& a, double tolerance, const std::string& path) {
  require(a.rows == a.cols, ErrorKind::misuse, "sparse", "{}: a {} by {} matrix is not square",
          path, a.rows, a.cols);
  const Asymmetry pair = find_asymmetry(a, tolerance);
  if (pair.found) fail_not_symmetric(path, pair, triangle_of(a));
}

}  // namespace

void fail_not_symmetric(const std::string& path, const Asymmetry& pair, const char* triangle) {
  fail(
      ErrorKind::numerical, "sparse",
      "{}: not symmetric: element ({}, {}) is {} and ({}, {}) is {}, counted from 0{}", path,
      pair.row, pair.col, pair.value, pair.col, pair.row, pair.transposed,
      triangle == nullptr
          ? "; solve --method gmres takes any square matrix"
          : fmt::format("; all it holds is one triangle: --triangle {} takes that as the symmetric "
                        "matrix",
                        triangle));
}

SymmetricFile symmetric_of(MatrixMarket m, const std::string& path) {
  require_real(m, path);
  require(!m.skew_symmetric, ErrorKind::numerical, "sparse",
          "{}: not symmetric: its file says skew-symmetric; solve --method gmres takes any square "
          "matrix",
          path);
  SymmetricFile file;
  file.matrix = m.is_array
                    ? m.to_sparse()
                    : sparse_from_entries(m.rows, m.cols, m.row, m.col, m.value, &file.summed);
  if (m.symmetric) return file;
  const bool single = is_called(path, ".npy") && NpyFile(path).precision() == Element::fp32;
  check_symmetric(file.matrix, single ? kSymmetryToleranceFp32 : kSymmetryTolerance, path);
  if (single) {  // the library would look for more digits than there are
    m.take_triangle(Triangle::lower, path);
    file.matrix = m.to_sparse();
  }
  return file;
}

SymmetricFile read_symmetric(const std::string& path, const std::string& triangle) {
  return symmetric_of(read_entries(path, triangle), path);
}

Json to_json(const SparseAnalysis& a, const SummedEntries& summed) {
  const AnalysisCounts& c = a.counts;
  Json levels = Json::array();
  for (const TreeLevel& level : tree_levels(a))
    levels.push_back({{"supernodes", level.supernodes},
                      {"columns", level.columns},
                      {"widest", level.widest},
                      {"panel_bytes", level.panel_bytes},
                      {"flops", level.flops}});
  return {{"n", a.fingerprint.order},
          {"entries_below_diagonal", a.fingerprint.entries},
          {"pattern", pattern_text(a.fingerprint)},
          {"summed_entries", summed.count},
          {"empty_diagonals", c.empty_diagonals},
          {"ordering", to_string(a.ordering)},
          {"flops", c.flops},
          {"factor_entries", c.factor_entries},
          {"stored_flops", c.stored_flops},
          {"stored_entries", c.stored_entries},
          {"fundamental_supernodes", c.fundamental_supernodes},
          {"supernodes", a.supernodes()},
          {"widest", c.widest},
          {"height", c.height},
          {"critical_flops", c.critical_flops},
          {"panel_bytes", c.panel_bytes},
          {"largest_panel_bytes", c.largest_panel_bytes},
          {"largest_update_bytes", c.largest_update_bytes},
          {"stack_bytes", c.stack_bytes},
          {"product_bytes", c.product_bytes},
          {"levels", std::move(levels)},
          {"seconds", a.seconds.total()},
          {"pattern_seconds", a.seconds.pattern},
          {"ordering_seconds", a.seconds.ordering},
          {"symbolic_seconds", a.seconds.symbolic}};
}

ReportTree tree_of(const SparseAnalysis& a) {
  ReportTree tree;
  tree.title = "Elimination tree";
  tree.weight_label = "flops";
  tree.parent = a.parent;
  tree.weight.reserve(a.parent.size());
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    tree.weight.push_back(a.flops(s));
    tree.label.push_back(fmt::format("{} columns, {} rows below", a.width(s), a.row_count(s)));
  }
  return tree;
}

AnalysisOptions AnalysisArguments::to_options(std::uint64_t seed) const {
  AnalysisOptions result = options;
  result.seed = seed;
  const bool is_file = is_called(ordering, ".npy") || is_called(ordering, ".mtx");
  require(is_file || ordering != "given", ErrorKind::misuse, "options",
          "--ordering given: name the file of the order, .npy or .mtx");
  result.ordering = is_file ? SparseOrdering::given : parse_sparse_ordering(ordering);
  if (is_file) {
    const std::vector<std::int64_t> rows = read_rows(ordering);
    result.order.assign(rows.begin(), rows.end());
  }
  return result;
}

SparseAnalysis analysis_of(const AnalysisArguments& arguments, const SparseMatrix& matrix,
                           std::uint64_t seed) {
  if (arguments.saved.empty()) return analyze(matrix, arguments.to_options(seed));
  SparseAnalysis analysis = load_analysis(arguments.saved);
  require_same_pattern(analysis, matrix);
  return analysis;
}

void AnalysisArguments::add_to(Command& verb) {
  added.push_back(
      verb.add_option("--ordering", ordering,
                      "metis, amd, natural, best (of metis and amd the one with fewer flops), or a "
                      "file .npy or .mtx of rows, from 0, in the order of elimination")
          .capture_default_str());
  added.push_back(verb.add_option("--relax-bytes", options.relax_bytes,
                                  "zeros that a supernode may store, of its entries in L")
                      .check(nonnegative_number())
                      .capture_default_str());
  added.push_back(
      verb.add_option("--relax-flops", options.relax_flops,
                      "operations that a supernode may add, of those of its columns in L")
          .check(nonnegative_number())
          .capture_default_str());
  added.push_back(
      verb.add_option("--relax-entries", options.relax_entries, "zeros that it may store beside")
          .check(nonnegative_number())
          .capture_default_str());
  added.push_back(verb.add_option("--relax-rows", options.relax_rows,
                                  "and more for each of up to 512 rows below its columns")
                      .check(nonnegative_number())
                      .capture_default_str());
}

void AnalysisArguments::add_saved_to(Command& verb) {
  Option option =
      verb.add_option("--analysis", saved, "use what 'strata analyze -o' wrote for this pattern");
  for (Option other : added) option.excludes(other);
  added.push_back(option);
}

void add_analyze(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "analyze", "order of elimination, supernodes and costs of a sparse Cholesky factorization");
  add_examples(
      verb, {"strata analyze A.mtx -o A.analysis", "strata analyze A.mtx --ordering amd --json"});
  auto a = std::make_shared<AnalyzeArguments>();
  verb.add_option("A", a->matrix, "symmetric matrix: .mtx, .npy or these .gz").required();
  add_triangle_to(verb, a->triangle);
  a->analysis.add_to(verb);
  verb.add_option("-o,--output", a->output, "where the analysis goes, to be used again");
  verb.add_option("--threads", a->analysis.options.threads,
                  "of the ordering, which has the same result on any number; 0: one for each core")
      .check(in_range(0, 1024))
      .capture_default_str();
  verb.add_option("--seed", common.seed, "of the ordering")
      .check(nonnegative_number())
      .capture_default_str();
  verb.add_flag("--json", common.json, "print one JSON object");
  verb.callback([&run, &common, a] { run = [&common, a] { return run_analyze(*a, common); }; });
}

void add_plan_sparse(Command& plan, CommonOptions& common, Run& run) {
  Command algorithm = plan.add_subcommand("sparse", "Cholesky of a sparse symmetric matrix");
  auto a = std::make_shared<AnalyzeArguments>();
  common.add_factor_options(algorithm);
  add_examples(algorithm, {"strata plan sparse A.mtx --devices emulated:2 --device-memory 4GiB"});
  algorithm.get_option("--devices")
      .description("auto, host:N, cuda:I,J, or emulated:N for N GPUs that need not exist");
  algorithm.add_option("A", a->matrix, "symmetric matrix: .mtx, .npy or these .gz").required();
  add_triangle_to(algorithm, a->triangle);
  a->analysis.add_to(algorithm);
  a->analysis.add_saved_to(algorithm);
  algorithm
      .add_option("--precision", a->precision, "of the factor: fp64, or fp32 in half the memory")
      .check(one_of({"fp64", "fp32"}))
      .capture_default_str();
  algorithm.callback(
      [&run, &common, a] { run = [&common, a] { return run_plan_sparse(*a, common); }; });
}

}  // namespace strata::cli
