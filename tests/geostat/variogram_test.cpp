// Empirical semivariograms: gstat's figures, all pairs one by one in long double, and what is
// refused.

#include "strata/variogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/covariance/covariance_boost.hpp"
#include "tests/geostat/dense_oracle.hpp"
#include "tests/geostat/meuse.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

/// log(zinc) on the flood plain of the Meuse.
struct Meuse {
  Points points;
  std::vector<double> values;
  Meuse() {
    for (const test::MeusePlace& place : test::kMeuse) {
      points.x.push_back(place.x);
      points.y.push_back(place.y);
      values.push_back(std::log(place.zinc));
    }
  }
};

struct Row {
  std::int64_t pairs;
  double distance;
  double semivariance;
};

void expect_rows(const std::vector<VariogramClass>& classes, const std::vector<Row>& rows) {
  ASSERT_EQ(classes.size(), rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(classes[k].pairs, rows[k].pairs) << k;
    EXPECT_NEAR(classes[k].distance, rows[k].distance, 6e-6) << k;
    EXPECT_NEAR(classes[k].semivariance, rows[k].semivariance, 6e-8) << k;
  }
}

/// What gstat's reference page of variogram() prints of these data (r-spatial.github.io/gstat, read
/// in November 2026).
TEST(Variogram, IsGstats) {
  const Meuse meuse;
  expect_rows(variogram(meuse.points, meuse.values).classes, {{57, 79.29244, 0.1234479},
                                                              {299, 163.97367, 0.2162185},
                                                              {419, 267.36483, 0.3027859},
                                                              {457, 372.73542, 0.4121448},
                                                              {547, 478.47670, 0.4634128},
                                                              {533, 585.34058, 0.5646933},
                                                              {574, 693.14526, 0.5689683},
                                                              {564, 796.18365, 0.6186769},
                                                              {589, 903.14650, 0.6471479},
                                                              {543, 1011.29177, 0.6915705},
                                                              {500, 1117.86235, 0.7033984},
                                                              {477, 1221.32810, 0.6038770},
                                                              {452, 1329.16407, 0.6517158},
                                                              {457, 1437.25620, 0.5665318},
                                                              {415, 1543.20248, 0.5748227}});
  VariogramOptions options;
  options.width = 90;
  options.cutoff = 1300;
  const Variogram narrow = variogram(meuse.points, meuse.values, options);
  ASSERT_EQ(narrow.classes.size(), 15U);
  expect_rows(
      {narrow.classes[0], narrow.classes[13], narrow.classes[14]},
      {{41, 72.24836, 0.1404979}, {408, 1212.62350, 0.6145586}, {173, 1280.65364, 0.6213803}});
  EXPECT_EQ(narrow.classes[14].to, 1300);
}

TEST(Variogram, OfResidualsAndDirectionsIsGstats) {
  const Meuse meuse;
  VariogramOptions options;
  options.mean = Mean::linear;
  const Variogram all = variogram(meuse.points, meuse.values, options);
  ASSERT_EQ(all.classes.size(), 15U);
  expect_rows(
      {all.classes[0], all.classes[7], all.classes[14]},
      {{57, 79.29244, 0.1060834}, {564, 796.18365, 0.4201289}, {415, 1543.20248, 0.4556815}});
  // gstat counts directions clockwise from north: its 0, 45, 90 and 135.
  options.directions = {90, 45, 0, -45};
  const Variogram by_direction = variogram(meuse.points, meuse.values, options);
  ASSERT_EQ(by_direction.classes.size(), 60U);
  std::vector<VariogramClass> some;
  for (std::size_t d = 0; d < 4; ++d) {
    EXPECT_EQ(by_direction.classes[15 * d].direction, options.directions[d]);
    for (const std::size_t k : {0, 4, 14}) some.push_back(by_direction.classes[15 * d + k]);
  }
  expect_rows(some, {{12, 84.36080, 0.04114593},
                     {158, 478.06480, 0.38337565},
                     {96, 1544.68559, 0.66909962},
                     {11, 82.06663, 0.07619858},
                     {172, 479.40618, 0.23932562},
                     {299, 1542.75515, 0.31707228},
                     {16, 78.75466, 0.07583160},
                     {118, 479.76226, 0.30366429},
                     {16, 1544.27842, 1.17421050},
                     {18, 74.69621, 0.19452856},
                     {99, 475.98691, 0.35772223},
                     {4, 1536.74264, 2.82057119}});
}

