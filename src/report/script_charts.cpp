// The script, part 3: the optimizer's path and the hold-out.

#include "report/page.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kPath = R"js(
// Rows are [evaluation, log-likelihood, range, smoothness, nugget, variance].
function bestSoFar(rows) {
  let best = -Infinity;
  return rows.map(row => {
    if (row[1] !== null && row[1] > best) best = row[1];
    return best;
  });
}
// The first steps are often so bad that they would flatten everything else: the axis then ends
// below the better half, and what lies lower is drawn as a triangle on its edge.
function likelihoodLimits(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const top = sorted[sorted.length - 1];
  const middle = sorted[Math.floor(sorted.length / 2)];
  const spread = Math.max(top - middle, (top - sorted[0]) * 0.02);
  const low = Math.max(sorted[0], top - 5 * spread);
  const pad = (top - low) * 0.06 || Math.abs(top) * 0.01 || 1;
  return [low - pad, top + pad];
}
function drawLikelihood(host, rows, w) {
  const h = w < 600 ? 240 : 300;
  const values = finite(rows.map(row => row[1]));
  if (values.length === 0) return;
  const [lo, hi] = likelihoodLimits(values);
  const left = gutter(linearTicks(lo, hi, 5));
  const box = {left, top: 26, right: w - 12, bottom: h - 42};
  const x = linearScale(1, Math.max(2, rows[rows.length - 1][0]), box.left + 8, box.right - 8);
  const y = linearScale(lo, hi, box.bottom, box.top);
  const svg = svgIn(host, w, h);
  axes(svg, box, x, y, {xLabel: 'evaluation', yLabel: 'log-likelihood'});
  const best = bestSoFar(rows);
  const top = Math.max(...values);
  let path = '';
  const spots = [];
  rows.forEach((row, i) => {
    if (best[i] >= lo) path += (path ? 'H' + x(row[0]) + 'V' : 'M' + x(row[0]) + ' ') + y(best[i]);
    if (row[1] === null) return;
    const spot = {x: x(row[0]), y: Math.min(y(row[1]), box.bottom - 5)};
    spot.text = 'Evaluation ' + row[0] + '\nlog-likelihood ' + number(row[1], 7) +
        '\nrange ' + number(row[2]) + '\nsmoothness ' + number(row[3]) +
        '\nnugget ' + number(row[4]) + '\nvariance ' + number(row[5]);
    spots.push(spot);
    if (row[1] < lo) {
      add(svg, 'path', {d: 'M' + (spot.x - 4) + ' ' + (spot.y - 3) + 'h8l-4 7z',
          fill: 'var(--muted)'});
    } else {
      add(svg, 'circle', {cx: spot.x, cy: spot.y, r: rows.length > 300 ? 1.8 : 2.8,
          fill: 'var(--muted)', 'fill-opacity': 0.75});
    }
  });
  if (spots.some((s, i) => s.y >= box.bottom - 5)) {
    add(svg, 'text', {x: box.right, y: box.top - 10, 'text-anchor': 'end'},
        '\u25be lies below the axis');
  }
  add(svg, 'path', {d: path, fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2,
      'stroke-linejoin': 'round'});
  const at = rows.findIndex(row => row[1] === top);
  add(svg, 'circle', {cx: x(rows[at][0]), cy: y(top), r: 6, fill: 'var(--bg)',
      stroke: 'var(--accent)', 'stroke-width': 2.5});
  readOut(svg, spots, w, 24);
}
function drawParameter(host, rows, w) {
  const h = 170;
  const column = Number(host.dataset.parameter) + 2;
  const values = finite(rows.map(row => row[column]));
  if (values.length === 0) return;
  const log = values.every(v => v > 0);
  let lo = Math.min(...values);
  let hi = Math.max(...values);
  if (log) { const pad = Math.max((hi / lo) ** 0.06, 1.001); lo /= pad; hi *= pad; }
  else { const pad = (hi - lo) * 0.06 || 1; lo -= pad; hi += pad; }
  const scale = log ? logScale : linearScale;
  const left = gutter(scale(lo, hi, 0, 1).ticks(3));
  const box = {left, top: 10, right: w - 8, bottom: h - 30};
  const x = linearScale(1, Math.max(2, rows[rows.length - 1][0]), box.left + 5, box.right - 5);
  const y = scale(lo, hi, box.bottom, box.top);
  const svg = svgIn(host, w, h);
  x.ticks = () => [rows[0], rows[rows.length - 1]].map(row => ({at: row[0], text: String(row[0])}));
  axes(svg, box, x, y, {yTicks: 3});
  let path = '';
  const spots = [];
  for (const row of rows) {
    if (row[column] === null) continue;
    path += (path ? 'L' : 'M') + x(row[0]) + ' ' + y(row[column]);
    spots.push({x: x(row[0]), y: y(row[column]), text: 'Evaluation ' + row[0] + '\n' +
        number(row[column], 5)});
  }
  add(svg, 'path', {d: path, fill: 'none', stroke: 'var(--muted)', 'stroke-width': 1.25,
      'stroke-linejoin': 'round'});
  const best = rows.reduce((a, b) => b[1] !== null && (a[1] === null || b[1] > a[1]) ? b : a);
  if (best[column] !== null) {
    add(svg, 'circle', {cx: x(best[0]), cy: y(best[column]), r: 5, fill: 'var(--bg)',
        stroke: 'var(--accent)', 'stroke-width': 2.5});
  }
  readOut(svg, spots, w, 24);
}
if (data.path) {
  const rows = data.path.rows;
  drawEach('[data-chart="likelihood"]', (host, w) => drawLikelihood(host, rows, w));
  drawEach('[data-parameter]', (host, w) => drawParameter(host, rows, w));
}
)js";

