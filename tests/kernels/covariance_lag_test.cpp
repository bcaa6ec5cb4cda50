// Distances on the sphere where formulas for them lose digits: neighbours, antipodes, poles, the
// date line. Expected values follow from one angle alone.

#include "kernels/covariance/covariance_lag.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace strata {
namespace {

/// An angle of the sphere, in kilometres.
long double length_of(long double degrees) {
  return degrees * (3.14159265358979323846264338L / 180) * static_cast<long double>(kEarthRadiusKm);
}

void expect_distance(double longitude1, double latitude1, double longitude2, double latitude2,
                     long double degrees) {
  const double there = great_circle_distance(longitude1, latitude1, longitude2, latitude2);
  const double back = great_circle_distance(longitude2, latitude2, longitude1, latitude1);
  EXPECT_EQ(there, back);
  EXPECT_TRUE(std::fabs(there - length_of(degrees)) <= 1e-15L * length_of(degrees))
      << longitude1 << ", " << latitude1 << " to " << longitude2 << ", " << latitude2 << ": "
      << there << " for " << static_cast<double>(length_of(degrees));
}

TEST(GreatCircle, AlongAMeridianAndTheEquator) {
  for (const double step : {1e-13, 1e-9, 0x1p-20, 0.25, 30.0, 89.5, 90.0}) {
    expect_distance(17, 0, 17, step, step);
    expect_distance(0, 0, step, 0, step);
    expect_distance(0, -step, 0, 0, step);
    expect_distance(12, 90 - step, 12, 90, 90 - (90 - step));
  }
  expect_distance(-75, -40.5, -75, 62.25, 102.75L);
}

TEST(GreatCircle, AcrossTheDateLineAndTheZeroMeridian) {
  expect_distance(179.75, 0, -179.75, 0, 0.5L);
  expect_distance(180 - 0x1p-40, 0, -180, 0, 0x1p-40L);
  expect_distance(359.75, 0, 0.25, 0, 0.5L);
  expect_distance(360 - 0x1p-40, 0, 0, 0, 0x1p-40L);
  expect_distance(350, 0, -10, 0, 0);
  expect_distance(360, 33, 0, 33, 0);
  expect_distance(180, -5, -180, -5, 0);
}

TEST(GreatCircle, PolesHaveNoLongitude) {
  expect_distance(12, 90, -120, 90, 0);
  expect_distance(12, 90, -120, -90, 180);
  expect_distance(300, 90, 5, 52, 38);
  expect_distance(0, 90 - 0x1p-30, 180, 90 - 0x1p-30, 0x1p-29L);  // over the pole
}

TEST(GreatCircle, NearAntipodes) {
  expect_distance(0, 0, 180, 0, 180);
  expect_distance(20, 35, -160, -35, 180);
  for (const double off : {0x1p-30, 0x1p-10, 0.5}) {
    expect_distance(0, 0, 180 - off, 0, 180 - off);
    expect_distance(20, 35, -160, -35 + off, 180 - off);
    expect_distance(20, 35, 200, -35 - off, 180 - off);
  }
}

TEST(GreatCircle, ANanStays) {
  EXPECT_TRUE(std::isnan(great_circle_distance(NAN, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(great_circle_distance(0, 0, 0, NAN)));
}

TEST(LagBetween, WithoutTimeOrAtTheSameTimeTheFactorIsOne) {
  const double a[] = {0, 0, 7};
  const double b[] = {3, 4, 7};
  CovarianceParameters parameters{1, 2.5, 0.5, 0, false, {}};
  EXPECT_EQ(lag_between(lag_rule(parameters, 2), a, 1, b, 1).x, 2);
  EXPECT_EQ(lag_between(lag_rule(parameters, 2), a, 1, b, 1).factor, 1);
  parameters.separation.time = TimeParameters{3, 0.7, 1};
  EXPECT_EQ(lag_between(lag_rule(parameters, 3), a, 1, b, 1).x, 2);
  EXPECT_EQ(lag_between(lag_rule(parameters, 3), a, 1, b, 1).factor, 1);
}

}  // namespace
}  // namespace strata
