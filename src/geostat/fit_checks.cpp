#include "geostat/fit_checks.hpp"

#include "base/check.hpp"
#include "geostat/checks.hpp"
#include "geostat/fit_space.hpp"
#include "geostat/information.hpp"
#include "geostat/mean_basis.hpp"
#include "geostat/regression.hpp"

namespace strata {
namespace {

/// What is to be estimated of the separation is there to be estimated, and has a start.
void check_estimates(const Points& points, const FitOptions& options) {
  const SeparationEstimates& estimate = options.estimate;
  const bool sphere = options.separation.distance == Distance::great_circle;
  require(!estimate.of_time() || !points.t.empty(), ErrorKind::misuse, kFitWhere,
          "parameters of time are to be estimated, but the {} points have no times", points.size());
  require(!(estimate.interaction && sphere), ErrorKind::misuse, kFitWhere,
          "the interaction is to be estimated, but with great-circle distance it must be 0");
  require(!((estimate.anisotropy_ratio || estimate.anisotropy_angle) && sphere), ErrorKind::misuse,
          kFitWhere,
          "the anisotropy is to be estimated, but with great-circle distance there is none");
  require(!estimate.anisotropy_angle || estimate.anisotropy_ratio ||
              options.separation.anisotropy_ratio != 1,
          ErrorKind::misuse, kFitWhere,
          "the angle of anisotropy is to be estimated, but its ratio is held at 1");
  if (!options.start) return;
  MaternParameters start = *options.start;
  const std::optional<TimeParameters> time = start.separation.time;
  start.separation = options.separation;
  if (estimate.anisotropy_ratio)
    start.separation.anisotropy_ratio = options.start->separation.anisotropy_ratio;
  if (estimate.anisotropy_angle)
    start.separation.anisotropy_angle = options.start->separation.anisotropy_angle;
  if (estimate.of_time()) {
    require(time.has_value(), ErrorKind::misuse, kFitWhere,
            "parameters of time are to be estimated, but the start has none");
    TimeParameters& own = *start.separation.time;
    if (estimate.time_scale) own.scale = time->scale;
    if (estimate.time_smoothness) own.smoothness = time->smoothness;
    if (estimate.interaction) own.interaction = time->interaction;
  }
  check_parameters(start, kFitWhere);
  check_separation(start.separation, points, kFitWhere);
}

/// No two points are one to rounding, for there is no nugget.
void check_apart(const Points& points, Distance distance, double smoothness) {
  check_distinct(points, distance, kFitWhere);
  const auto pair = find_nearly_coincident_points(points, distance, smoothness);
  if (!pair) return;
  const auto i = static_cast<std::size_t>(pair->first);
  fail(
      ErrorKind::numerical, kFitWhere,
      "rows {} and {} (counting from 0) are {:.3g} apart at ({}, {}), which rounding takes for the "
      "same point: that needs a nugget above 0",
      pair->first, pair->second, pair->distance, points.x[i], points.y[i]);
}

void check_options(const Points& points, std::span<const double> values,
                   const FitOptions& options) {
  check_points(points, "points", kFitWhere);
  check_values(points, values, kFitWhere);
  check_mean(options.mean, points, kFitWhere);
  MaternParameters held = options.start.value_or(MaternParameters{});
  held.separation = options.separation;
  check_parameters(held, kFitWhere);
  held.range = options.range.value_or(held.range);
  held.smoothness = options.smoothness.value_or(held.smoothness);
  held.nugget = options.nugget.value_or(held.nugget);
  check_parameters(held, kFitWhere);
  require(!options.max_evaluations || *options.max_evaluations >= 1, ErrorKind::misuse, kFitWhere,
          "max_evaluations is {}, but must be at least 1", options.max_evaluations.value_or(0));
  require(options.relative_tolerance > 0 && options.relative_tolerance < 1, ErrorKind::misuse,
          kFitWhere, "relative_tolerance is {}, but must be in (0, 1)", options.relative_tolerance);
  require(options.standard_errors != StandardErrorMethod::expected ||
              points.size() <= kInformationOrderMax,
          ErrorKind::misuse, kFitWhere,
          "standard errors by the expected information are for up to {} points, not {}",
          kInformationOrderMax, points.size());
  check_separation(options.separation, points, kFitWhere);
  check_estimates(points, options);
  if (options.nugget && *options.nugget == 0)
    check_apart(points, options.separation.distance, options.smoothness.value_or(1));
}

/// Refuses data whose residuals are zero up to rounding: the variance would be, too.
void check_variation(const Points& points, std::span<const double> values, Mean mean,
                     Distance distance) {
  const MeanBasis basis(mean, points, distance);
  const std::int64_t n = points.size();
  require(n >= basis.columns() + 4, ErrorKind::misuse, kFitWhere,
          "{} points are too few to fit {} coefficients and a covariance (at least {})", n,
          basis.columns(), basis.columns() + 4);
  std::vector<double> data(static_cast<std::size_t>(n * (basis.columns() + 1)));
  const MatrixView<double> w{data.data(), n, basis.columns() + 1, n};
  basis.fill(points, w);
  const double centre = mean == Mean::sample ? sample_mean(values) : 0;
  double square = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double z = values[static_cast<std::size_t>(i)];
    w(i, basis.columns()) = z - centre;
    square += z * z;
  }
  const double residual = regress(w, kFitWhere).residual_square;
  require(residual > 1e-26 * square, ErrorKind::numerical, kFitWhere,
          "the {} values do not vary about their mean", n);
}

}  // namespace

Units check_fit(const Points& points, std::span<const double> values, const FitOptions& options) {
  check_options(points, values, options);
  const Units units(points, values, options, kFitWhere);
  check_variation(units.of(points), units.of(values), options.mean, options.separation.distance);
  return units;
}

}  // namespace strata
