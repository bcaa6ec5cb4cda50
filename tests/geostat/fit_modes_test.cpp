// The grid from whose best points a fit searches has short correlations and long ones, whatever the
// smoothness.

#include "geostat/fit_modes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tests/geostat/dense_oracle.hpp"

namespace strata {
namespace {

/// The Matérn correlation at a distance, by the standard library's Bessel function.
double correlation(double distance, double range, double smoothness) {
  const double x = distance / range;
  return std::pow(2, 1 - smoothness) / std::tgamma(smoothness) * std::pow(x, smoothness) *
         std::cyl_bessel_k(smoothness, x);
}

TEST(FitModes, GridReachesFromNoCorrelationOfNeighboursToTheExtent) {
  Points points = random_points(80, 3);
  for (const bool stray : {false, true}) {
    SCOPED_TRACE(stray ? "one point far away" : "uniform");
    if (stray) points.x[5] = points.y[5] = -5000;
    const FitSpace space = make_fit_space(points, {});
    const Scales scales{spacing_of(points, Distance::euclidean),
                        extent_of(points, Distance::euclidean)};
    std::map<double, std::pair<double, double>> ranges;  // by smoothness: the least and the most
    for (const FitSpace::Values& v : coarse_grid(space, scales)) {
      const double range = v[FitSpace::range];
      auto& [least, most] = ranges.try_emplace(v[FitSpace::smoothness], range, range).first->second;
      least = std::min(least, range);
      most = std::max(most, range);
    }
    ASSERT_GE(ranges.size(), 3U);
    for (const auto& [smoothness, ends] : ranges) {
      SCOPED_TRACE(smoothness);
      EXPECT_LT(correlation(scales.spacing.median, ends.first, smoothness), 0.2);
      EXPECT_GE(ends.second, 0.99 * scales.extent);
    }
  }
}

/// A search that ends at the edge ends at a nugget of 0, not at what rounding leaves of the offset:
/// the next one goes without it.
TEST(FitSpace, ANuggetAtItsLowerBoundIsExactlyZero) {
  const Points points = random_points(40, 4);
  FitSpace space = make_fit_space(points, {});
  for (int k = 0; k < 2000; ++k) {
    space.ratio_offset = std::pow(10, -15 * random_uniform(9, static_cast<std::uint64_t>(k)));
    const Box box = space.box();
    EXPECT_EQ(space.values(box.lower)[FitSpace::ratio], 0) << space.ratio_offset;
    FitSpace::Values some = space.values(box.lower);
    some[FitSpace::ratio] = 1e-3 * space.ratio_offset;  // far below, and kept
    EXPECT_NEAR(space.values(space.coordinates(some))[FitSpace::ratio], some[FitSpace::ratio],
                1e-9 * some[FitSpace::ratio]);
  }
}

/// A signal of a tenth of the variance is a mode of its own where the rest is noise.
TEST(FitModes, GridReachesFromNoNoiseToLittleElse) {
  const Points points = random_points(40, 4);
  const Scales scales{spacing_of(points, Distance::euclidean),
                      extent_of(points, Distance::euclidean)};
  double least = 1;
  double most = 0;
  for (const FitSpace::Values& v : coarse_grid(make_fit_space(points, {}), scales)) {
    least = std::min(least, v[FitSpace::ratio]);
    most = std::max(most, v[FitSpace::ratio]);
  }
  EXPECT_LT(least, 1e-5);
  EXPECT_GT(most, 5);
}

}  // namespace
}  // namespace strata
