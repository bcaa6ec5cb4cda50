#include "cli/geostat_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/output_file.hpp"
#include "base/random.hpp"

namespace strata::cli {
namespace {

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

/// 1 for the rows that are kept out, of those with these numbers.
std::vector<double> holdout_flags(const Table& table, const std::vector<std::int64_t>& rows,
                                  const std::string& holdout, std::uint64_t seed) {
  const auto column = [&](const std::string& name) {
    const std::vector<double> all = table.column(name);
    std::vector<double> flags;
    for (const std::int64_t row : rows) flags.push_back(all[static_cast<std::size_t>(row - 1)]);
    return flags;
  };
  if (holdout.empty() && table.has("holdout")) return column("holdout");
  std::vector<double> flags(rows.size(), 0.0);
  if (holdout.empty() || holdout == "none") return flags;
  const std::optional<double> share = number_of(holdout);
  if (!share) return column(holdout);
  require(*share >= 0 && *share < 1, ErrorKind::misuse, "holdout",
          "--holdout {}: a share lies from 0 to below 1", holdout);
  // Those of which the smallest numbers are drawn.
  std::vector<std::pair<double, std::size_t>> drawn;
  for (std::size_t i = 0; i < flags.size(); ++i) drawn.emplace_back(random_uniform(seed, i), i);
  std::sort(drawn.begin(), drawn.end());
  const auto count = std::llround(*share * static_cast<double>(flags.size()));
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) flags[drawn[k].second] = 1;
  return flags;
}

/// Columns of a table, and which of its rows they are.
struct CompleteRows {
  std::vector<std::vector<double>> columns;
  std::vector<std::int64_t> rows;
  std::int64_t missing = 0;
};

CompleteRows complete_rows(const Table& table, const ColumnNames& columns,
                           const std::vector<std::string>& names) {
  CompleteRows out;
  out.columns = with_advice([&] {
    std::vector<std::vector<double>> all;
    for (const std::string& name : names) all.push_back(table.column(name, columns.rules_of(name)));
    return all;
  });
  out.rows.resize(static_cast<std::size_t>(table.rows()));
  std::iota(out.rows.begin(), out.rows.end(), 1);
  out.missing = drop_incomplete(out.columns, names.size(), out.rows);
  return out;
}

}  // namespace

void ColumnNames::add_to(Command& app, bool with_value) {
  app.add_option("--x", x, "column of the first coordinate").required(with_value);
  app.add_option("--y", y, "column of the second coordinate").required(with_value);
  if (with_value) app.add_option("--value", value, "column of the observed values").required();
  app.add_option("--z", z, "column of a third coordinate");
  app.add_option(
      "--time", time,
      "column of the time: numbers, or dates (ISO 8601), which are days since 1970-01-01");
  app.add_option_function(
         "--missing", [this](const std::string& what) { drop_missing = what == "drop"; },
         "what becomes of rows without one of their values (empty, '.', NA, N/A, #N/A, NaN or "
         "null, "
         "in any case of letters): refuse, or drop, which counts them")
      .check(one_of({"refuse", "drop"}))
      .default_str("refuse");
}

void ColumnNames::add_covariates_to(Command& app) {
  const auto split = [this](const std::string& text) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      covariates.push_back(text.substr(begin, end - begin));
      begin = end + 1;
      const std::string& name = covariates.back();
      if (name.empty() || std::count(covariates.begin(), covariates.end(), name) > 1)
        refuse_value("--covariates '" + text + "'", "use NAME,NAME…, each once");
    }
  };
  app.add_option_function(
      "--covariates", split,
      "NAME,NAME…: columns of covariates, a multiple of each of which is part of the mean, "
      "constant or linear");
}

std::vector<std::string> ColumnNames::coordinates() const {
  std::vector<std::string> names{x, y};
  if (!z.empty()) names.push_back(z);
  if (!time.empty()) names.push_back(time);
  for (std::size_t k = 1; k < names.size(); ++k) {
    require(std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(k), names[k]) ==
                names.begin() + static_cast<std::ptrdiff_t>(k),
            ErrorKind::misuse, "options", "column '{}' is named for two coordinates", names[k]);
  }
  return names;
}

std::vector<std::string> ColumnNames::of_points() const {
  std::vector<std::string> names = coordinates();
  names.insert(names.end(), covariates.begin(), covariates.end());
  return names;
}

