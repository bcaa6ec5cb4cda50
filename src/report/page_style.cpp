// The style sheet: one column, system fonts, four sizes of type, colours as variables so that the
// script draws with the same ones in light, dark and print.

#include "report/page.hpp"

namespace strata::page {
namespace {

constexpr std::string_view kStyleColors = R"css(
:root {
  --bg: #fcfcfa; --raised: #f3f3ef; --ink: #1c1f24; --muted: #62676f; --line: #dcddd8;
    --grid: #e7e7e2;
  --accent: #14708a; --accent-soft: #14708a33; --second: #c2571a; --good: #1f7a45; --bad: #b3261e;
  --code-0: #5aa7dc; --code-1: #e0a030; --code-2: #c8443f; --code-3: #8a5fc0; --code-4: #5fb59a;
  --code-5: #1d8577; --code-6: #b278d6; --code-7: #d67fb4; --code-8: #7fa23a; --code-9: #a9be5a;
  --code-10: #8b8578;
  --fp64: #143d5c; --fp32: #1f7590; --fp16x2: #41a08f; --fp16: #93c069; --fp8: #e8c84e;
}
@media screen and (prefers-color-scheme: dark) {
  :root:not([data-print]) {
    --bg: #14171b; --raised: #1e2228; --ink: #e7e8ea; --muted: #9aa1ab; --line: #353b44;
    --grid: #262b32;
    --accent: #56b4d0; --accent-soft: #56b4d033; --second: #f0965a; --good: #63c08a; --bad: #ff8a80;
    --code-5: #2a9d8d; --code-3: #9c76d0; --code-2: #dd5a54;
    --fp64: #f1ecb6; --fp32: #a3d086; --fp16x2: #4fae95; --fp16: #2f7f99; --fp8: #3c5790;
  }
}
)css";

constexpr std::string_view kText = R"css(
* { box-sizing: border-box; }
html { background: var(--bg); color: var(--ink); color-scheme: light dark;
  -webkit-text-size-adjust: 100%; }
body { margin: 0; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  "Liberation Sans", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 56px 32px 40px; }
h1 { font-size: 34px; line-height: 1.15; font-weight: 650; letter-spacing: -0.02em; margin: 0;
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 22px; line-height: 1.3; font-weight: 600; letter-spacing: -0.01em; margin: 0 0 6px;
  max-width: 46em; text-wrap: balance; }
p { margin: 0; }
.lead { font-size: 18px; color: var(--muted); margin-top: 8px; max-width: 52em; text-wrap: balance;
  overflow-wrap: anywhere; }
.note { font-size: 14px; color: var(--muted); max-width: 50em; }
.muted { color: var(--muted); font-weight: 400; }
.command { margin: 20px 0 0; padding: 10px 14px; background: var(--raised); border-radius: 6px;
  font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.command code { font: inherit; }
section { margin-top: 64px; padding-top: 28px; border-top: 1px solid var(--line); }
header + section { margin-top: 48px; }
footer { margin-top: 72px; padding-top: 16px; border-top: 1px solid var(--line); font-size: 13px;
  color: var(--muted); }
.figures { display: flex; flex-wrap: wrap; gap: 28px 48px; margin: 40px 0 0; }
.figures dt { font-size: 14px; color: var(--muted); }
.figures dd { margin: 2px 0 0; font-size: 30px; line-height: 1.2; font-weight: 600;
  letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.figures dd small { font-size: 16px; font-weight: 400; color: var(--muted); letter-spacing: 0; }
.figures dd.note { font-size: 13px; line-height: 1.4; font-weight: 400; letter-spacing: 0;
  max-width: 16em; margin-top: 4px; }
.facts { display: flex; flex-wrap: wrap; gap: 12px 36px; margin: 18px 0 0; font-size: 15px; }
.facts dt { font-size: 13px; color: var(--muted); }
.facts dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: 14px; line-height: 1.4; margin-bottom: 6px; }
figcaption strong { font-weight: 600; }
)css";

constexpr std::string_view kLayout = R"css(
.plot { position: relative; width: 100%; margin-top: 4px; min-height: 40px; }
.plot canvas, .plot svg { display: block; width: 100%; touch-action: pan-y; }
.plot svg { overflow: visible; }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr));
  gap: 32px 28px; margin-top: 22px; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(380px, 100%), 1fr));
  gap: 32px 56px; margin-top: 22px; align-items: start; }
.two > div { min-width: 0; }
.four { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(220px, 100%), 1fr));
  gap: 28px; margin-top: 30px; }
.four + .note { margin-top: 14px; }
.two table + figure { margin-top: 32px; }
[data-chart="likelihood"], [data-chart="timeline"] { margin-top: 18px; }
.cross { position: absolute; width: 13px; height: 13px; margin: -7px 0 0 -7px;
  border: 2px solid #fff; outline: 1.5px solid #000; border-radius: 50%; pointer-events: none; }
#tip { position: fixed; z-index: 9; left: 0; top: 0; padding: 6px 10px; max-width: 320px;
  background: var(--ink); color: var(--bg); border-radius: 5px; font-size: 13px; line-height: 1.45;
  font-variant-numeric: tabular-nums; white-space: pre-line; pointer-events: none; }
