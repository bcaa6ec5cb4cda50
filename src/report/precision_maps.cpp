// The section of precision maps: in which element each tile of a lower triangle is kept.
//
// Method: a drawing is a path for each element, of one rectangle for each run of equal tiles in a
// row; it needs no script, so it prints, and reads as text by its legend. A triangle with more rows
// of tiles than are drawn is drawn by squares of k × k tiles, each in the element that most of its
// tiles have, of two that as many have the wider one.

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

using Counts = std::array<std::int64_t, kElements>;

/// In the order of the legend: the widest first.
constexpr std::array<Element, kElements> kLegend{
    Element::complex128, Element::dd,   Element::fp64,  Element::complex64,
    Element::int64,      Element::fp32, Element::int32, Element::fp16x2,
    Element::fp16,       Element::bf16, Element::fp8,   Element::none};

Counts counts_of(const ReportPrecisionMap& map) {
  Counts counts{};
  for (const Element element : map.elements) ++counts[static_cast<std::size_t>(element)];
  return counts;
}

Element element_at(const ReportPrecisionMap& map, std::int64_t row, std::int64_t col) {
  return map.elements[static_cast<std::size_t>(col * map.tiles - col * (col - 1) / 2 + row - col)];
}

/// What most of the k × k tiles of a square have; those above the diagonal do not count.
Element most_common(const ReportPrecisionMap& map, std::int64_t square_row, std::int64_t square_col,
                    std::int64_t k) {
  Counts counts{};
  for (std::int64_t c = square_col * k; c < std::min((square_col + 1) * k, map.tiles); ++c) {
    for (std::int64_t r = std::max(square_row * k, c);
         r < std::min((square_row + 1) * k, map.tiles); ++r)
      ++counts[static_cast<std::size_t>(element_at(map, r, c))];
  }
  return *std::max_element(kLegend.begin(), kLegend.end(), [&](Element a, Element b) {
    return counts[static_cast<std::size_t>(a)] < counts[static_cast<std::size_t>(b)];
  });
}

std::string drawing(const ReportPrecisionMap& map, const std::string& label) {
  const std::int64_t k = (map.tiles + kTileRowsMax - 1) / kTileRowsMax;
  const std::int64_t side = (map.tiles + k - 1) / k;
  std::array<std::string, kElements> paths;
  for (std::int64_t r = 0; r < side; ++r) {
    for (std::int64_t c = 0; c <= r;) {
      const Element element = most_common(map, r, c, k);
      const std::int64_t first = c;
      while (c <= r && most_common(map, r, c, k) == element) ++c;
      paths[static_cast<std::size_t>(element)] +=
          fmt::format("M{} {}h{}v1h-{}z", first, r, c - first, c - first);
    }
  }
  std::string text = fmt::format(
      R"(<svg viewBox="0 0 {0} {0}" shape-rendering="crispEdges" role="img" aria-label="{1}">
)",
      side, label);
  for (const Element element : kLegend) {
    const std::string& path = paths[static_cast<std::size_t>(element)];
    if (path.empty()) continue;
    text += fmt::format("<path class=\"tile-{0}\" d=\"{1}\"><title>{0}</title></path>\n",
                        to_string(element), path);
  }
  return text + "</svg>\n";
}

std::string figure(const ReportPrecisionMap& map) {
  const Counts counts = counts_of(map);
  const auto whole = static_cast<double>(map.elements.size());
  std::string items;
  std::string label = "Precision of the tiles of " + escape(map.title);
  for (const Element element : kLegend) {
    const std::int64_t count = counts[static_cast<std::size_t>(element)];
    if (count == 0) continue;
    const std::string share = percent_text(static_cast<double>(count) / whole);
    items += fmt::format(
        R"(<li title="{2} of {3} tiles"><i class="swatch tile-{0}"></i>{0} <span
class="muted">{1}</span></li>
)",
        to_string(element), share, count_text(count), count_text(std::ssize(map.elements)));
    label += fmt::format(", {} {}", to_string(element), share);
  }
  const std::int64_t k = (map.tiles + kTileRowsMax - 1) / kTileRowsMax;
  const std::string thinned =
      k > 1 ? fmt::format("; a square shows what most of {0} × {0} tiles have", k) : "";
  return fmt::format(
      R"(<figure><figcaption><strong>{}</strong> <span class="muted">{} × {} tiles{}</span>
</figcaption>
<div class="plot precision">{}</div>
<ul class="legend" aria-label="Elements, and each one’s share of the tiles">
{}</ul></figure>
)",
      escape(map.title), count_text(map.tiles), count_text(map.tiles), thinned, drawing(map, label),
      items);
}

}  // namespace

std::string precision_section(const ReportData& data) {
  if (data.precision_maps.empty()) return "";
  const ReportPrecisionMap& first = data.precision_maps.front();
  const auto narrow =
      std::count_if(first.elements.begin(), first.elements.end(),
                    [](Element element) { return bytes_of(element) < bytes_of(Element::fp64); });
  std::string figures;
  for (const ReportPrecisionMap& map : data.precision_maps) figures += figure(map);
  return fmt::format(
      R"(<section id="precision"><h2>{} of the tiles of {} take fewer bits than fp64</h2>
<div class="maps">{}</div>
</section>
)",
      percent_text(static_cast<double>(narrow) / static_cast<double>(first.elements.size())),
      escape(first.title), figures);
}

}  // namespace strata::page
