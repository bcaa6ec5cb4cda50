// The sections about the data: maps, the optimizer's path, the hold-out.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/columns.hpp"
#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

/// Half the width of a 95 % interval in standard errors: the 97.5 % quantile of the normal law.
constexpr double kNormalQuantile = 1.959963984540054;

std::string map_heading(const ReportMap& map) {
  const auto is_grid = [](const MapLayer& l) { return l.grid && l.quantity == MapQuantity::value; };
  const auto is_data = [](const MapLayer& l) {
    return !l.grid && l.quantity == MapQuantity::value;
  };
  const auto data = std::find_if(map.layers.begin(), map.layers.end(), is_data);
  const auto grid = std::find_if(map.layers.begin(), map.layers.end(), is_grid);
  const MapLayer& shown = grid != map.layers.end() ? *grid : map.layers.front();
  const auto [lo, hi] = finite_range(shown.value);
  const std::string range = fmt::format("between {} and {}", number_text(lo, 3),
                                        with_unit(number_text(hi, 3), shown.unit));
  if (grid == map.layers.end()) {
    return fmt::format("{} lies {}", escape(shown.name), range);
  }
  if (data == map.layers.end()) return fmt::format("The predicted field lies {}", range);
  return fmt::format("The field predicted from {} lies {}",
                     plural(static_cast<std::int64_t>(data->value.size()), "observation"), range);
}

std::string layer_note(const MapLayer& layer) {
  if (!layer.grid && layer.value.size() > kPointsMax) {
    return fmt::format("{} points, cell means",
                       count_text(static_cast<std::int64_t>(layer.value.size())));
  }
  if (!layer.grid) return plural(static_cast<std::int64_t>(layer.value.size()), "point");
  return fmt::format("{} × {} grid", count_text(layer.grid->nx), count_text(layer.grid->ny));
}

std::string layer_figure(const MapLayer& layer, std::size_t index) {
  const auto [lo, hi] = finite_range(layer.value);
  return fmt::format(
      R"(<figure class="map"><figcaption><strong>{}</strong> <span
class="muted">{}</span></figcaption>
<div class="plot" data-map="{}"><canvas role="img"
aria-label="Map of {}: {}, values from {} to {}"></canvas></div></figure>
)",
      escape(layer.name), layer_note(layer), index, escape(layer.name), layer_note(layer),
      number_text(lo), with_unit(number_text(hi), layer.unit));
}

std::string layer_row(const MapLayer& layer) {
  std::vector<double> values;
  std::copy_if(layer.value.begin(), layer.value.end(), std::back_inserter(values),
               [](double v) { return std::isfinite(v); });
  std::sort(values.begin(), values.end());
  const auto quantile = [&values](double share) {
    if (values.empty()) return ReportHoldOut::kAbsent;
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  std::string cells;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    cells += fmt::format("<td>{}</td>", number_text(quantile(share)));
  }
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>{}<td>{}</td></tr>\n",
                     escape(layer.name), count_text(static_cast<std::int64_t>(values.size())),
                     cells, escape(layer.unit));
}

constexpr std::array kParameters{
    std::pair{"range", &ReportEvaluation::range},
    std::pair{"smoothness", &ReportEvaluation::smoothness},
    std::pair{"nugget", &ReportEvaluation::nugget},
    std::pair{"variance", &ReportEvaluation::variance},
};

/// The parameters of evaluations, in the order of page_data.cpp: those that all have, the others.
std::vector<std::string> names_of(const ReportData& data) {
  std::vector<std::string> names;
  for (const auto& [name, member] : kParameters) names.emplace_back(name);
  for (const std::string& name : data.other_parameters) names.push_back(escape(name));
  return names;
}

double parameter_of(const ReportEvaluation& evaluation, std::size_t i) {
  return i < kParameters.size() ? evaluation.*kParameters[i].second
                                : evaluation.others[i - kParameters.size()];
}

bool varies(const std::vector<ReportEvaluation>& evaluations, std::size_t i) {
  return std::any_of(evaluations.begin(), evaluations.end(), [&](const ReportEvaluation& e) {
    return parameter_of(e, i) != parameter_of(evaluations.front(), i);
  });
}

