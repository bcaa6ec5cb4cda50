// The script, part 2: map panels.
//
// Equal aspect: one unit of x is as long as one unit of y. A panel is a canvas with its axes and
// its colour bar; pointing at one panel reads all panels at the same place.

#include "report/page.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kMapColors = R"js(
function paletteOf(hex) {
  return Array.from({length: 256}, (_, i) => [0, 2, 4].map(k => parseInt(hex.slice(6 * i + k,
      6 * i + k + 2), 16)));
}
function colorIndex(value, scale) {
  const width = scale.hi - scale.lo;
  const share = width > 0 ? (value - scale.lo) / width : 0.5;
  return Math.max(0, Math.min(255, Math.round(share * 255)));
}
// The grid as an image of one pixel a cell, y upwards; masked cells stay transparent.
function gridImage(layer, palette, scale) {
  const {nx, ny} = layer.grid;
  const canvas = document.createElement('canvas');
  canvas.width = nx;
  canvas.height = ny;
  const g = canvas.getContext('2d');
  const image = g.createImageData(nx, ny);
  layer.values.forEach((value, cell) => {
    if (Number.isNaN(value)) return;
    const row = ny - 1 - Math.floor(cell / nx);
    const at = 4 * (row * nx + cell % nx);
    image.data.set([...palette[colorIndex(value, scale)], 255], at);
  });
  g.putImageData(image, 0, 0);
  return canvas;
}
function colorBar(g, palette, scale, unit, left, top, width) {
  const height = 9;
  for (let i = 0; i < width; ++i) {
    const [r, green, b] = palette[Math.min(255, Math.floor(256 * i / width))];
    g.fillStyle = 'rgb(' + r + ',' + green + ',' + b + ')';
    g.fillRect(left + i, top, 1.5, height);
  }
  if (!(scale.hi > scale.lo)) {
    write(g, joined(number(scale.lo), unit), left + width / 2, top + height + 7, 'center', 'top',
        color('muted'));
    return;
  }
  const ink = color('muted');
  g.font = fontOf(12);
  const unitWidth = unit ? g.measureText(unit).width + 12 : 0;
  const x = linearScale(scale.lo, scale.hi, left, left + width);
  for (const t of x.ticks(Math.max(2, Math.round(width / 52)))) {
    const half = g.measureText(t.text).width / 2;
    if (x(t.at) + half > left + width - unitWidth + 2) continue;
    line(g, x(t.at), top + height, x(t.at), top + height + 4, color('line'));
    const spot = Math.max(left + half, x(t.at));
    write(g, t.text, spot, top + height + 7, 'center', 'top', ink);
  }
  if (unit) write(g, unit, left + width, top + height + 7, 'right', 'top', ink);
}
)js";

constexpr std::string_view kPanels = R"js(
function dotRadius(count, plotWidth) {
  return Math.max(1.1, Math.min(4.5, plotWidth / 6 / Math.sqrt(Math.max(count, 1)) + 0.4));
}
function panelGeometry(map, w) {
  const [x0, x1, y0, y1] = map.extent;
  const left = gutter(linearTicks(y0, y1, 5)) + 14;
  const aspect = (y1 - y0) / (x1 - x0);
  let width = w - left - 10;
  let height = width * aspect;
  const tallest = Math.max(240, 1.25 * width);
  if (height > tallest) { width *= tallest / height; height = tallest; }
  const top = 8;
  return {left, top, width, height, right: left + width, bottom: top + height, total: top + height +
      96};
}
function drawAxes(g, map, box, x, y) {
  const ink = color('muted');
  for (const t of x.ticks(Math.max(2, Math.round(box.width / 80)))) {
    line(g, x(t.at), box.bottom, x(t.at), box.bottom + 4, color('line'));
    write(g, t.text, x(t.at), box.bottom + 7, 'center', 'top', ink);
  }
  for (const t of y.ticks(Math.max(2, Math.round(box.height / 60)))) {
    line(g, box.left - 4, y(t.at), box.left, y(t.at), color('line'));
    write(g, t.text, box.left - 8, y(t.at), 'right', 'middle', ink);
  }
  write(g, map.x, box.left + box.width / 2, box.bottom + 24, 'center', 'top', ink);
  g.save();
  g.translate(8, box.top + box.height / 2);
  g.rotate(-Math.PI / 2);
  write(g, map.y, 0, 0, 'center', 'middle', ink);
  g.restore();
  g.strokeStyle = color('line');
  g.lineWidth = 1;
  g.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
}
function cellSize(grid) {
  return [(grid.x1 - grid.x0) / Math.max(grid.nx - 1, 1),
      (grid.y1 - grid.y0) / Math.max(grid.ny - 1, 1)];
}
function drawPanel(map, layer, canvas, w) {
  const box = panelGeometry(map, w);
  const [x0, x1, y0, y1] = map.extent;
  const x = linearScale(x0, x1, box.left, box.right);
  const y = linearScale(y0, y1, box.bottom, box.top);
  const scale = map.scales[layer.quantity];
  const palette = map.palettes[layer.quantity];
  const g = surface(canvas, w, box.total);
  g.save();
  g.beginPath();
  g.rect(box.left, box.top, box.width, box.height);
  g.clip();
  if (layer.grid) {
    layer.image = layer.image || gridImage(layer, palette, scale);
    const [dx, dy] = cellSize(layer.grid);
    const a = x(layer.grid.x0 - dx / 2);
    const b = y(layer.grid.y1 + dy / 2);
    g.imageSmoothingEnabled = false;
    g.drawImage(layer.image, a, b, x(layer.grid.x1 + dx / 2) - a, y(layer.grid.y0 - dy / 2) - b);
  } else {
    const radius = dotRadius(layer.values.length, box.width);
    layer.values.forEach((value, i) => {
      if (!Number.isFinite(value + layer.x[i] + layer.y[i])) return;
      const [r, green, b] = palette[colorIndex(value, scale)];
      g.fillStyle = 'rgb(' + r + ',' + green + ',' + b + ')';
      g.beginPath();
      g.arc(x(layer.x[i]), y(layer.y[i]), radius, 0, 7);
      g.fill();
    });
  }
  g.restore();
  drawAxes(g, map, box, x, y);
  colorBar(g, palette, scale, layer.unit, box.left, box.bottom + 54, box.width);
  Object.assign(layer, {box, xScale: x, yScale: y});
}
)js";