#tip[hidden], .cross[hidden] { display: none; }
#seed { position: absolute; }
svg text { font-size: 12px; fill: var(--muted); font-variant-numeric: tabular-nums; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; list-style: none; padding: 0;
  margin: 16px 0 0; font-size: 14px; font-variant-numeric: tabular-nums; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 7px;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.code-0 { background: var(--code-0); } .code-1 { background: var(--code-1); } .code-2 {
  background: var(--code-2); }
.code-3 { background: var(--code-3); } .code-4 { background: var(--code-4); } .code-5 {
  background: var(--code-5); }
.code-6 { background: var(--code-6); } .code-7 { background: var(--code-7); } .code-8 {
  background: var(--code-8); }
.code-9 { background: var(--code-9); } .code-10 { background: var(--code-10); }
.tree rect { fill: var(--accent-soft); stroke: var(--accent); stroke-width: 0.4; }
.tree rect:hover { fill: var(--accent); }
.precision svg { max-width: 460px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
[class*="tile-"] { background: var(--muted); fill: var(--muted); }
.tile-fp64 { background: var(--fp64); fill: var(--fp64); }
.tile-fp32 { background: var(--fp32); fill: var(--fp32); }
.tile-fp16x2 { background: var(--fp16x2); fill: var(--fp16x2); }
.tile-fp16 { background: var(--fp16); fill: var(--fp16); }
.tile-fp8 { background: var(--fp8); fill: var(--fp8); }
.tile-none { background: var(--grid); fill: var(--grid); }
.controls { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 14px;
  font-size: 13px; }
.controls .muted { margin-left: 6px; }
button { font: inherit; color: var(--ink); background: transparent; border: 1px solid var(--line);
  border-radius: 5px; padding: 3px 10px; cursor: pointer; }
button:hover { background: var(--raised); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
)css";

constexpr std::string_view kTables = R"css(
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 4px; }
th, td { padding: 5px 18px 5px 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--grid); }
th { font-weight: 400; }
thead th { color: var(--muted); font-size: 13px; border-bottom-color: var(--line); }
th:first-child, td.text, th.text { text-align: left; }
th:last-child, td:last-child { padding-right: 2px; }
tr.best > * { background: var(--accent-soft); }
.scores { width: 100%; }
.scores td.text { white-space: normal; padding-left: 8px; }
.bars { width: 100%; }
.bars th:first-child { width: 1%; }
.bars td { width: 1%; }
.bars td.bar { position: relative; width: auto; min-width: 90px; height: 30px; padding: 0;
  border-bottom-color: transparent; }
.bars tbody th, .bars tbody td { border-bottom-color: transparent; }
.bars td.bar + td { padding-left: 18px; }
.bar span { position: absolute; left: 0; top: 8px; height: 14px; min-width: 1px; border-radius: 2px;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.bar .solid { background: var(--accent); }
.bar .quiet { background: var(--muted); }
.bar .bad { background: var(--bad); }
.bar .outline { border: 1.5px solid var(--muted); }
.traffic .bar .outline { top: 5px; height: 20px; border-width: 1px; }
.bar .mark { border-right: 2px solid var(--second); border-radius: 0; top: 4px; height: 22px;
  background: linear-gradient(var(--second), var(--second)) left center / 100% 1px no-repeat; }
.traffic tr.total > * { font-weight: 600; }
.traffic tr.total td, .traffic tr.total th, .traffic tr.floor td, .traffic tr.floor th {
  border-top: 1px solid var(--grid); }
.good { color: var(--good); }
.wrong { color: var(--bad); font-weight: 600; }
details { margin-top: 18px; font-size: 14px; }
summary { cursor: pointer; color: var(--muted); width: fit-content; }
.scroll { overflow-x: auto; margin-top: 10px; }
.scroll.tall { max-height: 360px; overflow-y: auto; }
.tall thead th { position: sticky; top: 0; background: var(--bg); }
@media (max-width: 640px) {
  main { padding: 32px 18px 28px; }
  h1 { font-size: 27px; }
  h2 { font-size: 19px; }
  section { margin-top: 48px; padding-top: 22px; }
  .figures { gap: 20px 32px; }
  .figures dd { font-size: 25px; }
  th, td { padding-right: 12px; }
  .bars td.bar { min-width: 56px; }
  .word { display: none; }
}
@media print {
  main { max-width: none; padding: 0; }
  section { break-inside: avoid; margin-top: 32px; }
  .controls, details, #tip, .cross { display: none; }
}
)css";

}  // namespace

std::string style() {
  std::string text;
  for (const std::string_view part : {kStyleColors, kText, kLayout, kTables}) text += part;
  return text;
}

}  // namespace strata::page
