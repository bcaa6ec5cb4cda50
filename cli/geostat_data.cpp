#include "cli/geostat_data.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/check.hpp"
#include "base/output_file.hpp"
#include "base/random.hpp"

namespace strata::cli {
namespace {

using nlohmann::json;

constexpr const char* kModelFormat = "strata model 1";

std::optional<double> as_share(const std::string& text) {
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

/// 1 for the rows that are kept out.
std::vector<double> holdout_flags(const Table& table, const std::string& holdout,
                                  std::uint64_t seed) {
  if (holdout.empty() && table.has("holdout")) return table.column("holdout");
  std::vector<double> flags(static_cast<std::size_t>(table.rows()), 0.0);
  if (holdout.empty() || holdout == "none") return flags;
  const std::optional<double> share = as_share(holdout);
  if (!share) return table.column(holdout);
  require(*share >= 0 && *share < 1, ErrorKind::misuse, "holdout",
          "--holdout {}: a share lies from 0 to below 1", holdout);
  for (std::size_t i = 0; i < flags.size(); ++i)
    flags[i] = random_uniform(seed, i) < *share ? 1.0 : 0.0;
  return flags;
}

}  // namespace

void ColumnNames::add_to(CLI::App& app, bool with_value) {
  app.add_option("--x", x, "column of the first coordinate")->required(with_value);
  app.add_option("--y", y, "column of the second coordinate")->required(with_value);
  if (with_value) app.add_option("--value", value, "column of the observed values")->required();
}

void Observations::add(double x, double y, double value, std::int64_t row) {
  points.x.push_back(x);
  points.y.push_back(y);
  values.push_back(value);
  rows.push_back(row);
}

SplitObservations read_observations(const std::string& path, const ColumnNames& columns,
                                    const std::string& holdout, std::uint64_t seed) {
  const Table table = read_csv(path);
  const std::vector<double> x = table.column(columns.x);
  const std::vector<double> y = table.column(columns.y);
  const std::vector<double> value = table.column(columns.value);
  const std::vector<double> flags = holdout_flags(table, holdout, seed);
  SplitObservations split;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) + 1;
    require(flags[i] == 0 || flags[i] == 1, ErrorKind::input, "holdout",
            "{}: row {}: holdout is {}, not 0 or 1", path, row, flags[i]);
    (flags[i] == 1 ? split.holdout : split.fit).add(x[i], y[i], value[i], row);
  }
  require(split.fit.points.size() > 0, ErrorKind::input, "data",
          "{}: there are no observations to use: {} rows, {} of them held out", path, x.size(),
          split.holdout.points.size());
  return split;
}

void check_distinct(const Observations& observations, const std::string& path) {
  const auto pair = find_coincident_points(observations.points);
  if (!pair) return;
  const auto first = static_cast<std::size_t>(pair->first);
  fail(ErrorKind::numerical, "data",
       "{}: rows {} and {} are at the same place ({}, {}), which needs a nugget above 0", path,
       observations.rows[first], observations.rows[static_cast<std::size_t>(pair->second)],
       observations.points.x[first], observations.points.y[first]);
}

Mean parse_mean(const std::string& name) {
  for (const Mean mean : {Mean::sample, Mean::zero, Mean::constant, Mean::linear})
    if (name == to_string(mean)) return mean;
  fail(ErrorKind::misuse, "options", "--mean '{}': use sample, zero, constant or linear", name);
}

const char* to_string(Mean mean) {
  switch (mean) {
    case Mean::sample: return "sample";
    case Mean::zero: return "zero";
    case Mean::constant: return "constant";
    case Mean::linear: return "linear";
  }
  return "?";
}

namespace {

bool is_mean(const json& name) {
  return name == "sample" || name == "zero" || name == "constant" || name == "linear";
}

bool is_complete(const Model& model) {
  const MaternParameters& p = model.parameters;
  const std::size_t n = model.values.size();
  const auto coefficients = static_cast<std::int64_t>(model.mean_coefficients.size());
  return p.variance > 0 && p.range > 0 && p.smoothness > 0 && p.smoothness <= 50 && p.nugget >= 0 &&
         n > 0 && model.points.x.size() == n && model.points.y.size() == n &&
         coefficients == coefficient_count(model.mean);
}

}  // namespace

void write_model(const std::string& path, const ModelFile& file) {
  const json object = {
      {"format", kModelFormat},
      {"source", file.source},
      {"columns", {{"x", file.columns.x}, {"y", file.columns.y}, {"value", file.columns.value}}},
      {"parameters", to_json(file.model.parameters)},
      {"mean", to_string(file.model.mean)},
      {"mean_coefficients", file.model.mean_coefficients},
      {"log_likelihood", number(file.log_likelihood)},
      {"x", file.model.points.x},
      {"y", file.model.points.y},
      {"value", file.model.values}};
  replace_file(path, [&](std::ostream& out) { out << object.dump() << '\n'; });
}