// ---- all pairs one by one

Real distance_of(const Points& p, std::size_t i, std::size_t j, Distance distance) {
  if (distance == Distance::great_circle)
    return Real{kEarthRadiusKm} * oracle_angle(p.x[i], p.y[i], p.x[j], p.y[j]);
  Real square = 0;
  for (const auto* c : {&p.x, &p.y, &p.z})
    if (!c->empty()) square += (Real{(*c)[i]} - (*c)[j]) * (Real{(*c)[i]} - (*c)[j]);
  return std::sqrt(square);
}

struct Expected {
  std::int64_t pairs = 0;
  Real distance = 0, time = 0, square = 0, root = 0;
};
/// By direction, class of times, class of distances. Values have no mean to be subtracted.
using AllExpected = std::map<std::tuple<int, int, int>, Expected>;

AllExpected all_pairs(const Points& p, const std::vector<double>& r, const VariogramOptions& o,
                      double cutoff, double width) {
  AllExpected out;
  const Real degree = std::acos(Real{-1}) / 180;
  for (std::size_t i = 0; i < r.size(); ++i) {
    for (std::size_t j = i + 1; j < r.size(); ++j) {
      const Real h = distance_of(p, i, j, o.distance);
      const Real u = p.t.empty() ? 0 : std::fabs(Real{p.t[i]} - p.t[j]);
      const int time = u == 0 ? 0 : static_cast<int>(std::ceil(u / o.time_width));
      if (h > cutoff || time > o.time_lags) continue;
      const int lag = h == 0 ? 0 : static_cast<int>(std::ceil(h / width));
      for (int d = 0; d < std::max<int>(1, static_cast<int>(o.directions.size())); ++d) {
        if (!o.directions.empty()) {
          const Real angle = std::atan2(Real{p.y[j]} - p.y[i], Real{p.x[j]} - p.x[i]) / degree;
          const Real off = std::fabs(
              std::remainder(angle - o.directions[static_cast<std::size_t>(d)], Real{180}));
          const bool somewhere = p.x[i] != p.x[j] || p.y[i] != p.y[j];
          if (somewhere && off > o.tolerance) continue;
        }
        Expected& e = out[{d, time, lag}];
        const Real difference = std::fabs(Real{r[i]} - r[j]);
        ++e.pairs;
        e.distance += h;
        e.time += u;
        e.square += difference * difference;
        e.root += std::sqrt(difference);
      }
    }
  }
  return out;
}

std::int64_t expect_all_pairs(const Points& points, const std::vector<double>& values,
                              VariogramOptions options) {
  options.mean = Mean::zero;
  const Variogram found = variogram(points, values, options);
  const AllExpected expected = all_pairs(points, values, options, found.cutoff, found.width);
  EXPECT_EQ(found.classes.size(), expected.size());
  std::size_t k = 0;
  for (const auto& [place, e] : expected) {
    if (k == found.classes.size()) break;
    const VariogramClass& one = found.classes[k++];
    const auto [direction, time, lag] = place;
    EXPECT_EQ(one.pairs, e.pairs);
    EXPECT_DOUBLE_EQ(one.to, std::min(lag * found.width, found.cutoff));
    EXPECT_DOUBLE_EQ(one.time_to, time * options.time_width);
    if (!options.directions.empty()) {
      EXPECT_EQ(one.direction, options.directions[static_cast<std::size_t>(direction)]);
    }
    const auto n = static_cast<Real>(e.pairs);
    const Real scale = 1e-13L;
    const Real of_distance = options.distance == Distance::great_circle ? 30 * scale : scale;
    EXPECT_NEAR(one.distance, e.distance / n, of_distance * (1 + e.distance / n));
    EXPECT_NEAR(one.time, e.time / n, scale * (1 + e.time / n));
    EXPECT_NEAR(one.semivariance, e.square / n / 2, 4 * scale * e.square / n);
    const Real robust = std::pow(e.root / n, 4) / (2 * (0.457L + 0.494L / n));
    EXPECT_NEAR(one.robust, robust, 8 * scale * robust);
  }
  return static_cast<std::int64_t>(expected.size());
}

