// The script, part 1: decoding, scales and ticks, drawing surfaces, the read-out, redrawing.

#include "report/page.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kNumbers = R"js(
const data = JSON.parse(document.getElementById('report-data').textContent);
const svgSpace = document.getElementById('seed').namespaceURI;

// Columns: base64 of little-endian words (columns.hpp).
function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return new DataView(bytes.buffer);
}
function words(text, size, read) {
  const view = bytesOf(text);
  return Array.from({length: view.byteLength / size}, (_, i) => read(view, i * size));
}
const u8 = text => words(text, 1, (v, at) => v.getUint8(at));
const u32 = text => words(text, 4, (v, at) => v.getUint32(at, true));
const f32 = text => words(text, 4, (v, at) => v.getFloat32(at, true));
function quantized(column) {
  const step = column.hi / 65534 - column.lo / 65534;
  return words(column.q, 2, (v, at) => {
    const code = v.getUint16(at, true);
    return code === 65535 ? NaN : column.lo + step * code;
  });
}

// Numbers as text, in the manner of the rest of the page.
const finite = values => values.filter(v => v !== null && Number.isFinite(v));
const minus = text => text.replace('-', '\u2212');
function superscript(n) {
  return String(n).replace('-', '\u207b').replace(/\d/g,
      d => '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079'[d]);
}
function number(value, digits = 4) {
  if (value === null || !Number.isFinite(value)) return '\u2013';
  if (value === 0) return '0';
  const power = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
  if (power < -4 || power > 8) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split('e');
    return minus(mantissa) + '\u00d710' + superscript(Number(exponent));
  }
  const decimals = Math.max(0, digits - 1 - power);
  return minus(value.toLocaleString('en-US', {minimumFractionDigits: decimals,
      maximumFractionDigits: decimals}));
}
function prefixed(value, unit) {
  let power = 0;
  while (Math.abs(value) >= 999.5 && power < 6) { value /= 1000; ++power; }
  return number(value, 3) + ' ' + ' kMGTPE'[power].trim() + unit;
}
function duration(seconds) {
  if (!(seconds > 0)) return '0 s';
  if (seconds < 1e-3) return number(seconds * 1e6, 3) + ' \u00b5s';
  if (seconds < 1) return number(seconds * 1e3, 3) + ' ms';
  return number(seconds, 3) + ' s';
}
const joined = (value, unit) => unit ? value + ' ' + unit : value;

// Round ticks inside [lo, hi]: {at, text}.
function niceStep(span, count) {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999) || 10 * power;
}
function tickText(value, step) {
  const size = Math.max(Math.abs(value), step);
  if (size >= 1e7 || size < 1e-4) return number(value, 3);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return minus((value + 0).toLocaleString('en-US', {minimumFractionDigits: decimals,
      maximumFractionDigits: decimals}));
}
function linearTicks(lo, hi, count) {
  if (!(hi > lo)) return [{at: lo, text: number(lo)}];
  const step = niceStep(hi - lo, count);
  const out = [];
  for (let k = Math.ceil(lo / step - 1e-6); k * step <= hi + step * 1e-6 && out.length < 50; ++k) {
    out.push({at: k * step, text: tickText(k * step, step)});
  }
  return out;
}
function logTicks(lo, hi, count) {
  const decades = Math.log10(hi / lo);
  if (decades < 0.7) return linearTicks(lo, hi, count).filter(t => t.at > 0);
  const steps = decades > 2.5 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 5];
  const stride = Math.max(1, Math.ceil(decades / Math.max(2, count)));
  const out = [];
  for (let p = Math.floor(Math.log10(lo)); p <= Math.ceil(Math.log10(hi)); ++p) {
    if (p % stride !== 0) continue;
    for (const s of steps) {
      const at = s * 10 ** p;
      if (at < lo * 0.999 || at > hi * 1.001) continue;
      out.push({at, text: p < -4 || p > 6 ? (s === 1 ? '' : s + '\u00d7') + '10' + superscript(p)
          : tickText(at, 10 ** p)});
    }
  }
  return out.length > 1 ? out : linearTicks(lo, hi, count).filter(t => t.at > 0);
}
// A scale maps [lo, hi] to [from, to].
function linearScale(lo, hi, from, to) {
  const width = hi > lo ? hi - lo : 1;
  const map = v => from + (to - from) * (v - lo) / width;
  return Object.assign(map, {lo, hi, back: p => lo + width * (p - from) / (to - from),
      ticks: n => linearTicks(lo, hi, n)});
}
function logScale(lo, hi, from, to) {
  const inner = linearScale(Math.log(lo), Math.log(hi), from, to);
  return Object.assign(v => inner(Math.log(v)), {lo, hi, back: p => Math.exp(inner.back(p)),
      ticks: n => logTicks(lo, hi, n)});
}
)js";

constexpr std::string_view kSurfaces = R"js(
const color = name => getComputedStyle(document.documentElement).getPropertyValue('--' +
    name).trim();
const fontOf = size => size + 'px ' + getComputedStyle(document.body).fontFamily;

