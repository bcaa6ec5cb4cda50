// Distances between neighbouring points against all pairs, and points that rounding takes for one.

#include "geostat/spacing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"

namespace strata {
namespace {

/// Least and median distance to the nearest neighbour, from all pairs.
Spacing from_all_pairs(const Points& points, Distance distance) {
  const std::size_t n = points.x.size();
  std::vector<double> nearest;
  for (std::size_t i = 0; i < n; ++i) {
    Real least = INFINITY;
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      const Real d =
          distance == Distance::great_circle
              ? 2 * static_cast<Real>(kEarthRadiusKm) *
                    std::sin(oracle_angle(points.x[i], points.y[i], points.x[j], points.y[j]) / 2)
              : oracle_distance({}, points, i, points, j);
      least = std::min(least, d);
    }
    nearest.push_back(static_cast<double>(least));
  }
  std::sort(nearest.begin(), nearest.end());
  return {nearest.front(), nearest[n / 2]};
}

void expect_spacing(const Points& points, Distance distance = Distance::euclidean) {
  const Spacing got = spacing_of(points, distance);
  const Spacing expected = from_all_pairs(points, distance);
  EXPECT_NEAR(got.least / expected.least, 1, 1e-8);
  EXPECT_NEAR(got.median / expected.median, 1, 1e-8);
}

TEST(Spacing, IsThatOfAllPairs) {
  for (const std::size_t n : {2U, 3U, 17U, 200U}) {
    SCOPED_TRACE(n);
    Points points = random_points(n, n);
    expect_spacing(points);
    for (std::size_t i = 0; i < n; ++i)
      points.x[i] = 500'000 + std::round(8 * points.x[i]);  // ties
    for (std::size_t i = 0; i < n; ++i) points.z.push_back(40 * random_uniform(7, i));
    expect_spacing(points);
    points.z = {};
    for (std::size_t i = 0; i < n; ++i) {
      points.x[i] = 360 * random_uniform(8, i);
      points.y[i] = 180 * random_uniform(9, i) - 90;
    }
    expect_spacing(points, Distance::great_circle);
  }
}

TEST(Spacing, SitesThatAreObservedAgainAndTwinsAreOnePlace) {
  Points points = random_points(20, 3);
  const Spacing once = spacing_of(points, Distance::euclidean);
  for (std::size_t i = 0; i < 20; ++i) {
    points.x.push_back(points.x[i] + 1e-13);
    points.y.push_back(points.y[i]);
    points.x.push_back(points.x[i]);
    points.y.push_back(points.y[i]);
  }
  const Spacing all = spacing_of(points, Distance::euclidean);
  EXPECT_NEAR(all.least, once.least, 1e-12);
  EXPECT_NEAR(all.median, once.median, 1e-12);
}

TEST(Spacing, ExtentOnTheSphereDoesNotJumpAtTheDateLine) {
  const Points across{{179, -179, 180}, {0, 0, 1}};
  const Points elsewhere{{9, 11, 10}, {0, 0, 1}};
  EXPECT_NEAR(extent_of(across, Distance::great_circle),
              extent_of(elsewhere, Distance::great_circle), 60);
  EXPECT_NEAR(extent_of(across, Distance::great_circle), 249, 10);  // 222 and 111 km
}

TEST(NearlyCoincident, IsWhatRoundingTakesForOneAtASmoothness) {
  Points points = random_points(25, 6);
  EXPECT_FALSE(find_nearly_coincident_points(points));
  points.x.push_back(points.x[11] + 1e-10);
  points.y.push_back(points.y[11]);
  const auto pair = find_nearly_coincident_points(points);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, 11);
  EXPECT_EQ(pair->second, 25);
  EXPECT_NEAR(pair->distance, 1e-10, 1e-15);
  // An exponential covariance tells them apart to six digits, but not at a distance of 1e-15.
  EXPECT_FALSE(find_nearly_coincident_points(points, Distance::euclidean, 0.5));
  points.x[25] = std::nextafter(points.x[11], 2.0);
  EXPECT_TRUE(find_nearly_coincident_points(points, Distance::euclidean, 0.5));
  // Coincident ones are, and a time apart they are not.
  points.x[25] = points.x[11];
  EXPECT_EQ(find_nearly_coincident_points(points)->distance, 0);
  for (std::size_t i = 0; i < 26; ++i) points.t.push_back(static_cast<double>(i));
  EXPECT_FALSE(find_nearly_coincident_points(points));
}

}  // namespace
}  // namespace strata