constexpr std::string_view kReading = R"js(
// The value of a layer at a place: its cell, or the nearest point within reach.
function valueAt(layer, px, py) {
  if (layer.grid) {
    const {nx, ny, x0, y0} = layer.grid;
    const [dx, dy] = cellSize(layer.grid);
    const i = Math.round((px - x0) / (dx || 1));
    const j = Math.round((py - y0) / (dy || 1));
    return i >= 0 && j >= 0 && i < nx && j < ny ? layer.values[j * nx + i] : NaN;
  }
  const reach = layer.xScale.back(layer.box.left + 10) - layer.xScale.lo;
  let nearest = reach * reach;
  let value = NaN;
  layer.values.forEach((v, i) => {
    const d = (layer.x[i] - px) ** 2 + (layer.y[i] - py) ** 2;
    if (d < nearest) { nearest = d; value = v; }
  });
  return value;
}
function readMaps(map, panels, layer, event, canvas) {
  const bounds = canvas.getBoundingClientRect();
  const sx = event.clientX - bounds.left;
  const sy = event.clientY - bounds.top;
  const inside = sx >= layer.box.left && sx <= layer.box.right && sy >= layer.box.top &&
      sy <= layer.box.bottom;
  for (const panel of panels) panel.cross.hidden = !inside;
  if (!inside) { hideTip(); return; }
  const px = layer.xScale.back(sx);
  const py = layer.yScale.back(sy);
  const lines = [number(px, 4) + ', ' + number(py, 4)];
  for (const panel of panels) {
    panel.cross.style.left = panel.layer.xScale(px) + 'px';
    panel.cross.style.top = panel.layer.yScale(py) + 'px';
    const value = valueAt(panel.layer, px, py);
    const text = Number.isFinite(value) ? joined(number(value), panel.layer.unit) : '\u2013';
    lines.push(panel.layer.name + ': ' + text);
  }
  showTip(event, lines.join('\n'));
}
function startMaps(map) {
  map.palettes = {value: paletteOf(map.colors.value), error: paletteOf(map.colors.error)};
  const panels = [];
  for (const host of document.querySelectorAll('[data-map]')) {
    const layer = map.layers[Number(host.dataset.map)];
    layer.values = quantized(layer.grid ? layer.grid.v : layer.points.v);
    if (layer.points) Object.assign(layer, {x: quantized(layer.points.x),
        y: quantized(layer.points.y)});
    const canvas = host.querySelector('canvas');
    const cross = document.createElement('div');
    cross.className = 'cross';
    cross.hidden = true;
    host.appendChild(cross);
    panels.push({layer, cross});
    keepDrawn(host, w => drawPanel(map, layer, canvas, w));
    const read = event => readMaps(map, panels, layer, event, canvas);
    canvas.addEventListener('pointermove', read);
    canvas.addEventListener('pointerdown', read);
    canvas.addEventListener('pointerleave', () => { panels.forEach(p => { p.cross.hidden = true; });
        hideTip(); });
  }
}
if (data.map) startMaps(data.map);
)js";

}  // namespace

std::string_view script_maps() {
  static const std::string text =
      std::string(kMapColors) + std::string(kPanels) + std::string(kReading);
  return text;
}

}  // namespace strata::page