/// Numbers of points around those of a block, coordinates of all kinds, every option.
TEST(Variogram, IsThatOfAllPairsOneByOne) {
  std::int64_t classes = 0;
  for (const std::size_t n : {1, 2, 3, 17, 255, 256, 257, 515, 1030}) {
    if (test::kSanitized && n > 300) continue;
    for (std::uint64_t kind = 0; kind < 6; ++kind) {
      Points points = random_points(n, 40 + kind);
      const Points more = random_points(n, 90 + kind);
      std::vector<double> values;
      for (std::size_t i = 0; i < n; ++i) values.push_back(random_normal(7 + kind, i));
      VariogramOptions options;
      if (kind == 1) {
        points.z = more.x;
        options.cutoff = 0.7;
        options.width = 0.2;  // the last class ends behind the cutoff
      }
      if (kind == 2) {
        options.directions = {0, 30, 200, -77.5};
        options.tolerance = 35;  // they overlap
        options.lags = 4;
      }
      if (kind == 3) {
        for (std::size_t i = 0; i < n; ++i) points.t.push_back(std::floor(5 * more.y[i]));
        options.time_width = 2;
        options.time_lags = 2;
        options.directions = {10};
        options.tolerance = 90;
      }
      if (kind >= 4) {  // the whole sphere, or a town beside the date line
        for (double& x : points.x) x = kind == 4 ? 360 * x - 180 : 179.95 + 0.1 * x;
        for (double& y : points.y) y = kind == 4 ? 180 * y - 90 : 60 + 0.1 * y;
        options.distance = Distance::great_circle;
        if (kind == 4) options.cutoff = 21000;  // more than there is
      }
      SCOPED_TRACE(testing::Message() << n << " points, kind " << kind);
      classes += expect_all_pairs(points, values, options);
    }
  }
  EXPECT_GT(classes, test::kSanitized ? 150 : 500);
}

/// A grid with twins: pairs at 0, distances at borders of classes, which belong to the lower one.
TEST(Variogram, BordersBelongToTheLowerClassAndTwinsToTheirOwn) {
  Points points;
  std::vector<double> values;
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 20; ++i) {
      for (int j = 0; j < 15; ++j) {
        points.x.push_back(i);
        points.y.push_back(j);
        values.push_back(random_normal(3, values.size()));
      }
    }
  }
  VariogramOptions options;
  options.cutoff = 10;
  options.width = 1;
  const Variogram found = variogram(points, values, options);
  ASSERT_EQ(found.classes.size(), 11U);
  EXPECT_EQ(found.classes[0].pairs, 300);
  EXPECT_EQ(found.classes[0].to, 0);
  EXPECT_EQ(found.classes[1].pairs, 4 * (19 * 15 + 20 * 14));
  EXPECT_EQ(found.classes[1].distance, 1);
  (void)expect_all_pairs(points, values, options);
  // Directions have them, too.
  options.directions = {0, 90};
  options.tolerance = 1;
  (void)expect_all_pairs(points, values, options);
}

