#pragma once
// Distance over range and factor in time of two points, for host and device code.
//
// Contract: everything that depends on the parameters alone is computed once on the host
// (`lag_rule`) and passed by value. The distance has a relative error of a few roundings, for
// points on the sphere also where they are close together or antipodal. A NaN coordinate gives NaN.
//
// Method: on the sphere, with a the haversine sin²(Δφ/2) + cos φ₁·cos φ₂·sin²(Δλ/2) of the angle
// between the points (R. W. Sinnott, "Virtues of the haversine", Sky and Telescope 68, 1984), the
// angle is 2·atan2(√a, √b). Near antipodes 1 − a would cancel; b, the same number, is the sum
// sin²((φ₁ + φ₂)/2) + cos φ₁·cos φ₂·cos²(Δλ/2) of terms that are not negative, because
// cos²(Δφ/2) = sin²((φ₁ + φ₂)/2) + cos φ₁·cos φ₂. Differences are taken in degrees, where those of
// neighbours are exact, across the date line, too, and cos φ as the sine of the angle to the pole.

#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/covariance/bessel_k.hpp"
#include "kernels/covariance/covariance.hpp"
#include "strata/error.hpp"

namespace strata {

/// How two points are compared.
struct LagRule {
  double range = 1;
  std::int64_t space = 2;  ///< coordinates in space; that of time comes after them
  bool great_circle = false;
  bool anisotropic = false;
  bool time = false;
  double cosine = 1;  ///< of the angle of the major axis
  double sine = 0;
  double ratio = 1;
  double time_scale = 0;
  double time_power = 2;   ///< 2α
  double range_power = 0;  ///< β/2

  /// Nothing but the Euclidean distance.
  [[nodiscard]] bool plain() const noexcept { return !great_circle && !anisotropic && !time; }
};

/// The correlation of two points is that of `x`, times `factor`.
struct Lag {
  double x = 0;       ///< distance over range
  double factor = 1;  ///< 1 without time
};

/// For points with `dimensions` coordinates. Throws Error{misuse} if these do not fit the
/// parameters. Host only.
[[nodiscard]] inline LagRule lag_rule(const CovarianceParameters& parameters,
                                      std::int64_t dimensions) {
  const Separation& separation = parameters.separation;
  LagRule rule;
  rule.range = parameters.range;
  rule.great_circle = separation.distance == Distance::great_circle;
  rule.anisotropic = separation.anisotropy_ratio != 1;
  rule.time = separation.time.has_value();
  rule.space = dimensions - (rule.time ? 1 : 0);
  const bool fits = rule.great_circle ? rule.space == 2 : rule.space >= (rule.anisotropic ? 2 : 1);
  if (!fits) {
    throw Error(ErrorKind::misuse, "covariance",
                std::to_string(rule.space) + " coordinates in space do not fit the distance");
  }
  if (rule.anisotropic) {
    const long double angle = separation.anisotropy_angle * (3.14159265358979323846L / 180);
    rule.cosine = static_cast<double>(std::cos(angle));
    rule.sine = static_cast<double>(std::sin(angle));
    rule.ratio = separation.anisotropy_ratio;
  }
  if (rule.time) {
    rule.time_scale = separation.time->scale;
    rule.time_power = 2 * separation.time->smoothness;
    rule.range_power = 0.5 * separation.time->interaction;
  }
  return rule;
}

/// In kilometres, from longitudes in [−180, 360] and latitudes in [−90, 90], in degrees.
[[nodiscard]] STRATA_HOST_DEVICE inline double great_circle_distance(double longitude1,
                                                                     double latitude1,
                                                                     double longitude2,
                                                                     double latitude2) {
  constexpr double degree = 0.017453292519943295769;
  if (longitude1 > 180) longitude1 -= 360;
  if (longitude2 > 180) longitude2 -= 360;
  double turn = std::fabs(longitude1 - longitude2);
  if (turn > 180) turn = (180 - std::fabs(longitude1)) + (180 - std::fabs(longitude2));
  const double cosines = std::sin((90 - std::fabs(latitude1)) * degree) *
                         std::sin((90 - std::fabs(latitude2)) * degree);
  const double across = std::sin(0.5 * degree * (latitude1 - latitude2));
  const double along = std::sin(0.5 * degree * turn);
  const double to_antipode = std::sin(0.5 * degree * (latitude1 + latitude2));
  const double against = std::sin(0.5 * degree * (180 - turn));
  const double a = across * across + cosines * along * along;
  const double b = to_antipode * to_antipode + cosines * against * against;
  return 2 * kEarthRadiusKm * std::atan2(std::sqrt(a), std::sqrt(b));
}

/// The square of the Euclidean distance in the coordinates from `first` to before `end`.
template <class X>
[[nodiscard]] STRATA_HOST_DEVICE inline double square_distance(const X* a, std::int64_t a_ld,
                                                               const X* b, std::int64_t b_ld,
                                                               std::int64_t first,
                                                               std::int64_t end) {
  double square = 0;
  for (std::int64_t k = first; k < end; ++k) {
    const double difference = static_cast<double>(a[k * a_ld]) - static_cast<double>(b[k * b_ld]);
    square += difference * difference;
  }
  return square;
}

/// The lag of point `a` from point `b`: coordinates of the same point are `a_ld` and `b_ld` apart.
template <class X>
[[nodiscard]] STRATA_HOST_DEVICE inline Lag lag_between(const LagRule& rule, const X* a,
                                                        std::int64_t a_ld, const X* b,
                                                        std::int64_t b_ld) {
  const auto difference = [&](std::int64_t k) {
    return static_cast<double>(a[k * a_ld]) - static_cast<double>(b[k * b_ld]);
  };
  double h = 0;
  if (rule.great_circle) {
    h = great_circle_distance(static_cast<double>(a[0]), static_cast<double>(a[a_ld]),
                              static_cast<double>(b[0]), static_cast<double>(b[b_ld]));
  } else {
    double square = 0;
    if (rule.anisotropic) {
      const double dx = difference(0);
      const double dy = difference(1);
      const double along = rule.cosine * dx + rule.sine * dy;
      const double across = (rule.cosine * dy - rule.sine * dx) / rule.ratio;
      square = along * along + across * across;
    }
    h = std::sqrt(square + square_distance(a, a_ld, b, b_ld, rule.anisotropic ? 2 : 0, rule.space));
  }
  Lag lag;
  lag.x = h / rule.range;
  if (rule.time) {
    const double u = std::fabs(difference(rule.space));
    const double w = rule.time_scale * std::pow(u, rule.time_power) + 1;
    if (rule.range_power != 0) lag.x /= std::pow(w, rule.range_power);
    lag.factor = 1 / w;
  }
  return lag;
}

}  // namespace strata
