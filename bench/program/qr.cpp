// strata bench qr: passes over a tall matrix and whole factorizations, beside one reading of it and
// beside peers.

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/program/program.hpp"
#include "bench/qr_figures.hpp"

namespace strata::cli {
namespace {

using bench::QrBenchResult;
using bench::QrBenchRow;

/// What --figures adds.
struct Figures {
  std::vector<bench::MethodCounts> counts;
  std::vector<bench::PassErrors> errors;
  std::vector<bench::RatePoint> rates;
  std::vector<bench::ProductCount> products;
  std::vector<bench::TunedSum> tuned;
  std::vector<bench::KernelSeconds> kernels;
};

constexpr std::int64_t kRateColumns = 30;
const std::vector<QrMethod> kPassErrorMethods{
    QrMethod::cgs,         QrMethod::mgs,       QrMethod::cholqr, QrMethod::svqr,
    QrMethod::cholqr_wide, QrMethod::svqr_wide, QrMethod::tsqr};

Figures figures_of(const bench::QrBench& bench, std::int64_t m, int passes,
                   const RunOptions& options) {
  Figures figures;
  figures.counts = bench::count_methods(10);
  figures.errors = bench::run_pass_errors(passes, kPassErrorMethods, options);
  std::vector<std::int64_t> rows;
  for (const std::int64_t part : {16, 8, 4, 2, 1}) {
    if (m / part >= kRateColumns) rows.push_back(m / part);
  }
  figures.rates = bench::run_rates(rows, kRateColumns, qr_methods(), bench.repeats, options);
  figures.products = bench::count_products();
  figures.tuned = bench::run_tuned_sums(bench.columns, m, bench.repeats, options);
  figures.kernels = bench::run_other_kernels(bench.columns, m, bench.repeats, options);
  return figures;
}

// ---- text and JSON

void print_rows(const QrBenchResult& result) {
  fmt::print("{} ({}){}, {} rows\n", result.device, result.model,
             result.devices > 1 ? fmt::format(" and {} more", result.devices - 1) : "", result.m);
  fmt::print("{:>5} {:<30} {:>11} {:>12} {:>10} {:>7} {:>9} {:>9}  {}\n", "n", "", "ms",
             "times read", "peer/this", "passes", "wait us", "sums us", "|I - QtQ|");
  for (const QrBenchRow& row : result.rows) {
    fmt::print("{:>5} {:<30} {:11.4g} {:12.4g}", row.n, row.what, 1e3 * row.seconds,
               row.times_read);
    if (row.info)
      fmt::print(" {:>10} {:>7} {:9.1f} {:9.1f}  {:.1e}",
                 row.ratio_to_peer > 0 ? fmt::format("{:.3g}", row.ratio_to_peer) : "",
                 row.info->passes, 1e6 * row.waiting, 1e6 * row.reduction, row.info->orthogonality);
    fmt::print("\n");
  }
}

Json row_json(const QrBenchRow& row) {
  Json object = {{"n", row.n},
                 {"what", row.what},
                 {"seconds", row.seconds},
                 {"all_seconds", row.all_seconds},
                 {"times_read", row.times_read}};
  if (row.ratio_to_peer > 0) object["ratio_to_peer"] = row.ratio_to_peer;
  if (row.info)
    object.update({{"ok", row.info->ok},
                   {"passes", row.info->passes},
                   {"condition", number(row.info->condition)},
                   {"orthogonality", number(row.info->orthogonality)},
                   {"failed_cholesky", row.info->failed_cholesky},
                   {"waiting_seconds", row.waiting},
                   {"reduction_seconds", row.reduction}});
  return object;
}

Json figures_json(const Figures& figures) {
  Json object;
  for (const bench::MethodCounts& one : figures.counts)
    object["methods"].push_back({{"method", to_string(one.method)},
                                 {"flops", one.flops},
                                 {"reductions", one.reductions},
                                 {"kernel", one.kernel},
                                 {"bound", one.bound}});
  for (const bench::PassErrors& one : figures.errors) {
    Json passes = Json::array();
    for (std::size_t p = 0; p < one.errors.size(); ++p)
      passes.push_back({{"orthogonality", number(one.errors[p].orthogonality)},
                        {"residual", number(one.errors[p].residual)},
                        {"failed_cholesky", one.errors[p].failed},
                        {"condition", number(one.conditions[p])}});
    object["errors"].push_back({{"matrix", one.matrix},
                                {"method", to_string(one.method)},
                                {"condition", number(one.condition)},
                                {"passes", std::move(passes)}});
  }
  for (const bench::RatePoint& one : figures.rates)
    object["rates"].push_back({{"m", one.m},
                               {"n", kRateColumns},
                               {"what", one.what},
                               {"seconds", one.seconds},
                               {"flops_per_second", one.flops_per_second}});
  for (const bench::ProductCount& one : figures.products)
    object["products"].push_back({{"what", one.what},
                                  {"additions", one.additions},
                                  {"multiplications", one.multiplications},
                                  {"fused", one.fused},
                                  {"total", one.total()}});
  for (const bench::TunedSum& one : figures.tuned) {
    Json row = {{"n", one.n}, {"seconds", one.seconds}, {"taken", one.taken}};
    if (one.rows > 0) {
      row["rows"] = one.rows;
    } else {
      row.update({{"edge", one.edge},
                  {"units", one.units},
                  {"threads", one.threads},
                  {"panel_columns", one.columns},
                  {"panels", one.panels}});
    }
    object["tuned"].push_back(std::move(row));
  }
  for (const bench::KernelSeconds& one : figures.kernels)
    object["kernels"].push_back({{"n", one.n}, {"what", one.what}, {"seconds", one.seconds}});
  return object;
}

// ---- the page

/// Figures 5 to 13: a chart of errors and one of conditions for each matrix.
void add_error_charts(const std::vector<bench::PassErrors>& errors, ReportData& data) {
  for (std::size_t first = 0; first < errors.size();) {
    const std::string matrix = errors[first].matrix;
    ReportChart loss{fmt::format("{}: orthogonality after each pass", matrix),
                     "pass",
                     "‖I − QᵀQ‖",
                     {},
                     AxisScale::linear,
                     AxisScale::logarithmic};
    ReportChart condition = loss;
    condition.title = fmt::format("{}: condition after each pass", matrix);
    condition.y_label = "of the columns of Q, at unit length";
    for (; first < errors.size() && errors[first].matrix == matrix; ++first) {
      const bench::PassErrors& one = errors[first];
      ReportSeries line{std::string(to_string(one.method)), {}, {}};
      ReportSeries conditions{line.name, {0}, {one.condition}};
      for (std::size_t p = 0; p < one.errors.size(); ++p) {
        line.x.push_back(static_cast<double>(p + 1));
        line.y.push_back(one.errors[p].orthogonality);
        conditions.x.push_back(static_cast<double>(p + 1));
        conditions.y.push_back(one.conditions[p]);
      }
      loss.series.push_back(std::move(line));
      condition.series.push_back(std::move(conditions));
    }
    data.charts.push_back(std::move(loss));
    data.charts.push_back(std::move(condition));
  }
}

/// One line a name, in the order in which names come.
class Lines {
 public:
  void add(const std::string& name, double x, double y) {
    const auto [at, is_new] = place_.try_emplace(name, series_.size());
    if (is_new) series_.push_back({name, {}, {}});
    series_[at->second].x.push_back(x);
    series_[at->second].y.push_back(y);
  }
  [[nodiscard]] std::vector<ReportSeries> take() { return std::move(series_); }

