// Checks of data and parameters. Coincident points make the covariance exactly singular, which a
// factorization in floating point may or may not notice, so they are looked for: sort by
// coordinates and compare neighbours, O(n log n).

#include "geostat/checks.hpp"

#include <cmath>

#include "base/check.hpp"
#include "geostat/point_sets.hpp"

namespace strata {
namespace {

constexpr double kTimeMost = 0x1p480;

void check_finite(std::span<const double> values, const char* what, const char* where) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(std::isfinite(values[i]), ErrorKind::input, where,
            "{}[{}] is {}, which is not a finite number (rows count from 0)", what, i, values[i]);
  }
}

void check_domain(bool inside, const char* name, double value, const char* domain,
                  const char* where) {
  require(inside && std::isfinite(value), ErrorKind::misuse, where, "{} is {}, but must be {}",
          name, value, domain);
}

void check_count(std::span<const double> coordinate, const char* name, const Points& points,
                 const char* what, const char* where) {
  require(coordinate.empty() || coordinate.size() == points.x.size(), ErrorKind::misuse, where,
          "{}: {} x coordinates, but {} {} coordinates", what, points.x.size(), coordinate.size(),
          name);
  check_finite(coordinate, name, where);
}

/// The square of the time between two points does not overflow, which a covariance in time takes.
/// (Another unit would make another scale of it, but not by a power of two.)
void check_times(std::span<const double> times, const char* where) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    require(std::fabs(times[i]) <= kTimeMost, ErrorKind::input, where,
            "t[{}] is {}, too large for the square of a difference of times, which is then out of "
            "the range of doubles: give times in a larger unit (rows count from 0)",
            i, times[i]);
  }
}

void check_on_sphere(const Points& points, const char* where) {
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    require(points.x[i] >= -180 && points.x[i] <= 360, ErrorKind::input, where,
            "x[{}] is {}, but a longitude is between -180 and 360 degrees (rows count from 0)", i,
            points.x[i]);
    require(points.y[i] >= -90 && points.y[i] <= 90, ErrorKind::input, where,
            "y[{}] is {}, but a latitude is between -90 and 90 degrees (rows count from 0)", i,
            points.y[i]);
  }
}

void check_time(const TimeParameters& time, const char* where) {
  check_domain(time.scale > 0, "time scale", time.scale, "positive and finite", where);
  check_domain(time.smoothness > 0 && time.smoothness <= 1, "time smoothness", time.smoothness,
               "in (0, 1]", where);
  check_domain(time.interaction >= 0 && time.interaction <= 1, "interaction", time.interaction,
               "in [0, 1]", where);
}

/// What the covariance is on the sphere, no more and no less.
void check_great_circle(const MaternParameters& p, const char* where) {
  const Separation& s = p.separation;
  require(p.smoothness <= 0.5, ErrorKind::misuse, where,
          "smoothness is {}, but must be at most 0.5 with great-circle distance: above, the Matérn "
          "covariance is not positive definite on the sphere",
          p.smoothness);
  require(s.anisotropy_ratio == 1, ErrorKind::misuse, where,
          "anisotropy ratio is {}, but must be 1 with great-circle distance: the sphere has no "
          "major axis",
          s.anisotropy_ratio);
  require(!s.time || s.time->interaction == 0, ErrorKind::misuse, where,
          "interaction is {}, but must be 0 with great-circle distance: Gneiting's covariance is "
          "one of Euclidean distances",
          s.time ? s.time->interaction : 0);
}

}  // namespace