/// Other units by powers of two change nothing but these; means are those of least squares.
TEST(Variogram, IsOfTheResidualsInAnyUnit) {
  const Meuse meuse;
  VariogramOptions options;
  options.mean = Mean::linear;
  const Variogram plain = variogram(meuse.points, meuse.values, options);
  ASSERT_EQ(plain.mean_coefficients.size(), 3U);
  for (const int length : {-700, 0, 650}) {
    for (const int value : {-450, 0, 450}) {
      Points points = meuse.points;
      for (auto* c : {&points.x, &points.y})
        for (double& x : *c) x = std::scalbn(x, length);
      std::vector<double> values = meuse.values;
      for (double& z : values) z = std::scalbn(z, value);
      const Variogram found = variogram(points, values, options);
      ASSERT_EQ(found.classes.size(), plain.classes.size());
      for (std::size_t k = 0; k < found.classes.size(); ++k) {
        EXPECT_EQ(found.classes[k].pairs, plain.classes[k].pairs);
        EXPECT_NEAR(std::scalbn(found.classes[k].distance, -length), plain.classes[k].distance,
                    1e-12 * plain.classes[k].distance);
        EXPECT_NEAR(std::scalbn(found.classes[k].semivariance, -2 * value),
                    plain.classes[k].semivariance, 1e-12 * plain.classes[k].semivariance);
      }
    }
  }
  std::vector<double> huge = meuse.values;
  for (double& z : huge) z = std::scalbn(z, 1000);
  EXPECT_THROW((void)variogram(meuse.points, huge, options), Error);
  // A covariate that explains all of it.
  Points explained = meuse.points;
  explained.covariates = {meuse.values};
  options.mean = Mean::constant;
  EXPECT_LT(variogram(explained, meuse.values, options).mean_square, 1e-28);
  // On 1e9 nothing of what is left is lost.
  std::vector<double> high = meuse.values;
  for (double& z : high) z = std::round(z * 1024) / 1024;
  const Variogram low = variogram(meuse.points, high);
  for (double& z : high) z += 1e9;
  const Variogram raised = variogram(meuse.points, high);
  for (std::size_t k = 0; k < low.classes.size(); ++k)
    EXPECT_NEAR(raised.classes[k].semivariance, low.classes[k].semivariance, 1e-7);
}

TEST(Variogram, ACloudHasThePairsThemselves) {
  const std::size_t n = 300;
  Points points = random_points(n, 5);
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(random_normal(6, i));
    points.t.push_back(static_cast<double>(i % 4));
  }
  VariogramOptions options;
  options.mean = Mean::zero;
  options.cutoff = 0.4;
  options.time_width = 1;
  options.time_lags = 1;
  const std::vector<VariogramPair> pairs = variogram_cloud(points, values, options);
  std::size_t k = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const Real h = distance_of(points, i, j, Distance::euclidean);
      const double u = std::fabs(points.t[i] - points.t[j]);
      if (h > 0.4L || u > 1) continue;
      ASSERT_LT(k, pairs.size());
      EXPECT_EQ(pairs[k].first, static_cast<std::int64_t>(i));
      EXPECT_EQ(pairs[k].second, static_cast<std::int64_t>(j));
      EXPECT_NEAR(pairs[k].distance, h, 1e-15);
      EXPECT_EQ(pairs[k].time, u);
      EXPECT_NEAR(pairs[k].semivariance, std::pow(values[i] - values[j], 2) / 2, 1e-14);
      ++k;
    }
  }
  EXPECT_EQ(k, pairs.size());
  EXPECT_GT(k, 5000U);
}

/// Coordinates that are rounded put pairs beside borders that they are meant to be on.
TEST(Variogram, BordersAreThoseOfDecimals) {
  Points row;
  for (int i = 0; i < 10; ++i) {
    row.x.push_back(i / 10.0);
    row.y.push_back(0);
  }
  const std::vector<double> values{1, 2, 4, 1, 3, 5, 2, 8, 1, 0};
  VariogramOptions options;
  options.width = 0.1;
  options.cutoff = 0.9;
  const Variogram found = variogram(row, values, options);
  ASSERT_EQ(found.classes.size(), 9U);
  for (std::size_t k = 0; k < 9; ++k)
    EXPECT_EQ(found.classes[k].pairs, 9 - static_cast<std::int64_t>(k));
  // Pairs at the border of a direction are in it, whatever their length.
  Points grid;
  std::vector<double> some;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      grid.x.push_back(i);
      grid.y.push_back(j);
      some.push_back(random_normal(2, some.size()));
    }
  }
  options = {};
  options.cutoff = 10;
  options.lags = 1;
  for (const double tolerance : {45.0, 30.0}) {
    options.directions = {tolerance, tolerance + 90};  // along x and y at the border
    options.tolerance = tolerance;
    const Variogram both = variogram(grid, some, options);
    std::int64_t pairs = 0;
    for (const VariogramClass& one : both.classes) pairs += one.pairs;
    EXPECT_GE(pairs, tolerance == 45 ? 630 + 180 : 360) << tolerance;
  }
}