 private:
  std::map<std::string, std::size_t> place_;
  std::vector<ReportSeries> series_;
};

double gram_rate(std::int64_t m, std::int64_t n, double seconds) {
  return static_cast<double>(m) * static_cast<double>(n * (n + 1)) / seconds / 1e9;
}

/// Figures 4 and 16 to 18.
void add_rate_charts(const QrBenchResult& result, const Figures& figures, ReportData& data) {
  Lines by_rows;
  for (const bench::RatePoint& one : figures.rates)
    by_rows.add(one.what, static_cast<double>(one.m), one.flops_per_second / 1e9);
  data.charts.push_back({fmt::format("Rate against the rows, {} columns", kRateColumns), "rows",
                         "GFLOP/s by 2·m·n²", by_rows.take()});
  Lines of_doubles;
  for (const QrBenchRow& row : result.rows) {
    if (row.what.starts_with("gram") || row.what.starts_with("inner") ||
        row.what.find("gemm") != std::string::npos || row.what.find("syrk") != std::string::npos)
      of_doubles.add(row.what, static_cast<double>(row.n), gram_rate(result.m, row.n, row.seconds));
  }
  data.charts.push_back(
      {"Gram matrices of doubles", "columns", "GFLOP/s by m·n·(n + 1)", of_doubles.take()});
  Lines of_floats;
  for (const bench::KernelSeconds& one : figures.kernels) {
    if (!one.what.starts_with("cholesky"))
      of_floats.add(one.what, static_cast<double>(one.n), gram_rate(result.m, one.n, one.seconds));
  }
  data.charts.push_back({"Gram matrices of floats (ss: summed in doubles)", "columns",
                         "GFLOP/s by m·n·(n + 1)", of_floats.take()});
}

/// Figure 19: Gram matrix, Cholesky, solve; in doubles and in double-double.
void add_shares(const QrBenchResult& result, const Figures& figures, ReportData& data) {
  ReportBars bars{"Shares of one pass", "ms", {"Gram matrix", "Cholesky", "solve"}, {}};
  std::map<std::pair<std::int64_t, std::string>, double> seconds;
  for (const QrBenchRow& row : result.rows) seconds[{row.n, row.what}] = row.seconds;
  for (const bench::KernelSeconds& one : figures.kernels) seconds[{one.n, one.what}] = one.seconds;
  std::vector<std::int64_t> columns;
  for (const QrBenchRow& row : result.rows) {
    if (columns.empty() || columns.back() != row.n) columns.push_back(row.n);
  }
  for (const std::int64_t n : columns) {
    for (const char* wide : {"", " dd"}) {
      const auto of = [&](const char* what) {
        return 1e3 * seconds[{n, fmt::format("{}{}", what, wide)}];
      };
      bars.bars.push_back({fmt::format("{} columns,{}", n, *wide == 0 ? " d" : wide),
                           {of("gram"), of("cholesky"), of("solve")}});
    }
  }
  data.bars.push_back(std::move(bars));
}

/// Figures 3 and 15.
void add_tables(const Figures& figures, ReportData& data) {
  ReportTable methods{
      "What a factorization of 10 columns does, counted",
      {"method", "operations", "sums over all rows", "kernel", "bound of ‖I − QᵀQ‖"},
      {}};
  for (const bench::MethodCounts& one : figures.counts)
    methods.rows.push_back({std::string(to_string(one.method)), fmt::format("{:.3g}", one.flops),
                            fmt::format("{}", one.reductions), one.kernel, one.bound});
  data.tables.push_back(std::move(methods));
  ReportTable products{"Instructions for one product added to a double-double sum, counted",
                       {"sum", "additions", "multiplications", "fused", "all"},
                       {}};
  for (const bench::ProductCount& one : figures.products)
    products.rows.push_back({one.what, fmt::format("{:.3g}", one.additions),
                             fmt::format("{:.3g}", one.multiplications),
                             fmt::format("{:.3g}", one.fused), fmt::format("{:.3g}", one.total())});
  data.tables.push_back(std::move(products));
}

/// Figure 14: for each number of columns what is taken, and what was fastest.
void add_tuned(const Figures& figures, ReportData& data) {
  const bool on_cpu = !figures.tuned.empty() && figures.tuned.front().rows > 0;
  ReportTable table{"Sums in double-double by extraction: what is tuned", {}, {}};
  table.columns = on_cpu ? std::vector<std::string>{"columns", "", "rows of a block", "ms"}
                         : std::vector<std::string>{"columns",
                                                    "",
                                                    "edge of a thread's square",
                                                    "units at once",
                                                    "threads of a block",
                                                    "columns of a panel",
                                                    "panels",
                                                    "ms"};
  const auto add = [&](const bench::TunedSum& one, const char* what) {
    std::vector<std::string> row{fmt::format("{}", one.n), what};
    if (on_cpu) {
      row.push_back(fmt::format("{}", one.rows));
    } else {
      for (const int value : {one.edge, one.units, one.threads, one.columns, one.panels})
        row.push_back(fmt::format("{}", value));
    }
    row.push_back(fmt::format("{:.4g}", 1e3 * one.seconds));
    table.rows.push_back(std::move(row));
  };
  for (auto first = figures.tuned.begin(); first != figures.tuned.end();) {
    const auto last = std::find_if(first, figures.tuned.end(),
                                   [&](const bench::TunedSum& one) { return one.n != first->n; });
    const auto taken =
        std::find_if(first, last, [](const bench::TunedSum& one) { return one.taken; });
    if (taken != last) add(*taken, "taken");
    add(*std::min_element(first, last,
                          [](const bench::TunedSum& a, const bench::TunedSum& b) {
                            return a.seconds < b.seconds;
                          }),
        "fastest");
    first = last;
  }
  data.tables.push_back(std::move(table));
}

ReportData page_of(const QrBenchResult& result, const Figures& figures) {
  ReportData data;
  data.title = "QR of tall and skinny matrices";
  data.subtitle = fmt::format("{} ({}), {} rows", result.device, result.model, result.m);
  add_error_charts(figures.errors, data);
  add_rate_charts(result, figures, data);
  add_shares(result, figures, data);
  add_tuned(figures, data);
  add_tables(figures, data);
  return data;
}

std::vector<QrMethod> methods_of(const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"all"}) return qr_methods();
  std::vector<QrMethod> methods;
  for (const std::string& name : names) {
    if (name != "none") methods.push_back(parse_qr_method(name));
  }
  return methods;
}

}  // namespace

int run_qr_kernels(const QrBenchArguments& arguments, const CommonOptions& common) {
  CommonOptions mine = common;
  if (!arguments.figures.empty()) mine.report = arguments.figures;
  check_outputs(mine, {}, {});
  bench::QrBench bench = arguments.bench;
  bench.methods = methods_of(arguments.methods);
  bench.peers_if_possible = !arguments.figures.empty();
  const QrBenchResult result = run_qr_bench(bench, common.run_options());
  Json rows = Json::array();
  for (const QrBenchRow& row : result.rows) rows.push_back(row_json(row));
  Json object = {{"benchmark", "qr"}, {"device", result.device},  {"model", result.model},
                 {"m", result.m},     {"repeats", bench.repeats}, {"results", rows}};
  object["devices"] = result.devices;
  object["precision"] = bench.floats ? "fp32" : "fp64";
  object["condition"] = bench.condition;
  object["verify"] = bench.verify;
  ReportData data;
  if (!arguments.figures.empty()) {
    const Figures figures = figures_of(bench, result.m, arguments.passes, common.run_options());
    object["figures"] = figures_json(figures);
    data = page_of(result, figures);
  }
  return finish(mine, std::move(data), object, [&] { print_rows(result); });
}

}  // namespace strata::cli
