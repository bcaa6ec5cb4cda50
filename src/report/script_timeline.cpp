// The script, part 4: the timeline.
//
// Boxes are drawn at their true width, however narrow: the canvas blends a box thinner than a pixel
// in proportion, so a track's tint shows its operations and its idle time at every
// zoom.

#include "report/page.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kDraw = R"js(
function decodeTrack(track, seconds) {
  const time = text => u32(text).map(t => t / 4294967295 * seconds);
  return Object.assign(track, {
    begin: time(track.begin), end: time(track.end), count: u32(track.count), code: u8(track.code),
    amount: f32(track.amount), row: u32(track.row), col: u32(track.col)});
}
// Index of the first box that ends after `time`.
function firstAfter(track, time) {
  let low = 0;
  let high = track.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (track.end[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}
const codeColor = code => color('code-' + (code < 2 ? code : 2 + (code - 2) % 9));
function timelineLayout(t, w) {
  const wide = w >= 640;
  const names = t.tracks.map(track => [track.device, track.name].filter(s => s).join(' \u00b7 '));
  const left = wide ? Math.min(240, gutter(names.map(text => ({text}))) + 6) : 0;
  const bar = t.tracks.length > 12 ? 14 : 22;
  const pitch = wide ? bar + 8 : bar + 24;
  const share = wide ? 56 : 0;
  const bottom = t.tracks.length * pitch + 2;
  return {wide, names, left, right: w - share, bar, pitch, bottom, height: bottom + 28,
          top: k => k * pitch + (wide ? 4 : 18)};
}
// Ticks of a time axis in the unit that suits its range.
function timeTicks(from, to, count) {
  const units = [[14400, 3600, ' h'], [600, 60, ' min'], [0.5, 1, ' s'], [5e-4, 1e-3, ' ms'], [0,
      1e-6, ' \u00b5s']];
  const [, size, name] = units.find(([least]) => to - from > least) || units[4];
  return linearTicks(from / size, to / size, count).map(t => ({at: t.at * size, text: t.text +
      name}));
}
function drawTimeline(t, canvas, w) {
  const place = t.place = timelineLayout(t, w);
  const g = surface(canvas, w, place.height);
  const x = t.x = linearScale(t.from, t.to, place.left, place.right);
  const colors = t.names.map((_, code) => codeColor(code));
  const muted = color('muted');
  t.tracks.forEach((track, k) => {
    const top = place.top(k);
    const middle = place.wide ? top + place.bar / 2 : top - 8;
    g.fillStyle = color('raised');
    g.fillRect(place.left, top, place.right - place.left, place.bar);
    write(g, place.names[k], 0, middle, 'left', 'middle', color('ink'));
    write(g, number(100 * track.share, 2) + ' %', w, middle, 'right', 'middle', muted);
    g.save();
    g.beginPath();
    g.rect(place.left, top, place.right - place.left, place.bar);
    g.clip();
    for (let i = firstAfter(track, t.from); i < track.begin.length && track.begin[i] < t.to; ++i) {
      const a = x(track.begin[i]);
      const width = x(track.end[i]) - a;
      g.fillStyle = colors[track.code[i]];
      g.fillRect(a, top, width > 4 ? width - 0.75 : Math.max(width, 0.15), place.bar);
    }
    g.restore();
  });
  const count = Math.max(2, Math.round((place.right - place.left) / 100));
  for (const tick of timeTicks(t.from, t.to, count)) {
    const half = g.measureText(tick.text).width / 2;
    line(g, x(tick.at), place.bottom, x(tick.at), place.bottom + 5, color('line'));
    write(g, tick.text, Math.max(place.left + half, Math.min(w - half, x(tick.at))), place.bottom +
        9, 'center', 'top', muted);
  }
  line(g, place.left, place.bottom, place.right, place.bottom, color('line'));
  if (t.drag) {
    g.fillStyle = color('accent-soft');
    g.fillRect(Math.min(...t.drag), 0, Math.abs(t.drag[1] - t.drag[0]), place.bottom);
  }
}
)js";

constexpr std::string_view kZoom = R"js(
function boxText(t, track, i) {
  const name = t.names[track.code[i]];
  const amount = prefixed(track.amount[i], track.code[i] < 2 ? 'B' : 'flop');
  if (track.count[i] > 1) {
    return name + ': ' + track.count[i].toLocaleString('en-US') + ' neighbouring spans\n' +
        duration(track.end[i] - track.begin[i]) +
        ' in all, near ' + duration(track.begin[i]) + '\n' + amount;
  }
  const block = track.row[i] === 0xffffffff ? '' : ' (' + track.row[i] + ', ' + track.col[i] + ')';
  return name + block + '\n' + duration(track.end[i] - track.begin[i]) + ' from ' +
      duration(track.begin[i]) + '\n' + amount;
}
function boxAt(t, px, py) {
  const k = t.tracks.findIndex((_, k) => py >= t.place.top(k) && py <= t.place.top(k) +
      t.place.bar);
  if (k < 0 || px < t.place.left || px > t.place.right) return '';
  const track = t.tracks[k];
  const slack = (t.to - t.from) / (t.place.right - t.place.left);
  const time = t.x.back(px);
  const i = firstAfter(track, time - slack);
  return i < track.begin.length && track.begin[i] <= time + slack ? boxText(t, track, i) : '';
}
function setRange(t, from, to) {
  const width = Math.min(t.seconds, Math.max(to - from, t.seconds * 1e-6));
  t.from = Math.max(0, Math.min(from, t.seconds - width));
  t.to = t.from + width;
  const whole = width >= t.seconds * 0.999999;
  t.text.textContent = whole ? 'Drag over a stretch to enlarge it.' : duration(width) + ' from ' +
      duration(t.from);
  t.redraw();
}
function zoomBy(t, factor, center = (t.from + t.to) / 2) {
  setRange(t, center - (center - t.from) * factor, center + (t.to - center) * factor);
}
const zoomActions = {
  in: t => zoomBy(t, 0.5), out: t => zoomBy(t, 2), all: t => setRange(t, 0, t.seconds),
  left: t => setRange(t, t.from - (t.to - t.from) / 3, t.to - (t.to - t.from) / 3),
  right: t => setRange(t, t.from + (t.to - t.from) / 3, t.to + (t.to - t.from) / 3)};
const zoomKeys = {'+': 'in', '=': 'in', '-': 'out', '0': 'all', ArrowLeft: 'left',
    ArrowRight: 'right'};

function listenTimeline(t, canvas) {
  const spot = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const bounded = px => Math.max(t.place.left, Math.min(t.place.right, px));
  canvas.addEventListener('pointerdown', event => {
    if (event.pointerType === 'touch') return;
    const px = bounded(spot(event)[0]);
    t.drag = [px, px];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    const [px, py] = spot(event);
    if (t.drag) { t.drag[1] = bounded(px); t.redraw(); }
    const text = boxAt(t, px, py);
    if (text) showTip(event, text); else hideTip();
  });
  canvas.addEventListener('pointerup', () => {
    if (!t.drag) return;
    const [a, b] = t.drag.map(px => t.x.back(px)).sort((p, q) => p - q);
    const wide = Math.abs(t.drag[1] - t.drag[0]) > 4;
    t.drag = null;
    if (wide) setRange(t, a, b); else t.redraw();
  });
  canvas.addEventListener('pointercancel', () => { t.drag = null; t.redraw(); });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('dblclick', () => zoomActions.all(t));
  canvas.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return;  // plain scrolling stays the page's
    event.preventDefault();
    zoomBy(t, Math.exp(event.deltaY / 300), t.x.back(bounded(spot(event)[0])));
  }, {passive: false});
  canvas.addEventListener('keydown', event => {
    const action = zoomKeys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoomActions[action](t);
  });
}
function startTimeline(t) {
  const host = document.querySelector('[data-chart="timeline"]');
  const canvas = host.querySelector('canvas');
  t.tracks.forEach(track => decodeTrack(track, t.seconds));
  Object.assign(t, {from: 0, to: t.seconds || 1, drag: null,
      text: document.querySelector('[data-zoom-text]')});
  t.redraw = () => drawTimeline(t, canvas, host.clientWidth);
  keepDrawn(host, t.redraw);
  listenTimeline(t, canvas);
  for (const button of document.querySelectorAll('button[data-zoom]')) {
    button.addEventListener('click', () => zoomActions[button.dataset.zoom](t));
  }
}
if (data.timeline) startTimeline(data.timeline);
)js";

}  // namespace

std::string_view script_timeline() {
  static const std::string text = std::string(kDraw) + std::string(kZoom);
  return text;
}

}  // namespace strata::page