ColumnNames ColumnNames::or_else(const ColumnNames& model) const {
  ColumnNames names = model;
  names.drop_missing = drop_missing;
  for (const auto name : {&ColumnNames::x, &ColumnNames::y, &ColumnNames::z, &ColumnNames::time})
    if (!(this->*name).empty()) names.*name = this->*name;
  if (covariates.empty()) return names;
  require(covariates.size() == model.covariates.size(), ErrorKind::misuse, "options",
          "--covariates '{}': {} columns, but the model has {} covariates",
          fmt::join(covariates, ","), covariates.size(), model.covariates.size());
  names.covariates = covariates;
  return names;
}

Points ColumnNames::points_of(std::vector<std::vector<double>> columns) const {
  Points points{std::move(columns[0]), std::move(columns[1])};
  std::size_t next = 2;
  if (!z.empty()) points.z = std::move(columns[next++]);
  if (!time.empty()) points.t = std::move(columns[next++]);
  for (std::size_t k = 0; k < covariates.size(); ++k)
    points.covariates.push_back(std::move(columns[next++]));
  return points;
}

ColumnRules ColumnNames::rules_of(const std::string& name) const {
  return {.missing = drop_missing, .dates = !time.empty() && name == time};
}

void ColumnNames::check_dates(bool there, const std::string& path) const {
  require(!dates || *dates == there, ErrorKind::input, "data",
          "{}: column '{}' holds {}, and the times of the model are {}", path, time,
          there ? "dates" : "numbers", there ? "numbers" : "dates, in days since 1970-01-01");
}

std::int64_t drop_incomplete(std::vector<std::vector<double>>& columns, std::size_t count,
                             std::vector<std::int64_t>& rows) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool complete =
        std::none_of(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(count),
                     [i](const std::vector<double>& column) { return std::isnan(column[i]); });
    if (!complete) continue;
    if (kept < i) {
      for (std::vector<double>& column : columns) column[kept] = column[i];
      rows[kept] = rows[i];
    }
    ++kept;
  }
  const auto dropped = static_cast<std::int64_t>(rows.size() - kept);
  for (std::vector<double>& column : columns) column.resize(kept);
  rows.resize(kept);
  return dropped;
}

std::vector<std::vector<double>> columns_of(const Points& points) {
  std::vector<std::vector<double>> columns{points.x, points.y};
  if (!points.z.empty()) columns.push_back(points.z);
  if (!points.t.empty()) columns.push_back(points.t);
  return columns;
}

void SeparationArguments::add_to(Command& app, bool fitted) {
  fitted_ = fitted;
  const auto held = [fitted](const char* what, const char* otherwise) {
    return fmt::format("{}{}", what, fitted ? ": held at this, else estimated" : otherwise);
  };
  app.add_option("--distance", distance,
                 "euclidean, or great-circle: x and y are longitude and latitude in degrees, the "
                 "range is in kilometres, the smoothness at most 0.5")
      .check(one_of({"euclidean", "great-circle"}))
      .capture_default_str();
  app.add_option(
      "--anisotropy", anisotropy,
      fmt::format("RATIO,ANGLE: the range holds along the direction ANGLE degrees "
                  "counter-clockwise of x, RATIO times as much across it{}",
                  fitted ? "; each of them, or both by one word, may be 'estimate'" : ""));
  app.add_option("--time-scale", time_scale,
                 held("a in w = a |u|^(2 alpha) + 1, for times u apart", ""))
      .check(positive_number());
  app.add_option("--time-smoothness", time_smoothness, held("alpha, at most 1", " (default: 1)"))
      .check(positive_number());
  app.add_option("--interaction", interaction,
                 held("beta of space and time, 0 (separable) to 1", " (default: 0)"))
      .check(nonnegative_number());
}

std::array<std::optional<double>, 2> SeparationArguments::anisotropy_values() const {
  if (anisotropy.empty()) return {1.0, 0.0};
  if (fitted_ && anisotropy == "estimate") return {};
  const std::size_t comma = anisotropy.find(',');
  std::array<std::optional<double>, 2> out;
  bool fine = comma != std::string::npos;
  for (std::size_t k = 0; fine && k < 2; ++k) {
    const std::string part = k == 0 ? anisotropy.substr(0, comma) : anisotropy.substr(comma + 1);
    if (fitted_ && part == "estimate") continue;
    out[k] = number_of(part);
    fine = out[k].has_value();
  }
  require(fine, ErrorKind::misuse, "options", "--anisotropy '{}': use RATIO,ANGLE{}", anisotropy,
          fitted_ ? " or estimate" : "");
  return out;
}