constexpr std::string_view kHoldOut = R"js(
const intervalFactor = 1.959963984540054;
function scatterLimits(values) {
  const sorted = finite(values).sort((a, b) => a - b);
  if (sorted.length === 0) return [0, 1];
  const pad = (sorted[sorted.length - 1] - sorted[0]) * 0.04 || 1;
  return [sorted[0] - pad, sorted[sorted.length - 1] + pad];
}
function drawScatter(host, h, w) {
  const size = Math.min(w, 520);
  const [lo, hi] = scatterLimits(h.seen.concat(h.guess));
  const left = gutter(linearTicks(lo, hi, 6));
  const box = {left, top: 26, right: size - 10, bottom: size - 10 - left + 26};
  const x = linearScale(lo, hi, box.left, box.right);
  const y = linearScale(lo, hi, box.bottom, box.top);
  const svg = svgIn(host, w, box.bottom + 42);
  const ticks = Math.max(3, Math.round((box.right - box.left) / 70));
  const unit = h.unit && '(' + h.unit + ')';
  axes(svg, box, x, y, {xTicks: ticks, yTicks: ticks,
      xLabel: joined('observed', unit), yLabel: joined('predicted', unit)});
  add(svg, 'line', {x1: x(lo), y1: y(lo), x2: x(hi), y2: y(hi), stroke: 'var(--muted)',
      'stroke-dasharray': '3 4'});
  const inside = v => Math.max(box.top, Math.min(box.bottom, v));
  const faint = h.seen.length > 400 ? 0.14 : h.seen.length > 150 ? 0.4 : 0.6;
  const spots = [];
  h.seen.forEach((seen, i) => {
    const guess = h.guess[i];
    if (!Number.isFinite(seen + guess)) return;
    const half = h.error ? intervalFactor * h.error[i] : NaN;
    const miss = Math.abs(seen - guess) > half;
    const ink = miss ? 'var(--second)' : 'var(--accent)';
    if (Number.isFinite(half)) {
      const [y1, y2] = [inside(y(guess - half)), inside(y(guess + half))];
      add(svg, 'line', {x1: x(seen), x2: x(seen), y1, y2, stroke: ink,
          'stroke-opacity': miss ? 0.8 : faint});
    }
    add(svg, 'circle', {cx: x(seen), cy: y(guess), r: h.seen.length > 400 ? 1.8 : 2.6, fill: ink,
        'fill-opacity': miss ? 1 : 0.8});
    const spread = Number.isFinite(half) ? ' \u00b1 ' + number(half, 3) : '';
    spots.push({x: x(seen), y: y(guess), text: 'observed ' + joined(number(seen), h.unit) +
        '\npredicted ' + joined(number(guess) + spread, h.unit)});
  });
  readOut(svg, spots, w, 16);
}
function drawCalibration(host, bins, w) {
  const height = 170;
  const total = bins.reduce((a, b) => a + b, 0) || 1;
  const shares = bins.map(n => n / total);
  const top = Math.max(0.2, ...shares) * 1.05;
  const ticks = n => linearTicks(0, 100 * top, n).map(t => ({at: t.at / 100, text: t.text + ' %'}));
  const box = {left: gutter(ticks(3)), top: 10, right: Math.min(w, 520) - 8, bottom: height - 30};
  const x = linearScale(0, 1, box.left, box.right);
  const y = Object.assign(linearScale(0, top, box.bottom, box.top), {ticks});
  const svg = svgIn(host, w, height);
  axes(svg, box, x, y, {yTicks: 3, xTicks: 5});
  const spots = [];
  shares.forEach((share, i) => {
    const left = x(i / bins.length) + 1.5;
    const right = x((i + 1) / bins.length) - 1.5;
    add(svg, 'rect', {x: left, width: right - left, y: y(share), height: box.bottom - y(share),
        fill: 'var(--accent)', 'fill-opacity': 0.75});
    spots.push({x: (left + right) / 2, y: y(share), text: number(100 * share, 3) + ' % of ' +
        total.toLocaleString('en-US') + ' values\n(level: ' + number(100 / bins.length, 3) +
        ' %)'});
  });
  const level = y(1 / bins.length);
  add(svg, 'line', {x1: box.left, x2: box.right, y1: level, y2: level, stroke: 'var(--ink)',
      'stroke-dasharray': '3 4'});
  readOut(svg, spots, w, 60);
}
if (data.holdOut) {
  const h = data.holdOut;
  const values = {unit: h.unit, seen: quantized(h.observed), guess: quantized(h.predicted),
      error: h.error && quantized(h.error)};
  drawEach('[data-chart="scatter"]', (host, w) => drawScatter(host, values, w));
  drawEach('[data-chart="calibration"]', (host, w) => drawCalibration(host, h.pit, w));
}
)js";

}  // namespace

std::string_view script_charts() {
  static const std::string text = std::string(kPath) + std::string(kHoldOut);
  return text;
}

}  // namespace strata::page
