#include "geostat/fit_space.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

Bounds chosen(const std::optional<Bounds>& given, Bounds automatic, std::optional<double> start,
              const char* name) {
  if (given) {
    require(given->lower > 0 && given->lower < given->upper && std::isfinite(given->upper),
            ErrorKind::misuse, "fit", "bounds of {} are {} and {}, but must be 0 < lower < upper",
            name, given->lower, given->upper);
    return *given;
  }
  if (start) {
    automatic.lower = std::min(automatic.lower, *start);
    automatic.upper = std::max(automatic.upper, *start);
  }
  return automatic;
}

double width(const std::vector<double>& coordinate) {
  const auto [low, high] = std::minmax_element(coordinate.begin(), coordinate.end());
  return *high - *low;
}

}  // namespace

double FitSpace::coordinate(std::size_t variable, double value) const {
  return std::log(variable == ratio ? value + ratio_offset : value);
}

FitSpace::Values FitSpace::values(const std::vector<double>& x) const {
  Values out = held;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const std::size_t v = free[k];
    const double value = std::exp(x[k]) - (v == ratio ? ratio_offset : 0);
    out[v] = std::clamp(value, bounds[v].lower, bounds[v].upper);
  }
  return out;
}

std::vector<double> FitSpace::coordinates(const Values& values) const {
  std::vector<double> x;
  for (const std::size_t v : free)
    x.push_back(coordinate(v, std::clamp(values[v], bounds[v].lower, bounds[v].upper)));
  return x;
}

Box FitSpace::box() const {
  Box out;
  for (const std::size_t v : free) {
    out.lower.push_back(coordinate(v, bounds[v].lower));
    out.upper.push_back(coordinate(v, bounds[v].upper));
  }
  return out;
}

bool FitSpace::inside(std::size_t variable, const Values& values) const {
  if (std::find(free.begin(), free.end(), variable) == free.end()) return false;
  const Bounds& b = bounds[variable];
  return values[variable] > 1.001 * b.lower && values[variable] < b.upper / 1.001;
}

double extent_of(const Points& points, Distance distance) {
  double dx = width(points.x);
  double dy = width(points.y);
  if (distance == Distance::great_circle) {
    constexpr double pi = 3.14159265358979323846;
    constexpr double degree = kEarthRadiusKm * pi / 180;
    const double middle = *std::min_element(points.y.begin(), points.y.end()) + 0.5 * dy;
    dx *= degree * std::cos(middle * pi / 180);
    dy *= degree;
    return std::min(std::hypot(dx, dy), kEarthRadiusKm * pi);
  }
  return points.z.empty() ? std::hypot(dx, dy) : std::hypot(dx, dy, width(points.z));
}

FitSpace make_fit_space(const Points& points, const FitOptions& options) {
  const bool sphere = options.separation.distance == Distance::great_circle;
  const double smoothness_most = sphere ? 0.5 : 50;
  const double length = extent_of(points, options.separation.distance);
  require(length > 0, ErrorKind::numerical, "fit", "all {} points coincide{}", points.size(),
          points.t.empty() ? "" : " in space");
  const auto& start = options.start;
  FitSpace space;
  space.separation = options.separation;
  const double spacing = length / std::sqrt(static_cast<double>(points.size()));
  space.bounds[FitSpace::range] =
      chosen(options.range_bounds, {0.02 * spacing, 10 * length},
             start ? std::optional(start->range) : std::nullopt, "range");
  space.bounds[FitSpace::smoothness] =
      chosen(options.smoothness_bounds, {0.05, sphere ? smoothness_most : 5},
             start ? std::optional(start->smoothness) : std::nullopt, "smoothness");
  require(space.bounds[FitSpace::smoothness].upper <= smoothness_most, ErrorKind::misuse, "fit",
          "upper bound of smoothness is {}, but must be at most {}{}",
          space.bounds[FitSpace::smoothness].upper, smoothness_most,
          sphere ? " with great-circle distance" : "");
  space.bounds[FitSpace::ratio] =
      chosen(options.noise_ratio_bounds, {1e-8, 100}, std::nullopt, "noise ratio");
  space.free = {FitSpace::range};
  if (options.smoothness) {
    space.held[FitSpace::smoothness] = *options.smoothness;
  } else {
    space.free.push_back(FitSpace::smoothness);
  }
  if (!options.nugget || *options.nugget > 0) space.free.push_back(FitSpace::ratio);
  if (options.nugget && *options.nugget > 0) space.nugget = options.nugget;
  return space;
}

}  // namespace strata
