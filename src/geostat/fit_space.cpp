#include "geostat/fit_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "fit";
constexpr double kPi = 3.14159265358979323846;
constexpr double kDegrees = 180 / kPi;  ///< of a radian
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The bounds that were asked for, or else automatic ones, made wide enough for the start.
Bounds chosen(const std::optional<Bounds>& given, Bounds automatic, std::optional<double> start,
              const char* name, bool zero = false) {
  if (given) {
    require((zero ? given->lower >= 0 : given->lower > 0) && given->lower < given->upper &&
                std::isfinite(given->upper),
            ErrorKind::misuse, kWhere, "bounds of {} are {} and {}, but must be 0 {} lower < upper",
            name, given->lower, given->upper, zero ? "<=" : "<");
    return *given;
  }
  if (start) {
    automatic.lower = std::min(automatic.lower, *start);
    automatic.upper = std::max(automatic.upper, *start);
  }
  return automatic;
}

void check_upper(const Bounds& bounds, double most, const char* name, const char* why = "") {
  require(bounds.upper <= most, ErrorKind::misuse, kWhere,
          "upper bound of {} is {}, but must be at most {:.6g}{}", name, bounds.upper, most, why);
}

double width(const std::vector<double>& coordinate) {
  const auto [low, high] = std::minmax_element(coordinate.begin(), coordinate.end());
  return *high - *low;
}

std::size_t count_of_distinct(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

/// The variables of time that are searched, and their bounds.
void add_time(FitSpace& space, const Points& points, const FitOptions& options) {
  const SeparationEstimates& estimate = options.estimate;
  if (!estimate.of_time()) return;
  const double length = time_extent_of(points);
  require(length > 0, ErrorKind::numerical, kWhere,
          "all {} points have the same time, which says nothing of the covariance in time",
          points.size());
  std::optional<TimeParameters> start;
  if (options.start) start = options.start->separation.time;
  if (estimate.time_scale) {
    const double spacing = length / static_cast<double>(count_of_distinct(points.t) - 1);
    std::optional<double> range;
    if (start) range = time_range_of(start->scale, start->smoothness);
    space.bounds[FitSpace::time_scale] =
        chosen(options.time_range_bounds, {1e-3 * spacing, 1e3 * length}, range, "time range");
    space.free.push_back(FitSpace::time_scale);
  }
  if (estimate.time_smoothness) {
    Bounds& bounds = space.bounds[FitSpace::time_smoothness];
    bounds = chosen(options.time_smoothness_bounds, {0.05, 1},
                    start ? std::optional(start->smoothness) : std::nullopt, "time smoothness");
    check_upper(bounds, 1, "time smoothness");
    space.free.push_back(FitSpace::time_smoothness);
  }
  if (estimate.interaction) {
    const double most = points.z.empty() ? 1 : 2.0 / 3;
    Bounds& bounds = space.bounds[FitSpace::interaction];
    bounds = chosen(options.interaction_bounds, {0, most}, std::nullopt, "interaction", true);
    check_upper(bounds, most, "interaction", points.z.empty() ? "" : " with a z coordinate");
    space.free.push_back(FitSpace::interaction);
  }
}

void add_anisotropy(FitSpace& space, const FitOptions& options) {
  if (options.estimate.anisotropy_ratio) {
    std::optional<double> start;
    if (options.start) start = options.start->separation.anisotropy_ratio;
    Bounds& bounds = space.bounds[FitSpace::anisotropy_ratio];
    bounds = chosen(options.anisotropy_ratio_bounds, {0.02, 1}, start, "anisotropy ratio");
    check_upper(bounds, 1, "anisotropy ratio");
    space.free.push_back(FitSpace::anisotropy_ratio);
  }
  if (options.estimate.anisotropy_angle) space.free.push_back(FitSpace::anisotropy_angle);
}

}  // namespace

double time_range_of(double scale, double smoothness) { return std::pow(scale, -0.5 / smoothness); }

double time_scale_of(double range, double smoothness) { return std::pow(range, -2 * smoothness); }

FitSpace::Values values_of(const MaternParameters& p) {
  const Separation& s = p.separation;
  const TimeParameters time = s.time.value_or(TimeParameters{});
  return {p.range,         p.smoothness,     p.nugget / p.variance, time.scale,
          time.smoothness, time.interaction, s.anisotropy_ratio,    s.anisotropy_angle};
}

double FitSpace::coordinate(std::size_t variable, double value) const {
  switch (variable) {
    case ratio: return std::log(value + ratio_offset);
    case interaction: return value;
    case anisotropy_angle: return value / kDegrees;
    default: return std::log(value);
  }
}

