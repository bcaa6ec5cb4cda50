// Which places a verb takes; messages name rows of the file as those of its reader do.

#include <fmt/core.h>

#include "base/check.hpp"
#include "cli/geostat_data.hpp"

namespace strata::cli {
namespace {

/// "data rows 3 and 4 (lines 4 and 5)".
std::string two_rows(const Observations& observations, std::size_t first, std::size_t second) {
  const std::vector<std::int64_t>& rows = observations.rows;
  const std::vector<std::int64_t>& lines = observations.lines;
  return fmt::format("data rows {} and {} (lines {} and {})", rows[first], rows[second],
                     lines[first], lines[second]);
}

}  // namespace

void check_places(const Points& points, const std::vector<std::int64_t>& rows, Distance distance,
                  const std::string& path) {
  if (distance != Distance::great_circle) return;
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    require(points.x[i] >= -180 && points.x[i] <= 360 && points.y[i] >= -90 && points.y[i] <= 90,
            ErrorKind::input, "data",
            "{}: data row {} (counted from 1): ({}, {}) is no longitude from -180 to 360 and "
            "latitude from -90 to 90",
            path, rows[i], points.x[i], points.y[i]);
  }
}

void check_distinct(const Observations& observations, Distance distance, const std::string& path) {
  const auto pair = find_coincident_points(observations.points, distance);
  if (!pair) return;
  const auto first = static_cast<std::size_t>(pair->first);
  fail(ErrorKind::numerical, "data",
       "{}: {} are at the same place ({}, {}), which needs a nugget above 0", path,
       two_rows(observations, first, static_cast<std::size_t>(pair->second)),
       observations.points.x[first], observations.points.y[first]);
}

void check_apart(const Observations& observations, Distance distance, double smoothness,
                 const std::string& path) {
  check_distinct(observations, distance, path);
  const auto pair = find_nearly_coincident_points(observations.points, distance, smoothness);
  if (!pair) return;
  const auto first = static_cast<std::size_t>(pair->first);
  fail(ErrorKind::numerical, "data",
       "{}: {} are {:.3g} apart at ({}, {}), which rounding takes for the same place: that needs a "
       "nugget above 0",
       path, two_rows(observations, first, static_cast<std::size_t>(pair->second)), pair->distance,
       observations.points.x[first], observations.points.y[first]);
}

}  // namespace strata::cli
