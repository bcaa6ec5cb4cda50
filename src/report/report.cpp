// The page put together: head, sections in reading order, numbers, script.
//
// Method: text goes into the page only through `escape`; numbers for the script go in as JSON whose
// '<', '>' and '&' are written \u003c, \u003e and \u0026, so no string can end the element that
// holds it. A content security policy forbids every connection.

#include "strata/report.hpp"
#include "base/json.hpp"

#include <fmt/core.h>

#include <cmath>
#include <ostream>

#include "base/check.hpp"
#include "base/output_file.hpp"
#include "report/page.hpp"
#include "report/text.hpp"

namespace strata {
namespace {

void check_map(const ReportMap& map) {
  for (const MapLayer& layer : map.layers) {
    if (!layer.grid) {
      require(layer.x.size() == layer.value.size() && layer.y.size() == layer.value.size(),
              ErrorKind::misuse, "report", "map layer '{}' has {} x, {} y and {} values",
              layer.name, layer.x.size(), layer.y.size(), layer.value.size());
      continue;
    }
    const std::int64_t nx = layer.grid->nx;
    const std::int64_t ny = layer.grid->ny;
    const auto values = static_cast<std::int64_t>(layer.value.size());
    require(nx > 0 && ny > 0 && values % nx == 0 && values / nx == ny, ErrorKind::misuse, "report",
            "map layer '{}' has {} values for a grid of {} x {}", layer.name, values, nx, ny);
  }
}

void check_precision_map(const ReportPrecisionMap& map) {
  constexpr std::int64_t kTilesMax = std::int64_t{1} << 28;  // as many as a BlockId can count
  require(map.tiles >= 1 && map.tiles < kTilesMax, ErrorKind::misuse, "report",
          "precision map '{}' of {} rows of tiles", map.title, map.tiles);
  require(std::ssize(map.elements) == map.tiles * (map.tiles + 1) / 2, ErrorKind::misuse, "report",
          "precision map '{}' has {} elements for the lower triangle of {} rows of tiles",
          map.title, map.elements.size(), map.tiles);
  for (const Element element : map.elements) {
    require(static_cast<int>(element) < kElements, ErrorKind::misuse, "report",
            "precision map '{}' has {}, which is no element", map.title, static_cast<int>(element));
  }
}

void check_tree(const ReportTree& tree) {
  require(tree.weight.size() == tree.parent.size() &&
              (tree.label.empty() || tree.label.size() == tree.parent.size()),
          ErrorKind::misuse, "report", "tree '{}' has {} nodes, {} weights and {} labels",
          tree.title, tree.parent.size(), tree.weight.size(), tree.label.size());
  for (std::int64_t v = 0; v < std::ssize(tree.parent); ++v) {
    const std::int64_t parent = tree.parent[static_cast<std::size_t>(v)];
    require(parent == -1 || (parent > v && parent < std::ssize(tree.parent)), ErrorKind::misuse,
            "report", "tree '{}': node {} has the parent {}, which is not behind it", tree.title, v,
            parent);
    const double weight = tree.weight[static_cast<std::size_t>(v)];
    require(weight >= 0 && std::isfinite(weight), ErrorKind::misuse, "report",
            "tree '{}': node {} has the weight {}", tree.title, v, weight);
  }
}

void check(const ReportData& data) {
  if (data.tree) check_tree(*data.tree);
  if (data.map) check_map(*data.map);
  for (const ReportPrecisionMap& map : data.precision_maps) check_precision_map(map);
  for (const ReportChart& chart : data.charts) {
    for (const ReportSeries& series : chart.series) {
      require(series.x.size() == series.y.size(), ErrorKind::misuse, "report",
              "line '{}' has {} x and {} y", series.name, series.x.size(), series.y.size());
    }
  }
  for (const ReportBars& bars : data.bars) {
    for (const ReportBar& bar : bars.bars)
      require(bar.values.size() == bars.parts.size(), ErrorKind::misuse, "report",
              "bar '{}' has {} values for {} parts", bar.name, bar.values.size(),
              bars.parts.size());
  }
  for (const ReportTable& table : data.tables) {
    for (const std::vector<std::string>& row : table.rows)
      require(row.size() == table.columns.size(), ErrorKind::misuse, "report",
              "table '{}' has a row of {} entries for {} columns", table.title, row.size(),
              table.columns.size());
  }
  for (const ReportEvaluation& e : data.evaluations) {
    require(e.others.size() == data.other_parameters.size(), ErrorKind::misuse, "report",
            "an evaluation has {} other parameters, the report names {}", e.others.size(),
            data.other_parameters.size());
  }
  if (!data.hold_out) return;
  const ReportHoldOut& h = *data.hold_out;
  require(h.predicted.size() == h.observed.size(), ErrorKind::misuse, "report",
          "hold-out has {} observed and {} predicted values", h.observed.size(),
          h.predicted.size());
  require(h.standard_error.empty() || h.standard_error.size() == h.observed.size(),
          ErrorKind::misuse, "report", "hold-out has {} observed values and {} standard errors",
          h.observed.size(), h.standard_error.size());
}

/// JSON that may stand inside a script element.
std::string embedded(const Json& value) {
  const std::string plain = value.dump_ascii();
  std::string text;
  text.reserve(plain.size());
  for (const char c : plain) {
    if (c == '<') {
      text += "\\u003c";
    } else if (c == '>') {
      text += "\\u003e";
    } else if (c == '&') {
      text += "\\u0026";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string page::header_section(const ReportData& data) {
  std::string text = "<header>\n";
  text += fmt::format("<h1>{}</h1>\n", escape(data.title));
  if (!data.subtitle.empty())
    text += fmt::format("<p class=\"lead\">{}</p>\n", escape(data.subtitle));
  if (!data.command.empty()) {
    text += fmt::format("<pre class=\"command\"><code>{}</code></pre>\n", escape(data.command));
  }
  if (!data.figures.empty()) text += "<dl class=\"figures\">\n";
  for (const KeyFigure& figure : data.figures) {
    text += fmt::format(
        "<div><dt>{}</dt><dd>{}{}</dd>", escape(figure.label), escape(figure.value),
        figure.unit.empty() ? "" : fmt::format(" <small>{}</small>", escape(figure.unit)));
    if (!figure.note.empty())
      text += fmt::format("<dd class=\"note\">{}</dd>", escape(figure.note));
    text += "</div>\n";
  }
  if (!data.figures.empty()) text += "</dl>\n";
  return text + "</header>\n";
}

std::string render_report(const ReportData& data) {
  check(data);
  const page::Timeline timeline = data.run ? page::timeline_of(data.run->trace) : page::Timeline{};
  std::string text = fmt::format(
      R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{}</title>
<style>
)",
      page::escape(data.title));
  text += page::style();
  text += "</style>\n</head>\n<body>\n<main>\n";
  text += page::header_section(data);
  text += page::map_section(data);
  text += page::path_section(data);
  text += page::hold_out_section(data);
  text += page::charts_section(data);
  text += page::bars_section(data);
  text += page::tables_section(data);
  text += page::precision_section(data);
  text += page::tree_section(data);
  text += page::run_section(data);
  text += page::timeline_section(data, timeline);
  text += page::traffic_section(data);
  text +=
      "<noscript><p class=\"note\">The drawings need JavaScript; the tables do "
      "not.</p></noscript>\n";
  text += fmt::format("<footer>{}{}Strata</footer>\n", page::escape(data.date),
                      data.date.empty() ? "" : " · ");
  text += "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n";
  text += "<svg id=\"seed\" width=\"0\" height=\"0\" aria-hidden=\"true\"></svg>\n";
  text += "<script type=\"application/json\" id=\"report-data\">";
  text += embedded(page::page_data(data, timeline));
  text += "</script>\n<script>\n";
  text += page::script();
  text += "</script>\n</body>\n</html>\n";
  return text;
}

void write_report(const std::string& path, const ReportData& data) {
  const std::string text = render_report(data);
  replace_file(path, [&text](std::ostream& out) { out << text; });
}

}  // namespace strata