std::string parameter_figures(const ReportData& data, const ReportEvaluation& best) {
  std::string moving;
  std::string fixed;
  const std::vector<std::string> names = names_of(data);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string value = number_text(parameter_of(best, i));
    if (!varies(data.evaluations, i)) {
      fixed += fmt::format("{}{} = {}", fixed.empty() ? "Held fixed: " : ", ", names[i], value);
      continue;
    }
    moving += fmt::format(
        R"(<figure><figcaption><strong>{0}</strong> <span class="muted">{1} at the
best</span></figcaption>
<div class="plot" data-parameter="{2}" data-label="{0} by evaluation, {1} at the best"></div>
</figure>
)",
        names[i], value, i);
  }
  if (!moving.empty()) moving = "<div class=\"four\">\n" + moving + "</div>\n";
  return fixed.empty() ? moving : moving + "<p class=\"note\">" + fixed + ".</p>\n";
}

std::string evaluation_table(const ReportData& data, std::size_t best) {
  const std::vector<ReportEvaluation>& evaluations = data.evaluations;
  const std::vector<std::string> names = names_of(data);
  const std::size_t shown = std::min(evaluations.size(), kEvaluationRowsMax);
  std::string rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const ReportEvaluation& e = evaluations[i];
    rows += fmt::format("<tr{}><th scope=\"row\">{}</th><td>{}</td>",
                        i == best ? " class=\"best\"" : "", i + 1, fixed_text(e.log_likelihood, 3));
    for (std::size_t k = 0; k < names.size(); ++k)
      rows += fmt::format("<td>{}</td>", number_text(parameter_of(e, k), 5));
    rows += "</tr>\n";
  }
  const std::string title =
      shown < evaluations.size()
          ? fmt::format("The first {} of {} evaluations as a table", shown,
                        count_text(static_cast<std::int64_t>(evaluations.size())))
          : std::string("Every evaluation as a table");
  std::string heads;
  for (const std::string& name : names) heads += fmt::format("<th scope=\"col\">{}</th>\n", name);
  return fmt::format(
      R"(<details><summary>{}</summary><div class="scroll tall"><table><thead><tr><th scope="col">#
</th>
<th scope="col">log-likelihood</th>{}</tr></thead><tbody>
{}</tbody></table></div></details>
)",
      title, heads, rows);
}

std::string score_row(const char* name, const char* meaning, const std::string& value) {
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"text muted\">{}</td></tr>\n", name,
      value, meaning);
}

std::string score_table(const ReportHoldOut& h) {
  std::string rows;
  if (std::isfinite(h.rmse)) {
    rows += score_row("RMSE", "root mean squared error", with_unit(number_text(h.rmse), h.unit));
  }
  if (std::isfinite(h.mae)) {
    rows += score_row("MAE", "mean absolute error", with_unit(number_text(h.mae), h.unit));
  }
  if (std::isfinite(h.crps)) {
    rows += score_row("CRPS", "error of the whole predicted distribution",
                      with_unit(number_text(h.crps), h.unit));
  }
  if (std::isfinite(h.coverage)) {
    rows += score_row("Coverage", "of the 95 % intervals; 95 % is right", percent_text(h.coverage));
  }
  if (rows.empty()) return "";
  return "<table class=\"scores\"><caption>Scores</caption><tbody>\n" + rows + "</tbody></table>\n";
}

/// Share of observations inside their interval: as given, else counted.
double coverage_of(const ReportHoldOut& h) {
  if (std::isfinite(h.coverage)) return h.coverage;
  if (h.standard_error.empty() || h.observed.empty()) return ReportHoldOut::kAbsent;
  std::size_t inside = 0;
  for (std::size_t i = 0; i < h.observed.size(); ++i) {
    const double error = std::abs(h.observed[i] - h.predicted[i]);
    inside += error <= kNormalQuantile * h.standard_error[i] ? 1 : 0;
  }
  return static_cast<double>(inside) / static_cast<double>(h.observed.size());
}

}  // namespace

