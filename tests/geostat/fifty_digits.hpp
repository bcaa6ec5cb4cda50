#pragma once
// What the tests of rounding compare with: correlations in 50 digits, problems from easy to
// singular, and how errors are held against what was said of them.
//
// Contract: nothing of the library's arithmetic.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"

namespace strata {

using Digits = boost::multiprecision::cpp_bin_float_50;

/// The Matérn correlation at h/range, in closed form.
inline Digits correlation(const MaternParameters& p, const Points& a, std::size_t i,
                          const Points& b, std::size_t j) {
  const Digits dx = Digits(a.x[i]) - Digits(b.x[j]);
  const Digits dy = Digits(a.y[i]) - Digits(b.y[j]);
  const Digits t = sqrt(Digits(dx * dx + dy * dy)) / Digits(p.range);
  Digits polynomial = 1;
  if (p.smoothness > 1) polynomial += t;
  if (p.smoothness > 2) polynomial += t * t / 3;
  return polynomial * exp(Digits(-t));
}

/// The Cholesky factor of the covariance of these points, row by row.
inline std::vector<std::vector<Digits>> covariance_factor(const MaternParameters& p,
                                                          const Points& at) {
  const std::size_t n = at.x.size();
  std::vector<std::vector<Digits>> l(n, std::vector<Digits>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Digits s = Digits(p.variance) * correlation(p, at, i, at, j);
      if (i == j) s += Digits(p.nugget);
      for (std::size_t k = 0; k < j; ++k) s -= l[i][k] * l[j][k];
      l[i][j] = i == j ? Digits(sqrt(s)) : Digits(s / l[j][j]);
    }
  }
  return l;
}

/// A problem of n points, different in every other respect from seed to seed.
struct RoundingProblem {
  explicit RoundingProblem(std::uint64_t seed, std::size_t n = 64)
      : points(random_points(static_cast<std::int64_t>(n), seed)) {
    const auto pick = [&](std::uint64_t what, auto... of) {
      const std::array all{static_cast<double>(of)...};
      return all[random_bits(1000 + what, seed) % all.size()];
    };
    const double kind = pick(1, 0, 1, 2, 3);
    const auto side = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    for (std::size_t i = 0; i < n; ++i) {
      if (kind == 1 && i % 8 == 1) {  // twins
        points.x[i] = points.x[i - 1] + 1e-6 * points.x[i];
        points.y[i] = points.y[i - 1];
      } else if (kind == 2) {  // a grid
        points.x[i] = static_cast<double>(i % side) / static_cast<double>(side);
        points.y[i] = static_cast<double>(i / side) / static_cast<double>(side);
      } else if (kind == 3) {  // projected coordinates, in metres
        points.x[i] = std::round(4e5 + 1000 * points.x[i]);
        points.y[i] = std::round(5e6 + 1000 * points.y[i]);
      }
    }
    const double unit = kind == 3 ? 1000 : 1;
    parameters = {pick(2, 1.0, 1.0, 1e-4, 2500.0), unit * pick(3, 0.02, 0.1, 0.3, 2.0),
                  pick(4, 0.5, 1.5, 2.5), 0};
    parameters.nugget = parameters.variance * pick(5, 0.0, 1e-12, 1e-8, 0.1);
    mean = static_cast<Mean>(random_bits(1006, seed) % 3);
    const double deviation = std::sqrt(parameters.variance);
    const double values_are = pick(7, 0, 1, 2);
    values = values_are == 0 ? simulate_field(points, parameters, seed) : std::vector<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (values_are > 0) values[i] = deviation * random_normal(seed + 1, i);
      if (values_are == 2)  // single precision, with a large mean
        values[i] = static_cast<double>(static_cast<float>(values[i] + 1000 * deviation));
    }
  }

  Points points;
  MaternParameters parameters;
  Mean mean = Mean::zero;
  std::vector<double> values;
};

/// How many of all errors are beyond what was said, …
struct Tally {
  int all = 0;
  int beyond = 0;
  std::vector<double> ratios{};

  void add(double value, const Digits& truth, double said, const std::string& label) {
    const double error = std::abs(static_cast<double>(Digits(value) - truth));
    ++all;
    if (std::isinf(said)) return;
    ASSERT_GT(said, 0) << label;
    ratios.push_back(error / said);
    EXPECT_LE(error, 2 * said) << label;
    if (error > said) ++beyond;
  }
  /// … and that most are not far below it.
  void expect_fair() {
    EXPECT_LE(200 * beyond, all + 200);
    ASSERT_GT(2 * ratios.size(), static_cast<std::size_t>(all)) << "most are known";
    std::sort(ratios.begin(), ratios.end());
    EXPECT_GT(ratios[ratios.size() / 2], 1e-3);
  }
};

}  // namespace strata
