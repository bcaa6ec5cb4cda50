// Charts of lines: the section and its part of the script.

#include <fmt/format.h>

#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kCurves = R"js(
const inks = ['accent', 'second', 'good', 'ink', 'code-3', 'code-6', 'code-8', 'code-10'];
const inkOf = i => 'var(--' + inks[i % inks.length] + ')';
function drawCurves(host, chart, w) {
  const h = w < 600 ? 280 : 360;
  const xs = finite(chart.series.flatMap(s => s.x)).filter(v => v > 0);
  const ys = finite(chart.series.flatMap(s => s.y));
  if (xs.length === 0 || ys.length === 0) return;
  const top = Math.max(...ys) * 1.06 || 1;
  const narrow = Math.min(...xs);
  const wide = Math.max(...xs);
  const left = gutter(linearTicks(0, top, 6));
  const box = {left, top: 26, right: w - 12, bottom: h - 42};
  const x = logScale(narrow / 1.1, wide * 1.1, box.left, box.right);
  const y = linearScale(0, top, box.bottom, box.top);
  const seen = [...new Set(xs)].sort((a, b) => a - b);
  const stride = Math.max(1, Math.ceil(seen.length * 60 / (box.right - box.left)));
  x.ticks = () => seen.filter((v, i) => i % stride === 0).map(at => ({at, text: number(at, 6)
      .replace(/\.0+$/, '')}));
  const svg = svgIn(host, w, h);
  axes(svg, box, x, y, {xLabel: chart.x, yLabel: chart.y});
  const spots = [];
  chart.series.forEach((s, i) => {
    const points = s.x.map((v, k) => [v, s.y[k]]).filter(p => p[0] > 0 && Number.isFinite(p[1]));
    const path = points.map((p, k) => (k ? 'L' : 'M') + x(p[0]) + ' ' + y(p[1])).join('');
    add(svg, 'path', {d: path, fill: 'none', stroke: inkOf(i), 'stroke-width': 2,
        'stroke-linejoin': 'round'});
    for (const p of points) {
      add(svg, 'circle', {cx: x(p[0]), cy: y(p[1]), r: 3, fill: inkOf(i)});
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

std::string legend(const ReportChart& chart) {
  std::string items;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    items += fmt::format(
        "<li><span aria-hidden=\"true\" style=\"color:var(--{})\">\u25cf</span> {}</li>\n",
        kInks[i % std::size(kInks)], escape(chart.series[i].name));
  }
  return "<ul class=\"legend\">\n" + items + "</ul>\n";
}

std::string table(const ReportChart& chart) {
  std::string rows;
  for (const ReportSeries& s : chart.series) {
    for (std::size_t k = 0; k < s.x.size(); ++k) {
      rows +=
          fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n", escape(s.name),
                      count_text(static_cast<std::int64_t>(s.x[k])), number_text(s.y[k]));
    }
  }
  return fmt::format(
      R"(<details><summary>The same as a table</summary><div class="scroll tall"><table><thead>
<tr><th scope="col">line</th><th scope="col">{}</th><th scope="col">{}</th></tr></thead><tbody>
{}</tbody></table></div></details>
)",
      escape(chart.x_label), escape(chart.y_label), rows);
}

}  // namespace

std::string_view script_curves() { return kCurves; }

std::string charts_section(const ReportData& data) {
  std::string text;
  for (std::size_t i = 0; i < data.charts.size(); ++i) {
    const ReportChart& chart = data.charts[i];
    text += fmt::format(
        R"(<section id="chart-{0}"><h2>{1}</h2>
{2}<div class="plot" data-curves="{0}" data-label="{1}"></div>
{3}</section>
)",
        i, escape(chart.title), legend(chart), table(chart));
  }
  return text;
}

}  // namespace strata::page
