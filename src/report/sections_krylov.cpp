// What a Krylov method or a QR factorization did, step by step, as charts and tables.
//
// Method: more steps than a screen can show are thinned by an even stride, as evaluations are; the
// table of blocks then keeps those about which something was decided first.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

constexpr AxisScale kLinear = AxisScale::linear;
constexpr AxisScale kLogarithmic = AxisScale::logarithmic;

/// value(i) for 1 … count, thinned.
template <class F>
ReportSeries series_of(std::string name, std::size_t count, F&& value) {
  ReportSeries series{std::move(name), {}, {}};
  for (const std::size_t i : strided(count, kEvaluationsMax)) {
    series.x.push_back(static_cast<double>(i + 1));
    series.y.push_back(static_cast<double>(value(i)));
  }
  return series;
}

ReportChart convergence_chart(const ReportKrylov& k) {
  ReportChart chart{"Residual by cycle", "cycle", k.residual_label, {}, kLinear, kLogarithmic};
  if (!k.residual.empty())
    chart.series.push_back(series_of("computed with A", k.residual.size(),
                                     [&](std::size_t i) { return k.residual[i]; }));
  chart.series.push_back(series_of("by the projected problem", k.estimated.size(),
                                   [&](std::size_t i) { return k.estimated[i]; }));
  if (k.tolerance > 0)
    chart.series.push_back(
        series_of("tolerance", k.estimated.size(), [&](std::size_t) { return k.tolerance; }));
  return chart;
}

void add_krylov_charts(const ReportKrylov& k, std::vector<ReportChart>& charts) {
  if (!k.estimated.empty()) charts.push_back(convergence_chart(k));
  if (k.decisions.empty()) return;
  const auto by_block = [&](std::string name, auto member) {
    return series_of(std::move(name), k.decisions.size(),
                     [&](std::size_t i) { return k.decisions[i].*member; });
  };
  charts.push_back({"Condition of the projected blocks",
                    "block",
                    "of unit columns",
                    {by_block("condition", &KrylovDecision::condition)},
                    kLinear,
                    kLogarithmic});
  charts.push_back({"Loss of orthogonality before each block",
                    "block",
                    "largest |QᵀQ − I| of a vector",
                    {by_block("loss", &KrylovDecision::loss)},
                    kLinear,
                    kLogarithmic});
  charts.push_back(
      {"Decisions about each block",
       "block",
       "",
       {by_block("vectors kept", &KrylovDecision::s), by_block("passes", &KrylovDecision::passes),
        series_of("doubles in a sum", k.decisions.size(),
                  [&](std::size_t i) { return k.decisions[i].wide ? 2 : 1; })},
       kLinear,
       kLinear});
}

std::vector<std::string> row_of(const KrylovDecision& d) {
  const auto text = [](double x) { return std::isinf(x) ? "∞" : number_text(x, 2); };
  return {count_text(d.restart + 1),
          count_text(d.column),
          count_text(d.s),
          d.wide ? "double-double" : "FP64",
          count_text(d.passes),
          text(d.condition),
          text(d.loss),
          d.what};
}

ReportTable decision_table(const std::vector<KrylovDecision>& decisions) {
  ReportTable table{
      "Blocks and what was decided about them",
      {"cycle", "column", "vectors", "sums", "passes", "condition", "loss", "decision"},
      {}};
  const bool all = decisions.size() <= kEvaluationRowsMax;
  for (const KrylovDecision& d : decisions) {
    if (table.rows.size() == kEvaluationRowsMax) break;
    if (all || !d.what.empty()) table.rows.push_back(row_of(d));
  }
  if (!all)
    table.title = fmt::format("The first {} of {} blocks about which something was decided",
                              table.rows.size(), count_text(std::ssize(decisions)));
  return table;
}

void add_qr_charts(const std::vector<QrStep>& steps, std::vector<ReportChart>& charts) {
  charts.push_back({"Condition and orthogonality step by step",
                    "step",
                    "",
                    {series_of("condition of the columns before it", steps.size(),
                               [&](std::size_t i) { return steps[i].condition; }),
                     series_of("‖I − QᵀQ‖ behind it", steps.size(),
                               [&](std::size_t i) { return steps[i].orthogonality; })},
                    kLinear,
                    kLogarithmic});
}

ReportTable step_table(const std::vector<QrStep>& steps) {
  ReportTable table{
      "Steps", {"step", "factor", "sums", "solve", "condition before", "‖I − QᵀQ‖ behind"}, {}};
  for (const QrStep& step : steps) {
    table.rows.push_back(
        {count_text(std::ssize(table.rows) + 1), step.what, step.wide_sum ? "wide" : "plain",
         step.wide_solve ? "wide" : "plain",
         std::isinf(step.condition) ? "a pivot failed" : number_text(step.condition, 2),
         number_text(step.orthogonality, 2)});
  }
  return table;
}

}  // namespace

std::vector<ReportChart> charts_of(const ReportData& data) {
  std::vector<ReportChart> charts;
  if (data.krylov) add_krylov_charts(*data.krylov, charts);
  if (!data.qr_steps.empty()) add_qr_charts(data.qr_steps, charts);
  charts.insert(charts.end(), data.charts.begin(), data.charts.end());
  return charts;
}

std::vector<ReportTable> tables_of(const ReportData& data) {
  std::vector<ReportTable> tables;
  if (data.krylov && !data.krylov->decisions.empty())
    tables.push_back(decision_table(data.krylov->decisions));
  if (!data.qr_steps.empty()) tables.push_back(step_table(data.qr_steps));
  tables.insert(tables.end(), data.tables.begin(), data.tables.end());
  return tables;
}

}  // namespace strata::page
