// Charts of lines, with their part of the script, bars and tables.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kCurves = R"js(
const inks = ['accent', 'second', 'good', 'ink', 'code-3', 'code-6', 'code-8', 'code-10'];
const inkOf = i => 'var(--' + inks[i % inks.length] + ')';
function drawCurves(host, chart, w) {
  const h = w < 600 ? 280 : 360;
  const drawn = p => (!chart.logX || p[0] > 0) && (!chart.logY || p[1] > 0) &&
      Number.isFinite(p[0]) && Number.isFinite(p[1]) && p[1] !== null;
  const lines = chart.series.map(s => s.x.map((v, k) => [v, s.y[k]]).filter(drawn));
  const xs = lines.flat().map(p => p[0]);
  const ys = lines.flat().map(p => p[1]);
  if (xs.length === 0) return;
  const [top, low] = [ys.reduce((a, b) => Math.max(a, b)), ys.reduce((a, b) => Math.min(a, b))];
  const seen = [...new Set(xs)].sort((a, b) => a - b);
  const [narrow, wide] = [seen[0], seen[seen.length - 1]];
  const upright = (from, to) => chart.logY ? logScale(low / 2, top * 2, from, to)
      : linearScale(0, top * 1.06 || 1, from, to);
  const left = gutter(upright(0, 1).ticks(6));
  const box = {left, top: 26, right: w - 12, bottom: h - 42};
  const pad = (wide - narrow || 1) * 0.03;
  const x = chart.logX ? logScale(narrow / 1.1, wide * 1.1, box.left, box.right)
      : linearScale(narrow - pad, wide + pad, box.left, box.right);
  const y = upright(box.bottom, box.top);
  const stride = Math.max(1, Math.ceil(seen.length * 60 / (box.right - box.left)));
  x.ticks = () => seen.filter((v, i) => i % stride === 0).map(at => ({at, text: number(at, 6)
      .replace(/\.0+$/, '')}));
  const svg = svgIn(host, w, h);
  axes(svg, box, x, y, {xLabel: chart.x, yLabel: chart.y});
  const spots = [];
  chart.series.forEach((s, i) => {
    const points = lines[i];
    const path = points.map((p, k) => (k ? 'L' : 'M') + x(p[0]) + ' ' + y(p[1])).join('');
    add(svg, 'path', {d: path, fill: 'none', stroke: inkOf(i), 'stroke-width': 2,
        'stroke-linejoin': 'round'});
    for (const p of points) {
      add(svg, 'circle', {cx: x(p[0]), cy: y(p[1]), r: points.length > 100 ? 1.6 : 3,
          fill: inkOf(i)});
      spots.push({x: x(p[0]), y: y(p[1]), text: s.name + '\n' + chart.x + ' ' +
          p[0].toLocaleString('en-US') + ': ' + joined(number(p[1]), chart.y)});
    }
  });
  readOut(svg, spots, w, 24);
}
if (data.charts) {
  drawEach('[data-curves]', (host, w) => drawCurves(host, data.charts[host.dataset.curves], w));
}
)js";

/// The colours of the script, in its order.
constexpr std::string_view kInks[] = {"accent", "second", "good",   "ink",
                                      "code-3", "code-6", "code-8", "code-10"};

const char* ink_of(std::size_t i) { return kInks[i % std::size(kInks)].data(); }

std::string legend(const std::vector<std::string>& names) {
  std::string items;
  for (std::size_t i = 0; i < names.size(); ++i) {
    items += fmt::format(
        "<li><span aria-hidden=\"true\" style=\"color:var(--{})\">\u25cf</span> {}</li>\n",
        ink_of(i), escape(names[i]));
  }
  return "<ul class=\"legend\">\n" + items + "</ul>\n";
}

std::vector<std::string> names_of(const ReportChart& chart) {
  std::vector<std::string> names;
  for (const ReportSeries& s : chart.series) names.push_back(s.name);
  return names;
}

/// A count as such, any other number with its digits.
std::string place_text(double x) {
  constexpr double kCountMax = 1e15;
  return x == std::floor(x) && std::abs(x) < kCountMax ? count_text(static_cast<std::int64_t>(x))
                                                       : number_text(x);
}

