// strata bench gmres: CA-GMRES beside GMRES.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "bench/block_errors.hpp"
#include "bench/program/program.hpp"
#include "bench/sparse_matrices.hpp"
#include "cli/krylov.hpp"

namespace strata::cli {
namespace {

using bench::BlockErrorRow;
using bench::FactorError;
using bench::GmresRow;

/// What the blocks of one s tell.
struct Blocks {
  std::int64_t s = 0;
  std::vector<BlockErrorRow> rows;
};

const std::vector<QrMethod> kBlockMethods{QrMethod::mgs,  QrMethod::cgs,         QrMethod::cholqr,
                                          QrMethod::svqr, QrMethod::cholqr_wide, QrMethod::tsqr};

SparseMatrix matrix_of(const GmresBenchArguments& a, std::string& name) {
  if (a.matrix == "laplacian") {
    const std::int64_t side = a.side > 0 ? a.side : 24;
    name = fmt::format("Laplacian, {0} x {0} x {0}", side);
    return bench::laplacian_matrix(side);
  }
  if (a.matrix == "cantilever") {
    const std::int64_t side = a.side > 0 ? a.side : 5;
    name = fmt::format("cantilever, {0} x {0} x {1} nodes", side, 32 * (side - 1) + 1);
    return bench::cantilever_matrix(side);
  }
  require(a.side == 0, ErrorKind::misuse, "cli", "--side {} is for laplacian and cantilever",
          a.side);
  name = a.matrix;
  return read_sparse(a.matrix);
}

Json row_json(const GmresRow& row) {
  Json history = Json::array();
  for (const KrylovCycle& cycle : row.info.history)
    history.push_back({{"vectors", cycle.vectors},
                       {"relative_residual", number(cycle.relative_residual)},
                       {"failed_cholesky", cycle.failed_cholesky}});
  Json object = to_json(row.info.report);
  object.update({{"s", row.s},
                 {"basis", to_string(row.basis)},
                 {"orthogonalization", to_string(row.method)},
                 {"block_orthogonalization", to_string(row.block)},
                 {"preconditioner", to_string(row.preconditioner)},
                 {"precision", to_string(row.precision)},
                 {"reductions", row.info.reductions},
                 {"ok", row.info.ok},
                 {"relative_residual", number(row.info.relative_residual)},
                 {"restarts", row.info.restarts},
                 {"iterations", row.info.iterations},
                 {"factorizations", row.info.factorizations},
                 {"failed_cholesky", row.info.failed_cholesky},
                 {"condition_max", number(row.info.condition_max)},
                 {"ghost_share", row.info.halo.ghost_share},
                 {"exchanges", row.info.halo.exchanges},
                 {"seconds", row.seconds},
                 {"all_seconds", row.all_seconds},
                 {"seconds_by_part", to_json(row.info.seconds)},
                 {"ratio", row.ratio},
                 {"history", std::move(history)}});
  return object;
}

Json error_json(const FactorError& error) {
  return {{"orthogonality", number(error.orthogonality)},
          {"residual", number(error.residual)},
          {"elementwise", number(error.elementwise)},
          {"failed_cholesky", error.failed}};
}

Json blocks_json(const Blocks& blocks) {
  Json rows = Json::array();
  for (const BlockErrorRow& row : blocks.rows)
    rows.push_back({{"step", row.step},
                    {"method", to_string(row.method)},
                    {"condition", number(row.condition)},
                    {"once", error_json(row.once)},
                    {"twice", error_json(row.twice)}});
  return {{"s", blocks.s}, {"results", std::move(rows)}};
}

void print_head(const std::string& matrix, std::int64_t rows, std::int64_t entries) {
  fmt::print("{}: {} unknowns, {} entries\n", matrix, rows, entries);
  fmt::print(
      "{:<52} {:>3} {:>8} {:>7} {:>6} {:>9} {:>9} {:>9} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7} "
      "{:>7}\n",
      "", "dev", "restarts", "vectors", "sums", "failed", "condition", "seconds", "ratio",
      "products", "project", "gram", "solve", "host", "rest");
}

void print_row(const GmresRow& row) {
  const KrylovSeconds& t = row.info.seconds;
  fmt::print(
      "{:<52} {:>3} {:>7}{} {:>7} {:>6} {:>4}/{:<4} {:>9.1e} {:>9.4g} {:>6.3g} {:>8.3g} {:>7.3g} "
      "{:>7.3g} "
      "{:>7.3g} {:>7.3g} {:>7.3g}\n",
      name_of(row), row.devices, row.info.restarts, row.info.ok ? ' ' : '+', row.info.iterations,
      row.info.reductions, row.info.failed_cholesky, row.info.factorizations,
      row.info.condition_max, row.seconds, row.ratio, t.products, t.projections, t.gram, t.solves,
      t.host, t.rest);
  std::fflush(stdout);
}

// ---- the page

ReportChart residual_chart(const std::vector<GmresRow>& rows) {
  ReportChart chart{"Residual by restart", "restart", "‖b − A·x‖ / ‖b‖", {}, AxisScale::linear,
                    AxisScale::logarithmic};
  for (const GmresRow& row : rows) {
    if (row.devices != rows.front().devices) continue;
    ReportSeries line{name_of(row), {}, {}};
    for (const KrylovCycle& cycle : row.info.history) {
      line.x.push_back(static_cast<double>(line.x.size() + 1));
      line.y.push_back(cycle.relative_residual);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

ReportBars time_bars(const std::vector<GmresRow>& rows) {
  ReportBars bars{"Time by part",
                  "s",
                  {"products with A", "projections", "Gram matrices", "solves", "host", "rest"},
                  {}};
  for (const GmresRow& row : rows) {
    const KrylovSeconds& t = row.info.seconds;
    bars.bars.push_back(
        {fmt::format("{}{}, {} restarts", name_of(row),
                     row.devices > 1 ? fmt::format(", {} devices", row.devices) : "",
                     row.info.restarts),
         {t.products, t.projections, t.gram, t.solves, t.host, std::max(t.rest, 0.0)}});
  }
  return bars;
}

/// Seconds against the number of devices.
ReportChart device_chart(const std::vector<GmresRow>& rows) {
  ReportChart chart{"Seconds by number of devices",
                    "devices",
                    "seconds",
                    {},
                    AxisScale::linear,
                    AxisScale::linear};
  std::map<std::string, ReportSeries> lines;
  for (const GmresRow& row : rows) {
    ReportSeries& line = lines[name_of(row)];
    line.name = name_of(row);
    line.x.push_back(static_cast<double>(row.devices));
    line.y.push_back(row.seconds);
  }
  for (auto& [name, line] : lines) chart.series.push_back(std::move(line));
  return chart;
}

/// Error of each block by the methods, with both bounds.
ReportChart block_chart(const Blocks& blocks, std::int64_t restart) {
  ReportChart chart{fmt::format("Orthogonality of each block, ({}, {})", blocks.s, restart),
                    "block",
                    "‖I − QᵀQ‖",
                    {},
                    AxisScale::linear,
                    AxisScale::logarithmic};
  ReportSeries plain{"ε·κ²", {}, {}};
  ReportSeries wide{"ε·κ", {}, {}};
  for (const QrMethod method : kBlockMethods) {
    ReportSeries line{std::string(to_string(method)), {}, {}};
    for (const BlockErrorRow& row : blocks.rows) {
      if (row.method != method) continue;
      const auto block = static_cast<double>(row.step + 1);
      line.x.push_back(block);
      line.y.push_back(row.once.orthogonality);
      if (method != kBlockMethods.front()) continue;
      plain.x.push_back(block);
      plain.y.push_back(bench::bound_of_plain(row.condition));
      wide.x.push_back(block);
      wide.y.push_back(bench::bound_of_wide(row.condition));
    }
    chart.series.push_back(std::move(line));
  }
  chart.series.push_back(std::move(plain));
  chart.series.push_back(std::move(wide));
  return chart;
}

ReportTable error_table(const Blocks& blocks, std::int64_t restart) {
  ReportTable table{fmt::format("Means over the blocks of ({}, {})", blocks.s, restart),
                    {"method", "failed", "‖I − QᵀQ‖", "twice", "‖V − QR‖/‖V‖", "twice",
                     "element by element", "twice"},
                    {}};
  for (const QrMethod method : kBlockMethods) {
    FactorError once;
    FactorError twice;
    double count = 0;
    int failed = 0;
    for (const BlockErrorRow& row : blocks.rows) {
      if (row.method != method) continue;
      count += 1;
      failed += row.once.failed ? 1 : 0;
      for (auto [sum, error] : {std::pair(&once, &row.once), {&twice, &row.twice}}) {
        sum->orthogonality += error->orthogonality;
        sum->residual += error->residual;
        sum->elementwise += error->elementwise;
      }
    }
    if (count == 0) continue;
    const auto mean = [count](double sum) { return fmt::format("{:.1e}", sum / count); };
    table.rows.push_back({std::string(to_string(method)), fmt::format("{}", failed),
                          mean(once.orthogonality), mean(twice.orthogonality), mean(once.residual),
                          mean(twice.residual), mean(once.elementwise), mean(twice.elementwise)});
  }
  return table;
}

ReportTable row_table(const std::vector<GmresRow>& rows) {
  ReportTable table{
      "Restarts and seconds",
      {"", "devices", "restarts", "vectors", "sums over rows", "failed factorizations",
       "largest condition", "seconds", "GMRES with CGS2 over this"},
      {}};
  for (const GmresRow& row : rows)
    table.rows.push_back(
        {name_of(row), fmt::format("{}", row.devices),
         fmt::format("{}{}", row.info.restarts, row.info.ok ? "" : " (not converged)"),
         fmt::format("{}", row.info.iterations), fmt::format("{}", row.info.reductions),
         fmt::format("{} of {}", row.info.failed_cholesky, row.info.factorizations),
         fmt::format("{:.1e}", row.info.condition_max), fmt::format("{:.3g}", row.seconds),
         fmt::format("{:.2f}", row.ratio)});
  return table;
}

ReportData page_of(const std::vector<GmresRow>& rows, const std::vector<Blocks>& blocks,
                   const std::string& matrix, std::int64_t restart) {
  ReportData data;
  data.title = "CA-GMRES beside GMRES";
  data.subtitle = fmt::format("{}, restart {}", matrix, restart);
  for (const Blocks& of_s : blocks) {
    if (of_s.rows.empty()) continue;
    data.charts.push_back(block_chart(of_s, restart));
    data.tables.push_back(error_table(of_s, restart));
  }
  data.charts.push_back(residual_chart(rows));
  if (rows.back().devices != rows.front().devices) data.charts.push_back(device_chart(rows));
  data.bars.push_back(time_bars(rows));
  data.tables.push_back(row_table(rows));
  data.run = rows.back().info.report;
  return data;
}

}  // namespace

void GmresBenchArguments::add_to(Command& algorithm) {
  algorithm
      .add_option("--matrix", matrix,
                  "laplacian, cantilever (an elastic bar, fixed at one end), or a file: .mtx, "
                  ".npy or these .gz")
      .capture_default_str();
  algorithm
      .add_option("--side", side,
                  "points along a side of the Laplacian (default: 24), or nodes along the "
                  "short sides of the bar (default: 5; 9 has 62451 unknowns)")
      .check(in_range(2, 2000));
  algorithm.add_option("--restart", bench.restart, "vectors of a cycle").capture_default_str();
  algorithm.add_option("--restarts-max", bench.restarts_max, "cycles").capture_default_str();
  algorithm.add_option("--tolerance", bench.tolerance, "of |b - A x| over |b|")
      .check(positive_number())
      .capture_default_str();
  algorithm.add_list("--s", bench.s, "vectors of a block, one or more, separated by commas")
      .check(in_range(2, 500))
      .capture_default_str();
  algorithm.add_list("--basis", bases, "monomial, newton, chebyshev, one or more")
      .capture_default_str();
  algorithm
      .add_list(
          "--orth", methods,
          "auto, cholqr, cholqr2, cholqr-wide, cholqr-wide2, svqr, svqr-wide, cgs, cgs2, mgs, one "
          "or more")
      .capture_default_str();
  algorithm
      .add_list(
          "--block-orth", blocks,
          "of a block against the vectors before: classical (two sums a pass), pythagorean (one), "
          "two-stage (one, and one a panel), one or more; with those of --orth that go with it")
      .capture_default_str();
  algorithm.add_option("--panel", bench.panel, "vectors of the second of two stages; 0: a cycle")
      .capture_default_str();
  algorithm
      .add_list("--precisions", precisions,
                "of the vectors: fp64, fp32, separated by commas; yardsticks are in the first")
      .check(one_of({"fp64", "fp32"}));
  algorithm
      .add_list(
          "--preconditioner", preconditioners,
          "from the right: none, jacobi, block-jacobi, one or more, each beside GMRES with it")
      .capture_default_str();
  algorithm.add_option("--block-size", bench.block_size, "rows of a block of block-jacobi")
      .capture_default_str();
  algorithm.add_flag("--unbalanced", unbalanced, "do not scale rows and columns of A first");
  algorithm.add_flag("--ghost-zones", bench.ghost_zones,
                     "several devices: one exchange for all products of a block");
  algorithm
      .add_list("--device-counts", bench.device_counts,
                "also on so many devices, one or more, separated by commas")
      .check(in_range(1, 64));
  algorithm.add_option("--repeats", bench.repeats, "runs of which the median counts")
      .check(in_range(1, 100));
  algorithm.add_option("--figures", figures,
                       "write a page: the errors of each block by method, time by part, residuals");
}

int run_gmres_comparison(const GmresBenchArguments& arguments, const CommonOptions& common) {
  CommonOptions mine = common;
  if (!arguments.figures.empty()) mine.report = arguments.figures;
  check_outputs(mine, {}, {common.rates});
  const RunOptions options = common.run_options();
  bench::GmresBench bench = arguments.bench;
  bench.balance = !arguments.unbalanced;
  bench.bases.clear();
  bench.methods.clear();
  bench.blocks.clear();
  bench.preconditioners.clear();
  bench.precisions.clear();
  for (const std::string& name : arguments.bases) bench.bases.push_back(parse_krylov_basis(name));
  for (const std::string& name : arguments.methods) bench.methods.push_back(parse_qr_method(name));
  for (const std::string& name : arguments.blocks)
    bench.blocks.push_back(parse_block_orthogonalization(name));
  for (const std::string& name : arguments.precisions)
    bench.precisions.push_back(name == "fp32" ? Element::fp32 : Element::fp64);
  for (const std::string& name : arguments.preconditioners)
    bench.preconditioners.push_back(parse_preconditioner(name));
  std::string name;
  bench.matrix = matrix_of(arguments, name);
  check_interrupt();
  bool told = false;
  const std::vector<GmresRow> rows = run_gmres_bench(bench, options, [&](const GmresRow& row) {
    if (common.json) return;
    if (!std::exchange(told, true)) print_head(name, bench.matrix.rows, bench.matrix.entries());
    print_row(row);
  });
  std::vector<Blocks> blocks;
  for (std::size_t k = 0; k < bench.s.size() && !arguments.figures.empty(); ++k) {
    bench::BlockErrors what;
    what.s = bench.s[k];
    what.restart = bench.restart;
    what.basis = bench.bases.back();
    what.methods = kBlockMethods;
    what.balance = bench.balance;
    blocks.push_back({what.s, run_block_errors(bench.matrix, what, options)});
  }
  Json object = {{"benchmark", "gmres"},     {"matrix", name},
                 {"n", bench.matrix.rows},   {"entries", bench.matrix.entries()},
                 {"restart", bench.restart}, {"tolerance", bench.tolerance},
                 {"balance", bench.balance}, {"repeats", bench.repeats},
                 {"panel", bench.panel},     {"block_size", bench.block_size},
                 {"results", Json::array()}};
  for (const GmresRow& row : rows) object["results"].push_back(row_json(row));
  for (const Blocks& of_s : blocks) object["blocks"].push_back(blocks_json(of_s));
  return finish(mine, page_of(rows, blocks, name, bench.restart), object, [] {});
}

}  // namespace strata::cli