FitSpace::Values FitSpace::values(const std::vector<double>& x) const {
  Values out = held;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const std::size_t v = free[k];
    const double value = v == interaction        ? x[k]
                         : v == anisotropy_angle ? x[k] * kDegrees
                                                 : std::exp(x[k]) - (v == ratio ? ratio_offset : 0);
    out[v] = std::clamp(value, bounds[v].lower, bounds[v].upper);
  }
  if (is_free(time_scale)) out[time_scale] = time_scale_of(out[time_scale], out[time_smoothness]);
  return out;
}

std::vector<double> FitSpace::coordinates(const Values& values) const {
  std::vector<double> x;
  for (const std::size_t v : free) {
    const double value =
        v == time_scale ? time_range_of(values[v], values[time_smoothness]) : values[v];
    x.push_back(coordinate(v, std::clamp(value, bounds[v].lower, bounds[v].upper)));
  }
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

bool FitSpace::is_free(std::size_t variable) const {
  return std::find(free.begin(), free.end(), variable) != free.end();
}

bool FitSpace::inside(std::size_t variable, const Values& values) const {
  if (!is_free(variable)) return false;
  const Bounds& b = bounds[variable];
  if (variable == interaction) {
    const double little = 1e-3 * (b.upper - b.lower);
    return values[variable] > b.lower + little && values[variable] < b.upper - little;
  }
  if (variable == anisotropy_angle) return values[anisotropy_ratio] < 1 / 1.001;
  const double value = variable == time_scale
                           ? time_range_of(values[variable], values[time_smoothness])
                           : values[variable];
  return value > 1.001 * b.lower && value < b.upper / 1.001;
}

Separation FitSpace::separation_of(const Values& values) const {
  Separation out = separation;
  out.anisotropy_ratio = values[anisotropy_ratio];
  out.anisotropy_angle = values[anisotropy_angle];
  if (out.time) {
    out.time = TimeParameters{values[time_scale], values[time_smoothness], values[interaction]};
  }
  return out;
}

double extent_of(const Points& points, Distance distance) {
  double dx = width(points.x);
  double dy = width(points.y);
  if (distance == Distance::great_circle) {
    constexpr double degree = kEarthRadiusKm * kPi / 180;
    const double middle = *std::min_element(points.y.begin(), points.y.end()) + 0.5 * dy;
    dx *= degree * std::cos(middle * kPi / 180);
    dy *= degree;
    return std::min(std::hypot(dx, dy), kEarthRadiusKm * kPi);
  }
  return points.z.empty() ? std::hypot(dx, dy) : std::hypot(dx, dy, width(points.z));
}

double time_extent_of(const Points& points) { return width(points.t); }

Separation held_separation(const FitOptions& options) {
  const SeparationEstimates& estimate = options.estimate;
  Separation s = options.separation;
  const Separation plain;
  if (estimate.anisotropy_ratio) s.anisotropy_ratio = plain.anisotropy_ratio;
  if (estimate.anisotropy_angle) s.anisotropy_angle = plain.anisotropy_angle;
  if (!s.time) return s;
  const TimeParameters time;
  if (estimate.time_scale) s.time->scale = time.scale;
  if (estimate.time_smoothness) s.time->smoothness = time.smoothness;
  if (estimate.interaction) s.time->interaction = time.interaction;
  return s;
}

FitSpace make_fit_space(const Points& points, const FitOptions& options) {
  const bool sphere = options.separation.distance == Distance::great_circle;
  const double smoothness_most = sphere ? 0.5 : 50;
  const double length = extent_of(points, options.separation.distance);
  require(length > 0, ErrorKind::numerical, kWhere, "all {} points coincide{}", points.size(),
          points.t.empty() ? "" : " in space");
  const auto& start = options.start;
  FitSpace space;
  space.separation = held_separation(options);
  space.held = values_of({1, 1, options.smoothness.value_or(0.5), 0, space.separation});
  space.bounds.fill({-kInfinity, kInfinity});
  const double spacing = length / std::sqrt(static_cast<double>(points.size()));
  space.bounds[FitSpace::range] =
      chosen(options.range_bounds, {0.02 * spacing, 10 * length},
             start ? std::optional(start->range) : std::nullopt, "range");
  space.bounds[FitSpace::smoothness] =
      chosen(options.smoothness_bounds, {0.05, sphere ? smoothness_most : 5},
             start ? std::optional(start->smoothness) : std::nullopt, "smoothness");
  check_upper(space.bounds[FitSpace::smoothness], smoothness_most, "smoothness",
              sphere ? " with great-circle distance" : "");
  space.bounds[FitSpace::ratio] =
      chosen(options.noise_ratio_bounds, {1e-8, 100}, std::nullopt, "noise ratio");
  space.free = {FitSpace::range};
  if (!options.smoothness) space.free.push_back(FitSpace::smoothness);
  if (!options.nugget || *options.nugget > 0) space.free.push_back(FitSpace::ratio);
  if (options.nugget && *options.nugget > 0) space.nugget = options.nugget;
  add_time(space, points, options);
  add_anisotropy(space, options);
  return space;
}

}  // namespace strata