Separation SeparationArguments::separation(const ColumnNames& columns) const {
  Separation out;
  if (distance == "great-circle") out.distance = Distance::great_circle;
  const auto [ratio, angle] = anisotropy_values();
  out.anisotropy_ratio = ratio.value_or(1);
  out.anisotropy_angle = angle.value_or(0);
  if (columns.time.empty()) {
    require(!time_scale && !time_smoothness && !interaction, ErrorKind::misuse, "cli",
            "--time-scale, --time-smoothness and --interaction need a column of times, --time");
    return out;
  }
  require(fitted_ || time_scale, ErrorKind::misuse, "cli", "--time '{}' needs a --time-scale",
          columns.time);
  out.time =
      TimeParameters{time_scale.value_or(1), time_smoothness.value_or(1), interaction.value_or(0)};
  return out;
}

SeparationEstimates SeparationArguments::estimates(const ColumnNames& columns) const {
  const auto [ratio, angle] = anisotropy_values();
  SeparationEstimates out;
  out.anisotropy_ratio = !ratio;
  out.anisotropy_angle = !angle;
  if (columns.time.empty()) return out;
  out.time_scale = !time_scale;
  out.time_smoothness = !time_smoothness;
  out.interaction = !interaction && distance != "great-circle";
  return out;
}

void Observations::add(const Points& all, double value, std::size_t i) {
  points.x.push_back(all.x[i]);
  points.y.push_back(all.y[i]);
  if (!all.z.empty()) points.z.push_back(all.z[i]);
  if (!all.t.empty()) points.t.push_back(all.t[i]);
  points.covariates.resize(all.covariates.size());
  for (std::size_t k = 0; k < all.covariates.size(); ++k)
    points.covariates[k].push_back(all.covariates[k][i]);
  values.push_back(value);
}

SplitObservations read_observations(const std::string& path, const ColumnNames& columns,
                                    const std::string& holdout, std::uint64_t seed) {
  std::vector<std::string> names = columns.of_points();
  require(std::find(names.begin(), names.end(), columns.value) == names.end(), ErrorKind::misuse,
          "options", "column '{}' is named for the values and for what they depend on",
          columns.value);
  names.push_back(columns.value);
  const Table table = read_csv(path);
  CompleteRows data = complete_rows(table, columns, names);
  const std::vector<double> flags = holdout_flags(table, data.rows, holdout, seed);
  const std::vector<double> value = std::move(data.columns.back());
  data.columns.pop_back();
  const Points points = columns.points_of(std::move(data.columns));
  const std::vector<std::int64_t> lines = table.lines();
  SplitObservations split;
  split.fit.missing = split.holdout.missing = data.missing;
  split.fit.dates = split.holdout.dates = columns.has_dates(table, path);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::int64_t row = data.rows[i];
    const std::int64_t line = lines[static_cast<std::size_t>(row - 1)];
    require(flags[i] == 0 || flags[i] == 1, ErrorKind::input, "holdout",
            "{}: data row {} (line {}): holdout is {}, not 0 or 1", path, row, line, flags[i]);
    Observations& part = flags[i] == 1 ? split.holdout : split.fit;
    part.add(points, value[i], i);
    part.rows.push_back(row);
    part.lines.push_back(line);
  }
  require(split.fit.points.size() > 0, ErrorKind::input, "data",
          "{}: there are no observations to use: {} rows, {} of them held out, {} more with a "
          "value missing",
          path, value.size(), split.holdout.points.size(), data.missing);
  return split;
}

Observations read_places(const std::string& path, const ColumnNames& columns) {
  const Table table = read_csv(path);
  CompleteRows data = complete_rows(table, columns, columns.of_points());
  Observations places;
  places.missing = data.missing;
  places.dates = columns.has_dates(table, path);
  places.rows = std::move(data.rows);
  const std::vector<std::int64_t> lines = table.lines();
  for (const std::int64_t row : places.rows)
    places.lines.push_back(lines[static_cast<std::size_t>(row - 1)]);
  places.points = columns.points_of(std::move(data.columns));
  require(places.points.size() > 0, ErrorKind::input, "data",
          "{}: there are no rows, but for {} with a value missing", path, data.missing);
  return places;
}

void add_rows_json(Json& object, const Observations& observations) {
  object["missing_rows"] = observations.missing;
  if (observations.dates) object["times"] = kTimesOfDates;
}

std::string rows_text(const Observations& observations) {
  std::string text;
  if (observations.missing > 0)
    text += fmt::format("rows left out     {}, a value missing\n", observations.missing);
  if (observations.dates) text += fmt::format("times             {}\n", kTimesOfDates);
  return text;
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
