#include "geostat/fit_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "geostat/spacing.hpp"

namespace strata {
namespace {

/// The bounds that were asked for, or else automatic ones, made wide enough for the start.
Bounds chosen(const std::optional<Bounds>& given, Bounds automatic, std::optional<double> start,
              const char* name, bool zero = false) {
  if (given) {
    require((zero ? given->lower >= 0 : given->lower > 0) && given->lower < given->upper &&
                std::isfinite(given->upper),
            ErrorKind::misuse, kFitWhere,
            "bounds of {} are {} and {}, but must be 0 {} lower < upper", name, given->lower,
            given->upper, zero ? "<=" : "<");
    return *given;
  }
  if (start) {
    automatic.lower = std::min(automatic.lower, *start);
    automatic.upper = std::max(automatic.upper, *start);
  }
  return automatic;
}

void check_upper(const Bounds& bounds, double most, const char* name, const char* why = "") {
  require(bounds.upper <= most, ErrorKind::misuse, kFitWhere,
          "upper bound of {} is {}, but must be at most {:.6g}{}", name, bounds.upper, most, why);
}

std::size_t count_of_distinct(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

/// Range and smoothness, where they are searched. At the lower bound of the range the closest two
/// points are all but uncorrelated, at the upper one the covariance falls little over the whole
/// extent.
void add_matern(FitSpace& space, const Points& points, double length, const FitOptions& options) {
  const bool sphere = options.separation.distance == Distance::great_circle;
  const auto& start = options.start;
  if (!options.range) {
    const double least = spacing_of(points, options.separation.distance).least;
    space.bounds[FitSpace::range] =
        chosen(options.range_bounds, {0.05 * least, 10 * length},
               start ? std::optional(start->range) : std::nullopt, "range");
    space.free.push_back(FitSpace::range);
  }
  if (options.smoothness) return;
  const double most = sphere ? 0.5 : 50;
  Bounds& bounds = space.bounds[FitSpace::smoothness];
  bounds = chosen(options.smoothness_bounds, {0.05, sphere ? most : 5},
                  start ? std::optional(start->smoothness) : std::nullopt, "smoothness");
  check_upper(bounds, most, "smoothness", sphere ? " with great-circle distance" : "");
  space.free.push_back(FitSpace::smoothness);
}

/// The noise ratio, where it is searched. It may be 0 unless the nugget is held above 0, or is
/// needed because two points are one to rounding.
void add_ratio(FitSpace& space, const Points& points, const FitOptions& options) {
  if (options.nugget && *options.nugget == 0) return;
  const bool zero =
      !options.nugget && !find_nearly_coincident_points(points, options.separation.distance,
                                                        options.smoothness.value_or(1));
  Bounds automatic{zero ? 0 : 1e-8, 1e4};
  if (options.nugget) {  // then they are bounds of the variance, in units of that of the data
    const double of_data = *options.nugget / space.data_variance;
    automatic = {std::max(1e-12 * of_data, std::numeric_limits<double>::min()),
                 std::max(1e4, 1e8 * of_data)};
  }
  space.bounds[FitSpace::ratio] =
      chosen(options.noise_ratio_bounds, automatic, std::nullopt, "noise ratio", zero);
  space.free.push_back(FitSpace::ratio);
  if (options.nugget) space.nugget = options.nugget;
}

/// The variables of time that are searched, and their bounds.
void add_time(FitSpace& space, const Points& points, const FitOptions& options) {
  const SeparationEstimates& estimate = options.estimate;
  if (!estimate.of_time()) return;
  const double length = time_extent_of(points);
  require(length > 0, ErrorKind::numerical, kFitWhere,
          "all {} points have the same time, which says nothing of the covariance in time",
          points.size());
  constexpr double kTimeLeast = 0x1p-480;
  require(length >= kTimeLeast, ErrorKind::input, kFitWhere,
          "the times differ by {:.3g} at most, too little for the inverse of its square, which the "
          "scale in time is like: give times in a smaller unit",
          length);
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

/// The mean square of values about their mean, about 0 for a mean of 0; 1 where they do not differ.
double data_variance(std::span<const double> values, Mean mean) {
  const auto n = static_cast<double>(std::max<std::size_t>(values.size(), 1));
  const double middle =
      mean == Mean::zero ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / n;
  double sum = 0;
  for (const double v : values) sum += (v - middle) * (v - middle);
  return sum > 0 && std::isfinite(sum) ? sum / n : 1;
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
    case ratio: return std::log(value + offset());
    case interaction: return value;
    case anisotropy_angle: return value / kDegrees;
    default: return std::log(value);
  }
}

FitSpace::Values FitSpace::values(const std::vector<double>& x) const {
  Values out = held;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const std::size_t v = free[k];
    double value = v == interaction        ? x[k]
                   : v == anisotropy_angle ? x[k] * kDegrees
                                           : std::exp(x[k]);
    if (v == ratio) {
      // What the rounding of x and of the exponential leaves of the offset is not a nugget.
      const double rounding =
          (4 + std::fabs(x[k])) * std::numeric_limits<double>::epsilon() * value;
      value -= offset();
      if (std::fabs(value) <= rounding) value = 0;
    }
    out[v] = std::clamp(value, bounds[v].lower, bounds[v].upper);
  }
  if (is_free(time_scale)) out[time_scale] = time_scale_of(out[time_scale], out[time_smoothness]);
  return out;
}

std::vector<double> FitSpace::coordinates(const Values& values) const {
  std::vector<double> x;
  for (const std::size_t v : free) {
    x.push_back(coordinate(v, std::clamp(bounded(v, values), bounds[v].lower, bounds[v].upper)));
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

bool FitSpace::holds(const Values& values) const {
  for (std::size_t v = 0; v < kVariables; ++v)
    if (!is_free(v) && values[v] != held[v]) return false;
  return true;
}

double FitSpace::bounded(std::size_t variable, const Values& values) const {
  return variable == time_scale ? time_range_of(values[variable], values[time_smoothness])
                                : values[variable];
}

bool FitSpace::ends_at(std::size_t variable, double bound) const {
  switch (variable) {
    case smoothness: return bound == 0.5 && separation.distance == Distance::great_circle;
    case ratio: return bound == 0;
    case time_smoothness:
    case anisotropy_ratio: return bound == 1;
    case interaction: return bound == 0 || bound >= 2.0 / 3;
    default: return false;
  }
}

FitBound FitSpace::at_bound(std::size_t variable, bool upper) const {
  const double bound = upper ? bounds[variable].upper : bounds[variable].lower;
  if (variable == ratio && nugget) return {"variance", *nugget / bound, !upper, false};
  return {name_of(variable), bound, upper, ends_at(variable, bound)};
}

const char* FitSpace::name_of(std::size_t variable) {
  constexpr std::array names{
      "range",           "smoothness",  "noise ratio",      "time range",
      "time smoothness", "interaction", "anisotropy ratio", "anisotropy angle"};
  return names[variable];
}

bool FitSpace::inside(std::size_t variable, const Values& values) const {
  if (!is_free(variable)) return false;
  const Bounds& b = bounds[variable];
  if (variable == interaction) {
    const double little = 1e-3 * (b.upper - b.lower);
    return values[variable] > b.lower + little && values[variable] < b.upper - little;
  }
  if (variable == anisotropy_angle) return values[anisotropy_ratio] < 1 / 1.001;
  const double value = bounded(variable, values);
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

FitSpace make_fit_space(const Points& points, const FitOptions& options,
                        std::span<const double> values) {
  const Distance distance = options.separation.distance;
  const double length = extent_of(points, distance);
  require(length > 0, ErrorKind::numerical, kFitWhere, "all {} points coincide{}", points.size(),
          points.t.empty() ? "" : " in space");
  FitSpace space;
  space.separation = held_separation(options);
  space.data_variance = data_variance(values, options.mean);
  space.held = values_of(
      {1, options.range.value_or(1), options.smoothness.value_or(0.5), 0, space.separation});
  space.bounds.fill({-kInfinity, kInfinity});
  add_matern(space, points, length, options);
  add_ratio(space, points, options);
  add_time(space, points, options);
  add_anisotropy(space, options);
  return space;
}

void sort_by_room(FitSpace& space, const FitSpace::Values& at,
                  const std::vector<double>& covariance) {
  const std::vector<double> x = space.coordinates(at);
  const Box box = space.box();
  const std::size_t k = x.size();
  std::vector<std::pair<double, std::size_t>> rooms;
  for (std::size_t i = 0; i < k; ++i) {
    const double room = std::min(x[i] - box.lower[i], box.upper[i] - x[i]);
    rooms.emplace_back(room / std::sqrt(covariance[i + i * k]), space.free[i]);
  }
  std::sort(rooms.begin(), rooms.end());
  for (std::size_t i = 0; i < k; ++i) space.free[i] = rooms[i].second;
}

FitSpace without_nugget(FitSpace space) {
  std::erase(space.free, std::size_t{FitSpace::ratio});
  space.held[FitSpace::ratio] = 0;
  return space;
}

}  // namespace strata