std::string map_section(const ReportData& data) {
  if (!data.map || data.map->layers.empty()) return "";
  const ReportMap& map = *data.map;
  std::string figures;
  std::string rows;
  std::size_t of_values = 0;
  for (std::size_t i = 0; i < map.layers.size(); ++i) {
    figures += layer_figure(map.layers[i], i);
    rows += layer_row(map.layers[i]);
    of_values += map.layers[i].quantity == MapQuantity::value ? 1 : 0;
  }
  return fmt::format(
      R"(<section id="map"><h2>{}</h2>
<p class="note">{}Point at a map to read all of them at the same place.</p>
<div class="maps">
{}</div>
<details><summary>The same as a table</summary><div class="scroll"><table><thead><tr><th
scope="col">layer</th>
<th scope="col">values</th><th scope="col">least</th><th scope="col">lower quarter</th><th
scope="col">median</th>
<th scope="col">upper quarter</th><th scope="col">greatest</th><th scope="col">unit</th></tr>
</thead><tbody>
{}</tbody></table></div></details>
</section>
)",
      map_heading(map), of_values > 1 ? "Values share one colour scale. " : "", figures, rows);
}

std::string path_section(const ReportData& data) {
  if (data.evaluations.empty()) return "";
  const std::size_t best = best_evaluation(data.evaluations);
  const ReportEvaluation& top = data.evaluations[best];
  const auto count = static_cast<std::int64_t>(data.evaluations.size());
  const std::string thinned =
      data.evaluations.size() > kEvaluationsMax
          ? fmt::format(" Drawn: {} of {}.", count_text(static_cast<std::int64_t>(kEvaluationsMax)),
                        count_text(count))
          : "";
  const std::string heading =
      count == 1 ? fmt::format("The log-likelihood is {}", fixed_text(top.log_likelihood, 2))
                 : fmt::format("The log-likelihood reached {} at evaluation {} of {}",
                               fixed_text(top.log_likelihood, 2),
                               count_text(static_cast<std::int64_t>(best) + 1), count_text(count));
  if (count == 1) {
    return fmt::format("<section id=\"path\"><h2>{}</h2>\n{}</section>\n", heading,
                       evaluation_table(data, best));
  }
  return fmt::format(
      R"(<section id="path"><h2>{0}</h2>
<p class="note">Dots are evaluations; the line is the best so far; the ring marks the best of
all.{1}</p>
<div class="plot" data-chart="likelihood" data-label="{0}"></div>
{2}{3}</section>
)",
      heading, thinned, parameter_figures(data, top), evaluation_table(data, best));
}

std::string hold_out_section(const ReportData& data) {
  if (!data.hold_out || data.hold_out->observed.empty()) return "";
  const ReportHoldOut& h = *data.hold_out;
  const auto count = static_cast<std::int64_t>(h.observed.size());
  const bool intervals = !h.standard_error.empty();
  const double coverage = coverage_of(h);
  const std::string heading =
      std::isfinite(coverage)
          ? fmt::format("{} of {} held-out values lie inside their 95 % interval",
                        percent_text(coverage), count_text(count))
          : fmt::format("{} held-out values against their predictions", count_text(count));
  std::string note = "On the diagonal a prediction is exact.";
  if (intervals) note += " Bars are 95 % intervals; the orange ones miss the observation.";
  if (h.observed.size() > kHoldOutMax) {
    note += fmt::format(" Drawn: {} of {}.", count_text(static_cast<std::int64_t>(kHoldOutMax)),
                        count_text(count));
  }
  const std::string calibration = intervals ? R"(<figure><figcaption><strong>Calibration</strong>
<span class="muted">where observations fall in their predicted distribution; level is right, a hump
is too cautious, a bowl too sure</span></figcaption>
<div class="plot" data-chart="calibration"
data-label="Histogram of the probability integral transform in ten bins"></div></figure>
)"
                                            : "";
  return fmt::format(
      R"(<section id="hold-out"><h2>{0}</h2>
<p class="note">{1}</p>
<div class="two"><div class="plot" data-chart="scatter" data-label="{0}"></div>
<div>{2}{3}</div></div>
</section>
)",
      heading, note, score_table(h), calibration);
}

}  // namespace strata::page