/// Differences do not know a mean that is one number, so a wild value swamps no other.
TEST(Variogram, AWildValueSwampsNoOther) {
  Points points;
  std::vector<double> values;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 4; ++j) {
      points.x.push_back(i);
      points.y.push_back(j);
      values.push_back((i * 7 + j * 3) % 4 / 2.0);
    }
  }
  VariogramOptions options;
  options.cutoff = 4.5;
  options.lags = 3;
  const Variogram tame = variogram(points, values, options);
  points.x.push_back(90);
  points.y.push_back(90);
  for (const double wild : {1e12, 1.70141e38, -1e150}) {
    std::vector<double> more = values;
    more.push_back(wild);
    const Variogram found = variogram(points, more, options);
    ASSERT_EQ(found.classes.size(), tame.classes.size());
    for (std::size_t k = 0; k < tame.classes.size(); ++k)
      EXPECT_EQ(found.classes[k].semivariance, tame.classes[k].semivariance) << wild;
  }
  // Squares that doubles do not hold beside the others are no zeros.
  std::vector<double> more = values;
  more.push_back(1e250);
  EXPECT_THROW((void)variogram(points, more, options), Error);
  for (double& value : values) value *= 1e-250;
  points.x.pop_back();
  points.y.pop_back();
  EXPECT_THROW((void)variogram(points, values, options), Error);
}

/// One small value beside large ones loses no square that counts; small differences alone do.
TEST(Variogram, SquaresThatAreLostAreTold) {
  Points points;
  for (int i = 0; i < 6; ++i) {
    points.x.push_back(i < 3 ? i : 1000 + i);
    points.y.push_back(0);
  }
  VariogramOptions options;
  options.cutoff = 3;
  options.lags = 1;
  const std::vector<double> mixed{1, 1e-300, 3, 4, 0, 5};
  EXPECT_NEAR(variogram(points, mixed, options).classes.at(0).semivariance,
              (1 + 9 + 4 + 16 + 1 + 25) / 12.0, 1e-14);
  options.cutoff = 1;
  EXPECT_THROW(
      (void)variogram(points, std::vector<double>{1e-180, 2e-180, 0, 1e50, 1e50, 1e50}, options),
      Error);
  EXPECT_THROW((void)variogram_cloud(
                   points, std::vector<double>{1e-180, 2e-180, 0, 1e50, 1e50, 1e50}, options),
               Error);
  const std::vector<double> equal(6, 1e-180);
  EXPECT_EQ(variogram(points, equal, options).classes.at(0).semivariance, 0);
}

/// Lags in time that are more classes than there are numbers are in none.
TEST(Variogram, LagsFarBeyondTheClassesAreInNone) {
  Points points;
  points.x = {0, 1, 2};
  points.y = {0, 0, 0};
  points.t = {0, 1e12, 1e12};
  VariogramOptions options;
  options.cutoff = 5;
  options.time_width = 1e-12;
  options.time_lags = 3;
  const Variogram found = variogram(points, std::vector<double>{1, 2, 4}, options);
  ASSERT_EQ(found.classes.size(), 1U);
  EXPECT_EQ(found.classes[0].pairs, 1);
  EXPECT_EQ(found.classes[0].time_to, 0);
}