void check_points(const Points& points, const char* what, const char* where) {
  require(points.x.size() == points.y.size(), ErrorKind::misuse, where,
          "{}: {} x coordinates, but {} y coordinates", what, points.x.size(), points.y.size());
  require(!points.x.empty(), ErrorKind::misuse, where, "{}: 0 rows", what);
  check_finite(points.x, "x", where);
  check_finite(points.y, "y", where);
  check_count(points.z, "z", points, what, where);
  check_count(points.t, "t", points, what, where);
  check_times(points.t, where);
  for (std::size_t k = 0; k < points.covariates.size(); ++k) {
    const std::vector<double>& covariate = points.covariates[k];
    require(covariate.size() == points.x.size(), ErrorKind::misuse, where,
            "{}: {} x coordinates, but covariate {} (counting from 0) has {} values", what,
            points.x.size(), k, covariate.size());
    check_finite(covariate, fmt::format("covariates[{}]", k).c_str(), where);
  }
}

void check_separation(const Separation& separation, const Points& points, const char* where) {
  require(points.t.empty() || separation.time, ErrorKind::misuse, where,
          "{} points have times, but the covariance has no time parameters", points.size());
  require(!points.t.empty() || !separation.time, ErrorKind::misuse, where,
          "the covariance has time parameters, but the {} points have no times", points.size());
  if (separation.time && !points.z.empty()) {
    require(separation.time->interaction <= 2.0 / 3, ErrorKind::misuse, where,
            "interaction is {}, but must be at most 2/3 with a z coordinate: above, Gneiting's "
            "theorem does not say that the covariance is positive definite",
            separation.time->interaction);
  }
  if (separation.distance != Distance::great_circle) return;
  require(points.z.empty(), ErrorKind::misuse, where,
          "{} points have a z coordinate, which great-circle distance has no place for",
          points.size());
  check_on_sphere(points, where);
}

void check_values(const Points& points, std::span<const double> values, const char* where) {
  require(values.size() == points.x.size(), ErrorKind::misuse, where, "{} points, but {} values",
          points.x.size(), values.size());
  check_finite(values, "values", where);
}

void check_mean(Mean mean, const Points& points, const char* where) {
  require(points.covariates.empty() || mean == Mean::constant || mean == Mean::linear,
          ErrorKind::misuse, where,
          "{} covariates, but the {} mean has no place for them: constant and linear have",
          points.covariates.size(), mean == Mean::sample ? "sample" : "zero");
}

void check_parameters(const MaternParameters& p, const char* where) {
  check_domain(p.variance > 0, "variance", p.variance, "positive and finite", where);
  check_domain(p.range > 0, "range", p.range, "positive and finite", where);
  check_domain(p.smoothness > 0 && p.smoothness <= 50, "smoothness", p.smoothness, "in (0, 50]",
               where);
  check_domain(p.nugget >= 0, "nugget", p.nugget, "at least 0 and finite", where);
  const Separation& s = p.separation;
  check_domain(s.anisotropy_ratio > 0 && s.anisotropy_ratio <= 1, "anisotropy ratio",
               s.anisotropy_ratio, "in (0, 1]", where);
  check_domain(true, "anisotropy angle", s.anisotropy_angle, "finite", where);
  if (s.time) check_time(*s.time, where);
  if (s.distance == Distance::great_circle) check_great_circle(p, where);
}

std::optional<std::pair<std::int64_t, std::int64_t>> find_coincident_points(const Points& points,
                                                                            Distance distance) {
  const std::vector<std::int64_t> first = first_rows(points, distance);
  // The second of a place that occurs more than once has the first for its own.
  std::optional<std::pair<std::int64_t, std::int64_t>> pair;
  for (std::size_t j = 0; j < first.size(); ++j) {
    const std::pair found{first[j], static_cast<std::int64_t>(j)};
    if (found.first != found.second && (!pair || found < *pair)) pair = found;
  }
  return pair;
}

void check_distinct(const Points& points, Distance distance, const char* where) {
  const auto pair = find_coincident_points(points, distance);
  if (!pair) return;
  const auto i = static_cast<std::size_t>(pair->first);
  fail(ErrorKind::numerical, where,
       "rows {} and {} (counting from 0) are the same point ({}, {}), which needs a nugget above 0",
       pair->first, pair->second, points.x[i], points.y[i]);
}

}  // namespace strata