std::string table(const ReportChart& chart) {
  std::string rows;
  for (const ReportSeries& s : chart.series) {
    for (std::size_t k = 0; k < s.x.size(); ++k) {
      rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n",
                          escape(s.name), place_text(s.x[k]), number_text(s.y[k]));
    }
  }
  return fmt::format(
      R"(<details><summary>The same as a table</summary><div class="scroll tall"><table><thead>
<tr><th scope="col">line</th><th scope="col">{}</th><th scope="col">{}</th></tr></thead><tbody>
{}</tbody></table></div></details>
)",
      escape(chart.x_label), escape(chart.y_label), rows);
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::isfinite(value) ? value : 0;
  return sum;
}

/// The parts side by side, together as long as their sum over `longest`.
std::string bar_row(const ReportBar& bar, double longest, const std::string& unit) {
  std::string parts;
  double before = 0;
  for (std::size_t k = 0; k < bar.values.size(); ++k) {
    const double value = std::isfinite(bar.values[k]) ? std::max(bar.values[k], 0.0) : 0;
    const double whole = longest > 0 ? longest : 1;
    parts += fmt::format(
        R"html(<span style="left:{:.2f}%;width:{:.2f}%;background:var(--{})"></span>)html",
        100 * before / whole, 100 * value / whole, ink_of(k));
    before += value;
  }
  return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"bar\">{}</td><td>{}</td></tr>\n",
                     escape(bar.name), parts, with_unit(number_text(before), unit));
}

}  // namespace

std::string_view script_curves() { return kCurves; }

std::string charts_section(const ReportData& data) {
  std::string text;
  const std::vector<ReportChart> charts = charts_of(data);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const ReportChart& chart = charts[i];
    text += fmt::format(
        R"(<section id="chart-{0}"><h2>{1}</h2>
{2}<div class="plot" data-curves="{0}" data-label="{1}"></div>
{3}</section>
)",
        i, escape(chart.title), legend(names_of(chart)), table(chart));
  }
  return text;
}

std::string bars_section(const ReportData& data) {
  std::string text;
  for (std::size_t i = 0; i < data.bars.size(); ++i) {
    const ReportBars& bars = data.bars[i];
    double longest = 0;
    for (const ReportBar& bar : bars.bars) longest = std::max(longest, sum_of(bar.values));
    std::string rows;
    std::string numbers;
    for (const ReportBar& bar : bars.bars) rows += bar_row(bar, longest, bars.unit);
    std::string heads;
    for (const std::string& part : bars.parts)
      heads += fmt::format("<th scope=\"col\">{}</th>", escape(part));
    for (const ReportBar& bar : bars.bars) {
      numbers += fmt::format("<tr><th scope=\"row\">{}</th>", escape(bar.name));
      for (const double value : bar.values)
        numbers += fmt::format("<td>{}</td>", number_text(value));
      numbers += "</tr>\n";
    }
    text += fmt::format(
        R"(<section id="bars-{}"><h2>{}</h2>
{}<table class="bars"><tbody>
{}</tbody></table>
<details><summary>The same as a table, in {}</summary><div class="scroll"><table><thead><tr>
<th scope="col"></th>{}</tr></thead><tbody>
{}</tbody></table></div></details>
</section>
)",
        i, escape(bars.title), legend(bars.parts), rows, escape(bars.unit), heads, numbers);
  }
  return text;
}

std::string tables_section(const ReportData& data) {
  std::string text;
  const std::vector<ReportTable> tables = tables_of(data);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::string heads;
    for (const std::string& column : tables[i].columns)
      heads += fmt::format("<th scope=\"col\">{}</th>", escape(column));
    std::string rows;
    for (const std::vector<std::string>& row : tables[i].rows) {
      rows += "<tr>";
      for (std::size_t c = 0; c < row.size(); ++c)
        rows += fmt::format(fmt::runtime(c == 0 ? "<th scope=\"row\">{}</th>" : "<td>{}</td>"),
                            escape(row[c]));
      rows += "</tr>\n";
    }
    text += fmt::format(
        R"(<section id="table-{}"><h2>{}</h2>
<div class="scroll tall"><table><thead><tr>{}</tr></thead><tbody>
{}</tbody></table></div>
</section>
)",
        i, escape(tables[i].title), heads, rows);
  }
  return text;
}

}  // namespace strata::page
