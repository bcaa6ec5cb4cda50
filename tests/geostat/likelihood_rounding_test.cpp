// What a likelihood says of its rounding, in FP64 and with lower precisions, against the same
// likelihood in 50 digits: values that the model explains and values that it does not, points that
// nearly coincide, ranges that are too long, data with a large mean.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/geostat/fifty_digits.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

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
  const std::vector<std::vector<Digits>> l = covariance_factor(p, at);
  Parts out;
  Digits zz = 0, z1 = 0, ones = 0;
  for (std::size_t i = 0; i < n; ++i) {
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

TEST(LikelihoodRounding, HoldsTheTruthOfFiftyDigits) {
  Tally fp64;
  Tally mixed;
  const std::uint64_t problems = test::campaign(900, 24, 4);
  for (std::uint64_t seed = 1; seed <= problems; ++seed) {
    const RoundingProblem problem(seed, seed % 30 == 29 ? 150 : 64);
    const Parts truth = parts_of(problem.points, problem.values, problem.parameters, problem.mean);
    for (const double accuracy : {0.0, seed % 2 == 0 ? 1e-5 : 1e-3, seed % 2 == 0 ? 1e-11 : 1e-8}) {
      CovarianceOptions options = host_options();
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
  EXPECT_GT(fp64.all, 2 * static_cast<int>(problems));
  EXPECT_GT(mixed.all, static_cast<int>(problems));
  RecordProperty("certified", mixed.all / 3);
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
