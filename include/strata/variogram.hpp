#pragma once
// Empirical semivariograms: how much observations differ, by the distance between them.
//
// Contract: of all pairs of observations, none is left out; by the host's threads, with the same
// bits on any number of them. Checks its data as geostat.hpp does. Sources: Matheron, "Principles
// of geostatistics", Economic Geology 58, 1963; Cressie and Hawkins, "Robust estimation of the
// variogram", Mathematical Geology 12, 1980, as Cressie, "Statistics for spatial data", 1993, has
// it in equation 2.4.12.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "strata/geostat.hpp"

namespace strata {

/// Which pairs are compared, and in which classes. Lengths are in units of the coordinates, or
/// kilometres on the sphere.
struct VariogramOptions {
  /// Residuals of this mean by ordinary least squares are compared.
  Mean mean = Mean::constant;
  Distance distance = Distance::euclidean;
  /// The largest distance; 0: a third of the diagonal of the bounding box, on the sphere of that
  /// in space.
  double cutoff = 0;
  /// Classes of equal width up to the cutoff …
  std::int64_t lags = 15;
  /// … or of this width, the last of which ends at the cutoff; 0: as `lags` says.
  double width = 0;
  /// Directions in the plane of x and y, in degrees counter-clockwise of the x axis as
  /// Separation::anisotropy_angle; empty: all pairs together. Not on the sphere.
  std::vector<double> directions{};
  /// A pair belongs to each direction that its line is within so many degrees of; in (0, 90].
  double tolerance = 22.5;
  /// For points with times, which have to have a width: classes of lags in time, the first one of
  /// pairs at the same time, then so many of this width.
  std::int64_t time_lags = 0;
  double time_width = 0;
  ProgressCallback progress{};  ///< what = "variogram", in pairs of blocks of points
};

/// Pairs with from < distance <= to, and time_from < lag in time <= time_to, but for 1e-9 of these
/// bounds, since coordinates are rounded. Where both ends are 0, it is 0.
struct VariogramClass {
  double direction = std::numeric_limits<double>::quiet_NaN();  ///< degrees; NaN: all
  double time_from = 0;
  double time_to = 0;
  double from = 0;
  double to = 0;
  std::int64_t pairs = 0;
  double distance = 0;      ///< mean over the pairs
  double time = 0;          ///< mean lag in time
  double semivariance = 0;  ///< Matheron's: half of the mean square of differences
  double robust = 0;        ///< Cressie and Hawkins': from the mean root of differences
};

struct Variogram {
  /// Those that have pairs, by direction, then time, then distance.
  std::vector<VariogramClass> classes;
  double cutoff = 0;
  double width = 0;
  /// Those of the mean, by ordinary least squares, as Likelihood::mean_coefficients.
  std::vector<double> mean_coefficients;
  double mean_square = 0;  ///< of the residuals: where the semivariance levels off, if it does
  double seconds = 0;
};

/// Throws as log_likelihood() does for points, values and means. Error{misuse} also for options
/// that make no sense, for more than 100,000 classes, and for points with times without a width of
/// time classes. Error{numerical} where a semivariance is out of the range of doubles.
[[nodiscard]] Variogram variogram(const Points& points, std::span<const double> values,
                                  const VariogramOptions& options = {});

/// Two observations, rows first < second.
struct VariogramPair {
  std::int64_t first = 0;
  std::int64_t second = 0;
  double distance = 0;
  double time = 0;          ///< lag in time
  double semivariance = 0;  ///< half of the square of their difference
};

/// The most pairs that a cloud may have.
inline constexpr std::int64_t kCloudMax = 50'000'000;

/// The pairs themselves, by first, then by second; options say up to which distances, in space and
/// in time. Throws as variogram(), and Error{misuse} for directions, and for more than kCloudMax
/// pairs.
[[nodiscard]] std::vector<VariogramPair> variogram_cloud(const Points& points,
                                                         std::span<const double> values,
                                                         const VariogramOptions& options = {});

/// That of a model at a distance and a lag in time, in a direction as VariogramOptions has them
/// (NaN: along its major axis): nugget + variance·(1 − correlation), 0 at one place and time.
/// Throws Error{misuse} for parameters outside their domain, a distance or lag that is negative or
/// no number, and a lag of a model without times.
[[nodiscard]] double semivariance(const MaternParameters& parameters, double distance,
                                  double time = 0,
                                  double direction = std::numeric_limits<double>::quiet_NaN());

}  // namespace strata