// A canvas of w × h CSS pixels, sharp on dense screens.
function surface(canvas, w, h) {
  const density = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.round(w * density);
  canvas.height = Math.round(h * density);
  canvas.style.height = h + 'px';
  const g = canvas.getContext('2d');
  g.setTransform(density, 0, 0, density, 0, 0);
  g.clearRect(0, 0, w, h);
  g.font = fontOf(12);
  return g;
}
function write(g, text, x, y, align, baseline, fill) {
  g.textAlign = align;
  g.textBaseline = baseline;
  g.fillStyle = fill;
  g.fillText(text, x, y);
}
function line(g, x0, y0, x1, y1, stroke, width = 1) {
  g.strokeStyle = stroke;
  g.lineWidth = width;
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}
// An SVG element under `parent`; text is set as text.
function add(parent, name, attributes = {}, text) {
  const element = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}
function svgIn(host, w, h) {
  const svg = document.createElementNS(svgSpace, 'svg');
  svg.setAttribute('viewBox', '0 0 ' + w + ' ' + h);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', host.dataset.label || '');
  svg.style.height = h + 'px';
  host.replaceChildren(svg);
  return svg;
}
// Axes with grid lines; `box` is {left, top, right, bottom} in pixels.
function axes(svg, box, x, y, options = {}) {
  const spots = options.yTicks || Math.max(2, Math.round((box.bottom - box.top) / 46));
  for (const t of y.ticks(spots)) {
    add(svg, 'line', {x1: box.left, x2: box.right, y1: y(t.at), y2: y(t.at),
        stroke: 'var(--grid)'});
    add(svg, 'text', {x: box.left - 8, y: y(t.at), 'text-anchor': 'end',
        'dominant-baseline': 'central'}, t.text);
  }
  for (const t of x.ticks(options.xTicks || Math.max(2, Math.round((box.right - box.left) / 90)))) {
    add(svg, 'line', {x1: x(t.at), x2: x(t.at), y1: box.bottom, y2: box.bottom + 4,
        stroke: 'var(--line)'});
    add(svg, 'text', {x: x(t.at), y: box.bottom + 18, 'text-anchor': 'middle'}, t.text);
  }
  add(svg, 'line', {x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom,
      stroke: 'var(--line)'});
  if (options.xLabel) add(svg, 'text', {x: box.right, y: box.bottom + 35, 'text-anchor': 'end'},
      options.xLabel);
  if (options.yLabel) add(svg, 'text', {x: box.left, y: box.top - 10, 'text-anchor': 'start'},
      options.yLabel);
}
// Room that the texts of an axis need to the left of a chart.
function gutter(ticks) {
  const g = document.createElement('canvas').getContext('2d');
  g.font = fontOf(12);
  return Math.ceil(Math.max(20, ...ticks.map(t => g.measureText(t.text).width)) + 12);
}
)js";

constexpr std::string_view kEvents = R"js(
const tip = document.getElementById('tip');
function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18 + tip.offsetHeight < window.innerHeight;
  const y = below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 12;
  tip.style.transform = 'translate(' + Math.max(4, x) + 'px,' + Math.max(4, y) + 'px)';
}
function hideTip() { tip.hidden = true; }

// Draws now, and again whenever the width, the colour scheme or the medium changes.
const drawings = [];
function keepDrawn(host, draw) {
  const drawing = () => { if (host.clientWidth > 0) draw(host.clientWidth); };
  let width = host.clientWidth;
  drawings.push(drawing);
  drawing();
  if (!window.ResizeObserver) return;
  new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    drawing();
  }).observe(host);
}
function drawEach(selector, draw) {
  for (const host of document.querySelectorAll(selector)) keepDrawn(host, w => draw(host, w));
}
const redrawAll = () => drawings.forEach(draw => draw());
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);
window.addEventListener('beforeprint', () => { document.documentElement.dataset.print = '';
    redrawAll(); });
window.addEventListener('afterprint', () => { delete document.documentElement.dataset.print;
    redrawAll(); });

// Reads out the nearest of `spots` [{x, y, text}] to the pointer.
function readOut(svg, spots, w, reach) {
  const ring = add(svg, 'circle', {r: 6, fill: 'none', stroke: 'var(--ink)', 'stroke-width': 1.5,
      visibility: 'hidden'});
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect();
    const scale = w / box.width;
    const px = (event.clientX - box.left) * scale;
    const py = (event.clientY - box.top) * scale;
    let best = null;
    let nearest = reach * reach;
    for (const spot of spots) {
      const d = (spot.x - px) ** 2 + (spot.y - py) ** 2;
      if (d < nearest) { nearest = d; best = spot; }
    }
    ring.setAttribute('visibility', best ? 'visible' : 'hidden');
    if (!best) { hideTip(); return; }
    ring.setAttribute('cx', best.x);
    ring.setAttribute('cy', best.y);
    showTip(event, best.text);
  });
  svg.addEventListener('pointerleave', () => { ring.setAttribute('visibility', 'hidden'); hideTip();
      });
}
)js";

}  // namespace

std::string_view script_core() {
  static const std::string text =
      std::string(kNumbers) + std::string(kSurfaces) + std::string(kEvents);
  return text;
}

std::string script() {
  std::string text = "'use strict';\n(() => {\n";
  for (const std::string_view part :
       {script_core(), script_maps(), script_charts(), script_curves(), script_timeline()}) {
    text += part;
  }
  return text + "})();\n";
}

}  // namespace strata::page
