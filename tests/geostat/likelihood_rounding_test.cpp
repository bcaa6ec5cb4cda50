// What a likelihood says of its rounding, in FP64 and with lower precisions, against the same
// likelihood in 50 digits: values that the model explains and values that it does not, points that
// nearly coincide, ranges that are too long, data with a large mean.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"

namespace strata {
namespace {

using Digits = boost::multiprecision::cpp_bin_float_50;

/// The Matérn correlation at h/range, in closed form.
Digits correlation(const MaternParameters& p, const Points& at, std::size_t i, std::size_t j) {
  const Digits dx = Digits(at.x[i]) - Digits(at.x[j]);
  const Digits dy = Digits(at.y[i]) - Digits(at.y[j]);
  const Digits t = sqrt(Digits(dx * dx + dy * dy)) / Digits(p.range);
  Digits polynomial = 1;
  if (p.smoothness > 1) polynomial += t;
  if (p.smoothness > 2) polynomial += t * t / 3;
  return polynomial * exp(Digits(-t));
}

struct Parts {
  Digits quadratic_form = 0;
  Digits log_determinant = 0;
  Digits log_likelihood = 0;
};

/// By Cholesky's method, the right-hand sides along with it: z for a mean of zero, z less its mean
/// for `sample`, and for `constant` z and 1.
Parts parts_of(const Points& at, const std::vector<double>& values, const MaternParameters& p,
               Mean mean) {
  const std::size_t n = values.size();
  std::vector<Digits> z(values.begin(), values.end());
  if (mean == Mean::sample) {
    Digits sum = 0;
    for (const Digits& v : z) sum += v;
    for (Digits& v : z) v -= sum / n;
  }
  std::vector<Digits> one(n, Digits(1));
  std::vector<std::vector<Digits>> l(n, std::vector<Digits>(n));
  Parts out;
  Digits zz = 0, z1 = 0, ones = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Digits s = Digits(p.variance) * correlation(p, at, i, j);
      if (i == j) s += Digits(p.nugget);
      for (std::size_t k = 0; k < j; ++k) s -= l[i][k] * l[j][k];
      l[i][j] = i == j ? Digits(sqrt(s)) : Digits(s / l[j][j]);
    }
    out.log_determinant += 2 * log(l[i][i]);
    for (std::vector<Digits>* b : {&z, &one}) {
      for (std::size_t k = 0; k < i; ++k) (*b)[i] -= l[i][k] * (*b)[k];
      (*b)[i] /= l[i][i];
    }
    zz += z[i] * z[i];
    z1 += z[i] * one[i];
    ones += one[i] * one[i];
  }
  out.quadratic_form = mean == Mean::constant ? Digits(zz - z1 * z1 / ones) : zz;
  const Digits pi = boost::math::constants::pi<Digits>();
  out.log_likelihood = -(Digits(n) * log(2 * pi) + out.log_determinant + out.quadratic_form) / 2;
  return out;
}

/// A problem of 64 points, different in every respect from seed to seed.
struct Problem {
  explicit Problem(std::uint64_t seed) : points(random_points(64, seed)) {
    const auto pick = [&](std::uint64_t what, auto... of) {
      const double all[] = {static_cast<double>(of)...};
      return all[random_bits(1000 + what, seed) % std::size(all)];
    };
    const double kind = pick(1, 0, 1, 2, 3);
    for (std::size_t i = 0; i < 64; ++i) {
      if (kind == 1 && i % 8 == 1) {  // twins
        points.x[i] = points.x[i - 1] + 1e-6 * points.x[i];
        points.y[i] = points.y[i - 1];
      } else if (kind == 2) {  // a grid
        points.x[i] = static_cast<double>(i % 8) / 8;
        points.y[i] = static_cast<double>(i / 8) / 8;
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
    values = values_are == 0 ? simulate_field(points, parameters, seed) : std::vector<double>(64);
    for (std::size_t i = 0; i < 64; ++i) {
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

TEST(LikelihoodRounding, HoldsTheTruthOfFiftyDigits) {
  Tally fp64;
  Tally mixed;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Problem problem(seed);
    const Parts truth = parts_of(problem.points, problem.values, problem.parameters, problem.mean);
    for (const double accuracy : {0.0, 1e-5, 1e-11}) {
      Options options = host_options();
      options.tile = 16;
      options.mixed.accuracy = accuracy;
      const Likelihood got =
          log_likelihood(problem.points, problem.values, problem.parameters, problem.mean, options);
      if (!got.factor.ok) continue;
      const std::string label = "seed " + std::to_string(seed) + ", " + std::to_string(accuracy);
      Tally& tally = got.certificate ? mixed : fp64;
      const LikelihoodError error = got.error();
      tally.add(got.quadratic_form, truth.quadratic_form, error.quadratic_form, label + " q");
      tally.add(got.factor.log_determinant, truth.log_determinant, error.log_determinant,
                label + " log|S|");
      tally.add(got.log_likelihood, truth.log_likelihood, error.log_likelihood(), label);
    }
  }
  EXPECT_GT(fp64.all, 50);
  EXPECT_GT(mixed.all, 30);
  fp64.expect_fair();
  mixed.expect_fair();
}

// Twins 1e-13 apart make a smooth covariance singular to FP64: nothing is known then, and said to
// be.
TEST(LikelihoodRounding, IsUnknownWhereTheCovarianceIsSingularToFp64) {
  Points points = random_points(40, 3);
  for (std::size_t i = 1; i < 20; i += 2) {
    points.x[i] = points.x[i - 1] + 1e-13;
    points.y[i] = points.y[i - 1];
  }
  std::vector<double> values;
  for (std::size_t i = 0; i < 40; ++i) values.push_back(random_normal(4, i));
  const MaternParameters parameters{1, 0.3, 0.5, 0};
  const Likelihood got = log_likelihood(points, values, parameters, Mean::zero, host_options());
  ASSERT_TRUE(got.factor.ok);
  const Parts truth = parts_of(points, values, parameters, Mean::zero);
  const double off =
      std::abs(static_cast<double>(Digits(got.log_likelihood) - truth.log_likelihood));
  EXPECT_GT(off, 1e6) << "or it is no such case";
  EXPECT_GE(got.rounding.log_likelihood(), off);
}

}  // namespace
}  // namespace strata
