// strata bench eigs: CA-Lanczos beside Lanczos.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "bench/program/program.hpp"
#include "cli/krylov.hpp"

namespace strata::cli {
namespace {

using bench::EigsRow;

Json row_json(const EigsRow& row) {
  Json object = to_json(row.info.report);
  object.update({{"m", row.m},
                 {"s", row.s},
                 {"orthogonalization", to_string(row.method)},
                 {"filter", row.filter},
                 {"filter_degree", row.info.filter_degree},
                 {"ok", row.info.ok},
                 {"why", row.info.why},
                 {"restarts", row.info.restarts},
                 {"products", row.info.products},
                 {"converged", row.info.converged},
                 {"factorizations", row.info.factorizations},
                 {"failed_cholesky", row.info.failed_cholesky},
                 {"condition_max", number(row.info.condition_max)},
                 {"largest_error", number(row.error)},
                 {"largest_residual", number(row.residual)},
                 {"orthogonality", number(row.info.orthogonality)},
                 {"seconds", row.seconds},
                 {"all_seconds", row.all_seconds},
                 {"seconds_by_part", to_json(row.info.seconds)},
                 {"ratio", row.ratio}});
  return object;
}

void print_head(const bench::EigsBench& bench) {
  fmt::print("diag(1, ..., m), {} largest, basis of {}, {} basis\n", bench.k, bench.basis_size,
             to_string(bench.basis));
  fmt::print(
      "{:>9} {:<20} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>9} {:>6} {:>8} {:>8} {:>7} {:>7} {:>7} "
      "{:>7} {:>7}\n",
      "m", "", "restarts", "products", "failed", "error", "residual", "orthog.", "seconds", "ratio",
      "products", "project", "gram", "solve", "rotate", "host", "rest");
}

void print_row(const EigsRow& row) {
  const KrylovSeconds& t = row.info.seconds;
  fmt::print(
      "{:>9} {:<20} {:>8}{} {:>8} {:>4}/{:<4} {:>8.1e} {:>8.1e} {:>8.1e} {:>9.4g} {:>6.3g} "
      "{:>8.3g} {:>8.3g} {:>7.3g} {:>7.3g} {:>7.3g} {:>7.3g} {:>7.3g}\n",
      row.m, name_of(row), row.info.restarts, row.info.ok ? ' ' : '+', row.info.products,
      row.info.failed_cholesky, row.info.factorizations, row.error, row.residual,
      row.info.orthogonality, row.seconds, row.ratio, t.products, t.projections, t.gram, t.solves,
      t.rotations, t.host, t.rest);
  std::fflush(stdout);
}

// ---- the page: figure 27 of Yamazaki, Tomov and Dongarra (2015)

/// A line for each case against m; what is not converged is missing.
ReportChart chart_of(const std::vector<EigsRow>& rows, const std::string& title,
                     const std::string& unit, AxisScale scale, double (*of)(const EigsRow&)) {
  ReportChart chart{title, "m", unit, {}, AxisScale::logarithmic, scale};
  std::vector<std::string> names;
  std::map<std::string, ReportSeries> lines;
  for (const EigsRow& row : rows) {
    const std::string name = name_of(row);
    if (lines.find(name) == lines.end()) names.push_back(name);
    ReportSeries& line = lines[name];
    line.name = name;
    const double y = of(row);
    if (!row.info.ok || !std::isfinite(y)) continue;
    line.x.push_back(static_cast<double>(row.m));
    line.y.push_back(y);
  }
  for (const std::string& name : names) {
    if (!lines[name].x.empty()) chart.series.push_back(std::move(lines[name]));
  }
  return chart;
}

ReportBars time_bars(const std::vector<EigsRow>& rows, std::int64_t m) {
  ReportBars bars{
      fmt::format("Time by part, m = {}", m),
      "s",
      {"products with A", "projections", "Gram matrices", "solves", "Ritz vectors", "host", "rest"},
      {}};
  for (const EigsRow& row : rows) {
    if (row.m != m) continue;
    const KrylovSeconds& t = row.info.seconds;
    bars.bars.push_back({fmt::format("{}, {} restarts{}", name_of(row), row.info.restarts,
                                     row.info.ok ? "" : ", not converged"),
                         {t.products, t.projections, t.gram, t.solves, t.rotations,
                          std::max(t.host, 0.0), std::max(t.rest, 0.0)}});
  }
  return bars;
}

ReportTable table_of(const std::vector<EigsRow>& rows) {
  ReportTable table{
      "Restarts, errors and seconds",
      {"m", "", "restarts", "products", "failed factorizations", "largest error of a value over m",
       "largest residual over m", "orthogonality", "seconds", "over Lanczos"},
      {}};
  for (const EigsRow& row : rows)
    table.rows.push_back(
        {fmt::format("{}", row.m), name_of(row),
         fmt::format("{}{}", row.info.restarts, row.info.ok ? "" : " (not converged)"),
         fmt::format("{}", row.info.products),
         fmt::format("{} of {}", row.info.failed_cholesky, row.info.factorizations),
         fmt::format("{:.1e}", row.error), fmt::format("{:.1e}", row.residual),
         fmt::format("{:.1e}", row.info.orthogonality), fmt::format("{:.3g}", row.seconds),
         fmt::format("{:.2f}", row.ratio)});
  return table;
}

ReportData page_of(const std::vector<EigsRow>& rows, const bench::EigsBench& bench) {
  ReportData data;
  data.title = "CA-Lanczos beside Lanczos";
  data.subtitle =
      fmt::format("diag(1, …, m), {} largest eigenvalues, basis of {}", bench.k, bench.basis_size);
  if (bench.sizes.size() > 1) {
    data.charts.push_back(chart_of(rows, "Seconds", "s", AxisScale::linear,
                                   [](const EigsRow& row) { return row.seconds; }));
    data.charts.push_back(
        chart_of(rows, "Restarts", "restarts", AxisScale::linear,
                 [](const EigsRow& row) { return static_cast<double>(row.info.restarts); }));
    data.charts.push_back(chart_of(rows, "Largest residual", "‖A·v − λ·v‖ / m",
                                   AxisScale::logarithmic,
                                   [](const EigsRow& row) { return row.residual; }));
  }
  for (const std::int64_t m : bench.sizes) data.bars.push_back(time_bars(rows, m));
  data.tables.push_back(table_of(rows));
  data.run = rows.back().info.report;
  return data;
}

}  // namespace

void EigsBenchArguments::add_to(Command& algorithm) {
  algorithm.add_list("--m", bench.sizes, "orders of diag(1, ..., m), separated by commas")
      .check(positive_number())
      .capture_default_str();
  algorithm.add_option("--basis-size", bench.basis_size, "vectors that are held")
      .capture_default_str();
  algorithm.add_option("--k", bench.k, "eigenvalues, the largest").capture_default_str();
  algorithm.add_list("--s", bench.s, "vectors of a block, one or more, separated by commas")
      .check(in_range(2, 500))
      .capture_default_str();
  algorithm.add_option("--basis", basis, "monomial, newton, chebyshev or lanczos")
      .capture_default_str();
  algorithm
      .add_list("--orth", methods,
                "auto, cholqr (d), cholqr2 (2 x d), cholqr-wide (dd), cholqr-wide2, svqr, "
                "svqr-wide, cgs, "
                "cgs2, mgs, one or more")
      .capture_default_str();
  algorithm.add_option("--tolerance", bench.tolerance, "of |A v - l v| over m")
      .check(positive_number())
      .capture_default_str();
  algorithm.add_flag("--only-filtered", bench.only_filtered,
                     "Lanczos with a Chebyshev filter alone");
  algorithm.add_option("--restarts-max", bench.restarts_max, "cycles").capture_default_str();
  algorithm.add_option("--repeats", bench.repeats, "runs of which the median counts")
      .check(in_range(1, 100));
  algorithm.add_option("--figures", figures,
                       "write a page: seconds and restarts against m, time by part");
}

int run_eigs_comparison(const EigsBenchArguments& arguments, const CommonOptions& common) {
  CommonOptions mine = common;
  if (!arguments.figures.empty()) mine.report = arguments.figures;
  check_outputs(mine, {}, {common.rates});
  bench::EigsBench bench = arguments.bench;
  bench.basis = parse_krylov_basis(arguments.basis);
  bench.seed = common.seed;
  bench.methods.clear();
  for (const std::string& name : arguments.methods) bench.methods.push_back(parse_qr_method(name));
  bool told = false;
  const std::vector<EigsRow> rows =
      run_eigs_bench(bench, common.run_options(), [&](const EigsRow& row) {
        if (common.json) return;
        if (!std::exchange(told, true)) print_head(bench);
        print_row(row);
      });
  Json object = {{"benchmark", "eigs"},
                 {"sizes", bench.sizes},
                 {"basis_size", bench.basis_size},
                 {"k", bench.k},
                 {"basis", to_string(bench.basis)},
                 {"tolerance", bench.tolerance},
                 {"repeats", bench.repeats},
                 {"results", Json::array()}};
  for (const EigsRow& row : rows) object["results"].push_back(row_json(row));
  return finish(mine, page_of(rows, bench), object, [] {});
}

}  // namespace strata::cli
