#pragma once
// Separation: what a covariance takes for the distance between two points, and their lag in time.
//
// Contract: pure data. Which values are allowed is said here; geostat.hpp checks them.

#include <cstdint>
#include <optional>

namespace strata {

/// The mean radius of the Earth, (2a + b)/3, in kilometres (IUGG; Moritz, "Geodetic Reference
/// System 1980").
inline constexpr double kEarthRadiusKm = 6371.0088;

enum class Distance : std::uint8_t {
  euclidean,  ///< in the unit of the coordinates x, y and, where there is one, z
  /// Along a great circle of a sphere of radius kEarthRadiusKm, in kilometres: x is the longitude
  /// and y the latitude, in degrees. The Matérn covariance of this distance is positive definite
  /// only for a smoothness of at most 1/2 (Gneiting, "Strictly and non-strictly positive definite
  /// functions on spheres", Bernoulli 19, 2013, section 4).
  great_circle,
};

/// The time part of Gneiting's class of space-time covariances, as ExaGeoStat has it:
///   C(h, u) = M(h / w^(β/2)) / w,   w = a·|u|^(2α) + 1,
/// for points a distance h and a time u apart; M is the Matérn covariance (Gneiting,
/// "Nonseparable, stationary covariance functions for space-time data", J. Amer. Statist. Assoc.
/// 97, 2002).
struct TimeParameters {
  double scale = 1;       ///< a > 0, in the inverse of the unit of time to the power of 2α
  double smoothness = 1;  ///< α in (0, 1]
  /// β: 0 is separable, M(h) times 1/w. At most 1 in the plane, 2/3 with a z coordinate (in d
  /// dimensions the theorem has w^(−βd/2), and what is left of 1/w has to be a covariance in time);
  /// 0 with great_circle, for which the theorem does not hold.
  double interaction = 0;
  bool operator==(const TimeParameters&) const = default;
};

struct Separation {
  Distance distance = Distance::euclidean;
  /// Geometric anisotropy in the plane of x and y: correlation reaches `range` along the major
  /// axis, which lies `anisotropy_angle` degrees counter-clockwise of the x axis, and
  /// `anisotropy_ratio`·range across it. The ratio is in (0, 1], and 1 with great_circle.
  double anisotropy_ratio = 1;
  double anisotropy_angle = 0;
  /// Given if and only if the points have times.
  std::optional<TimeParameters> time{};
  bool operator==(const Separation&) const = default;
};

}  // namespace strata