ModelFile read_model(const std::string& path) {
  std::ifstream in(path);
  std::error_code ignored;
  require(in.good() && !std::filesystem::is_directory(path, ignored), ErrorKind::input, "model",
          "{}: cannot be read", path);
  try {
    const json object = json::parse(in);
    require(object.at("format") == kModelFormat && is_mean(object.at("mean")), ErrorKind::input,
            "model", "{}: is not a model that fit wrote", path);
    ModelFile file;
    file.source = object.at("source").get<std::string>();
    const json& columns = object.at("columns");
    file.columns = {columns.at("x").get<std::string>(), columns.at("y").get<std::string>(),
                    columns.at("value").get<std::string>()};
    const json& p = object.at("parameters");
    file.model.parameters = {p.at("variance").get<double>(), p.at("range").get<double>(),
                             p.at("smoothness").get<double>(), p.at("nugget").get<double>()};
    file.model.mean = parse_mean(object.at("mean").get<std::string>());
    file.model.mean_coefficients = object.at("mean_coefficients").get<std::vector<double>>();
    file.log_likelihood = object.at("log_likelihood").get<double>();
    file.model.points = {object.at("x").get<std::vector<double>>(),
                         object.at("y").get<std::vector<double>>()};
    file.model.values = object.at("value").get<std::vector<double>>();
    require(is_complete(file.model), ErrorKind::input, "model",
            "{}: is not a model that fit wrote: its parameters or lengths do not fit", path);
    return file;
  } catch (const json::exception&) {
    fail(ErrorKind::input, "model", "{}: is not a model that fit wrote", path);
  }
}

namespace {

/// Which nodes have an observation within `reach` cells: the points are spread over the grid, a
/// disc each.
std::vector<char> nodes_near(const Points& points, const MapGrid& g, double dx, double dy,
                             double reach) {
  std::vector<char> near(static_cast<std::size_t>(g.nx * g.ny), 0);
  const auto r = static_cast<std::int64_t>(std::ceil(reach));
  for (std::size_t p = 0; p < points.x.size(); ++p) {
    const double px = (points.x[p] - g.x0) / dx;
    const double py = (points.y[p] - g.y0) / dy;
    const std::int64_t i0 = std::llround(px);
    const std::int64_t j0 = std::llround(py);
    for (std::int64_t j = std::max<std::int64_t>(0, j0 - r); j < std::min(g.ny, j0 + r + 1); ++j) {
      for (std::int64_t i = std::max<std::int64_t>(0, i0 - r); i < std::min(g.nx, i0 + r + 1);
           ++i) {
        const double away = std::hypot(static_cast<double>(i) - px, static_cast<double>(j) - py);
        if (away <= reach) near[static_cast<std::size_t>(j * g.nx + i)] = 1;
      }
    }
  }
  return near;
}

}  // namespace

PredictionGrid make_grid(const Points& points, std::int64_t cells) {
  const auto [x0, x1] = std::minmax_element(points.x.begin(), points.x.end());
  const auto [y0, y1] = std::minmax_element(points.y.begin(), points.y.end());
  const double width = std::max(*x1 - *x0, 1e-12);
  const double height = std::max(*y1 - *y0, 1e-12);
  const double step =
      std::sqrt(width * height / static_cast<double>(std::max<std::int64_t>(cells, 4)));
  PredictionGrid result;
  MapGrid& g = result.grid;
  g.nx = std::max<std::int64_t>(2, std::llround(width / step) + 1);
  g.ny = std::max<std::int64_t>(2, std::llround(height / step) + 1);
  g.x0 = *x0;
  g.x1 = *x0 + width;
  g.y0 = *y0;
  g.y1 = *y0 + height;
  const double dx = width / static_cast<double>(g.nx - 1);
  const double dy = height / static_cast<double>(g.ny - 1);
  // A node is shown if data lie within about two mean spacings of the observations: further out is
  // guesswork.
  const double spacing = std::sqrt(width * height / static_cast<double>(points.size()));
  const std::vector<char> near =
      nodes_near(points, g, dx, dy, std::max(1.5, 2 * spacing / std::min(dx, dy)));
  for (std::int64_t k = 0; k < g.nx * g.ny; ++k) {
    if (near[static_cast<std::size_t>(k)] == 0) continue;
    result.position.push_back(k);
    result.nodes.x.push_back(g.x0 + dx * static_cast<double>(k % g.nx));
    result.nodes.y.push_back(g.y0 + dy * static_cast<double>(k / g.nx));
  }
  return result;
}

std::vector<double> on_grid(const PredictionGrid& grid, const std::vector<double>& values) {
  std::vector<double> all(static_cast<std::size_t>(grid.grid.nx * grid.grid.ny),
                          std::numeric_limits<double>::quiet_NaN());
  for (std::size_t k = 0; k < values.size(); ++k)
    all[static_cast<std::size_t>(grid.position[k])] = values[k];
  return all;
}

}  // namespace strata::cli