/// In directions and at lags in time as the covariance of two points has it.
TEST(Variogram, OfAModelHasItsSeparation) {
  const MaternParameters p{
      1.3, 0.3, 0.7, 0.1, {Distance::euclidean, 0.5, 20, TimeParameters{5, 0.5, 0.66}}};
  for (const double direction : {0.0, 20.0, 65.0, -70.0, 200.0}) {
    for (const double time : {0.0, 0.3, 2.0}) {
      for (const double h : {0.0, 0.05, 0.4}) {
        if (h == 0 && time == 0) continue;
        const double degree = std::acos(-1.0) / 180;
        Points pair;
        pair.x = {0, h * std::cos(direction * degree)};
        pair.y = {0, h * std::sin(direction * degree)};
        pair.t = {0, time};
        const Real distance = oracle_distance(p.separation, pair, 0, pair, 1);
        const Real w = 5 * std::pow(Real{time}, Real{1}) + 1;
        const Real covariance = oracle_covariance(p, distance / std::pow(w, 0.33L)) / w;
        EXPECT_NEAR(semivariance(p, h, time, direction), 1.4L - covariance, 1e-13)
            << direction << ' ' << time << ' ' << h;
      }
    }
  }
  EXPECT_EQ(semivariance(p, 0.2), semivariance(p, 0.2, 0, 20));
  EXPECT_THROW((void)semivariance({1, 1, 1, 0, {}}, 1, 1), Error);
}

TEST(Variogram, OfAModelIsNuggetAndWhatIsNotCorrelated) {
  const MaternParameters p{1.7, 0.4, 1.3, 0.2, {}};
  EXPECT_EQ(semivariance(p, 0), 0);
  for (const double h : {1e-9, 0.01, 0.3, 2.0, 50.0})
    EXPECT_NEAR(semivariance(p, h), 0.2L + 1.7L * (1 - matern_correlation_boost(1.3L, h / 0.4L)),
                1e-14);
  EXPECT_THROW((void)semivariance(p, -1), Error);
  EXPECT_THROW((void)semivariance(p, std::nan("")), Error);
  EXPECT_THROW((void)semivariance({-1, 1, 1, 0, {}}, 1), Error);
}

TEST(Variogram, WhatMakesNoSenseIsRefused) {
  const Meuse meuse;
  const auto expect_refused = [&](const Points& points, const VariogramOptions& options,
                                  const std::string& piece) {
    try {
      (void)variogram(points, meuse.values, options);
      ADD_FAILURE() << piece;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
    }
  };
  const auto with = [](auto change) {
    VariogramOptions options;
    change(options);
    return options;
  };
  const Points& points = meuse.points;
  expect_refused(points, with([](auto& o) { o.cutoff = -1; }), "a cutoff of -1");
  expect_refused(points, with([](auto& o) { o.width = std::nan(""); }), "classes of nan");
  expect_refused(points, with([](auto& o) { o.lags = 0; }), "lags is 0");
  expect_refused(points, with([](auto& o) { o.lags = 200'000; }), "100000 at most");
  expect_refused(points, with([](auto& o) { o.width = 1e-9; }), "100000 at most");
  expect_refused(points, with([](auto& o) { o.tolerance = 91; }), "tolerance of 91");
  expect_refused(points, with([](auto& o) { o.directions = {INFINITY}; }), "direction of inf");
  expect_refused(points, with([](auto& o) { o.time_width = 1; }), "points without times");
  expect_refused(points, with([](auto& o) { o.time_lags = INT64_MAX; }), "at most 100000");
  Points timed = points;
  timed.t.assign(timed.x.size(), 1);
  expect_refused(timed, {}, "how wide");
  VariogramOptions sphere;
  sphere.distance = Distance::great_circle;
  expect_refused(points, sphere, "x[0]");
  Points bad = points;
  bad.y[17] = std::nan("");
  expect_refused(bad, {}, "y[17]");
  VariogramOptions stopped;
  stopped.progress = [](const Progress&) { return false; };
  expect_refused(points, stopped, "cancelled");
}

}  // namespace
}  // namespace strata
