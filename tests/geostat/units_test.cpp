// The same problem in other units of length and of values, down to where squares of either leave
// the range of doubles: what is computed is the same to the last bit, in the other units.

#include "geostat/units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"

namespace strata {
namespace {

constexpr std::size_t kPoints = 40;
constexpr double kLogTwo = 0.69314718055994530942;

struct Problem {
  Points points;
  std::vector<double> values;
  MaternParameters parameters{0.87, 2.5, 0.5, 1e-3};
};

/// The problem with lengths times 2^length and values times 2^value.
Problem problem_in(int length, int value, std::size_t n = kPoints) {
  Problem out{random_points(n, 4), {}};
  for (std::size_t i = 0; i < n; ++i)
    out.values.push_back(std::sin(4 * out.points.x[i]) + random_normal(5, i) / 10 + 3);
  for (auto* coordinate : {&out.points.x, &out.points.y})
    for (double& c : *coordinate) c = std::scalbn(c, length);
  for (double& z : out.values) z = std::scalbn(z, value);
  out.parameters.range = std::scalbn(out.parameters.range, length);
  out.parameters.variance = std::scalbn(out.parameters.variance, 2 * value);
  out.parameters.nugget = std::scalbn(out.parameters.nugget, 2 * value);
  return out;
}

Likelihood likelihood_of(const Problem& p, Mean mean) {
  return log_likelihood(p.points, p.values, p.parameters, mean, host_options());
}

void expect_scaled(const std::vector<double>& got, const std::vector<double>& expected,
                   int exponent) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::scalbn(got[i], -exponent), expected[i]) << i;
}

TEST(Units, OfLengthDoNotChangeALikelihood) {
  const Problem plain = problem_in(0, 0);
  const DenseOracle oracle(plain.points, plain.values, plain.parameters, Mean::linear);
  const Likelihood expected = likelihood_of(plain, Mean::linear);
  EXPECT_NEAR(expected.log_likelihood, static_cast<double>(oracle.log_likelihood), 1e-9);
  for (const int e : {-1015, -600, -540, -530, -515, -400, -199, 199, 400, 505, 512, 520, 1015}) {
    SCOPED_TRACE(e);
    const Likelihood got = likelihood_of(problem_in(e, 0), Mean::linear);
    EXPECT_EQ(got.log_likelihood, expected.log_likelihood);
    EXPECT_EQ(got.error().log_likelihood(), expected.error().log_likelihood());
    EXPECT_EQ(got.mean_coefficients[0], expected.mean_coefficients[0]);
    for (const std::size_t k : {1U, 2U})
      EXPECT_EQ(std::scalbn(got.mean_coefficients[k], e), expected.mean_coefficients[k]);
  }
}

TEST(Units, OfValuesAreToldByTheLikelihood) {
  const Likelihood expected = likelihood_of(problem_in(0, 0), Mean::constant);
  for (const int e : {-500, -450, -190, 190, 450, 500}) {
    SCOPED_TRACE(e);
    const Likelihood got = likelihood_of(problem_in(0, e), Mean::constant);
    EXPECT_NEAR(got.log_likelihood + static_cast<double>(kPoints) * e * kLogTwo,
                expected.log_likelihood, 1e-10);
    EXPECT_NEAR(got.factor.log_determinant - 2.0 * kPoints * e * kLogTwo,
                expected.factor.log_determinant, 1e-10);
    EXPECT_EQ(got.quadratic_form, expected.quadratic_form);
    EXPECT_EQ(std::scalbn(got.mean_coefficients[0], -e), expected.mean_coefficients[0]);
  }
}

TEST(Units, ARangeFarFromTheExtentLeavesNuggetOrMean) {
  const Problem plain = problem_in(0, 0);
  const auto at_range = [&](double range) {
    MaternParameters p = plain.parameters;
    p.range = range;
    return log_likelihood(plain.points, plain.values, p, Mean::zero, host_options()).log_likelihood;
  };
  Real of_nugget = 0;
  for (const double z : plain.values) {
    const Real s = plain.parameters.variance + plain.parameters.nugget;
    of_nugget -= (std::log(2 * std::acos(Real{-1}) * s) + z * z / s) / 2;
  }
  for (const double range : {1e-70, 1e-200, 1e-300})
    EXPECT_NEAR(at_range(range), static_cast<double>(of_nugget), 1e-10) << range;
  for (const double range : {1e200, 1e300}) EXPECT_EQ(at_range(range), at_range(1e100)) << range;
}

TEST(Units, DoNotChangePredictions) {
  const Points targets = random_points(7, 9);
  const auto predicted = [&](int length, int value, Mean mean) {
    const Problem p = problem_in(length, value);
    Points at = targets;
    for (auto* coordinate : {&at.x, &at.y})
      for (double& c : *coordinate) c = std::scalbn(c, length);
    return predict({p.parameters, mean, {}, p.points, p.values}, at, host_options());
  };
  for (const Mean mean : {Mean::sample, Mean::linear}) {
    const Prediction expected = predicted(0, 0, mean);
    for (const auto& [length, value] : {std::pair{-600, 0}, {600, 0}, {0, 450}, {-700, -450}}) {
      SCOPED_TRACE(length);
      const Prediction got = predicted(length, value, mean);
      expect_scaled(got.mean, expected.mean, value);
      expect_scaled(got.standard_error, expected.standard_error, value);
      expect_scaled(got.process_standard_error, expected.process_standard_error, value);
    }
  }
}

TEST(Units, DoNotChangeCrossValidation) {
  const auto compare = [](auto&& validate) {
    const CrossValidation expected = validate(problem_in(0, 0));
    for (const auto& [length, value] : {std::pair{-600, 0}, {600, 450}, {0, -450}}) {
      SCOPED_TRACE(length);
      const CrossValidation got = validate(problem_in(length, value));
      expect_scaled(got.mean, expected.mean, value);
      expect_scaled(got.standard_error, expected.standard_error, value);
      EXPECT_EQ(std::scalbn(got.scores.rmse, -value), expected.scores.rmse);
      EXPECT_NEAR(std::scalbn(got.scores.crps, -value), expected.scores.crps, 1e-14);
    }
  };
  compare([](const Problem& p) {
    return leave_one_out(p.points, p.values, p.parameters, Mean::constant, host_options());
  });
  compare([](const Problem& p) {
    CrossValidationOptions options{host_options()};
    options.folds = 4;
    return cross_validate(p.points, p.values, p.parameters, Mean::constant, options);
  });
}

TEST(Units, DoNotChangeSimulation) {
  SimulateOptions options{host_options()};
  const auto simulated = [&](int length, int value) {
    const Problem p = problem_in(length, value);
    return simulate(p.points, p.parameters, {}, options).values;
  };
  const std::vector<double> expected = simulated(0, 0);
  for (const auto& [length, value] : {std::pair{-600, 0}, {600, 450}})
    expect_scaled(simulated(length, value), expected, value);
}

TEST(Units, AFitReportsItsEstimatesInThoseOfTheData) {
  FitOptions options{host_options()};
  options.smoothness = 0.5;
  options.mean = Mean::linear;
  const auto fitted = [&](int length, int value) {
    const Problem p = problem_in(length, value, 30);
    return fit(p.points, p.values, options);
  };
  const FitResult expected = fitted(0, 0);
  for (const auto& [length, value] : {std::pair{-990, 0}, {990, 450}, {0, -450}}) {
    SCOPED_TRACE(length);
    const FitResult got = fitted(length, value);
    const double shift = 30.0 * value * kLogTwo;
    const auto expect_near = [](double a, double b) { EXPECT_NEAR(a / b, 1, 1e-3); };
    EXPECT_NEAR(got.likelihood.log_likelihood + shift, expected.likelihood.log_likelihood, 1e-5);
    expect_near(std::scalbn(got.parameters.range, -length), expected.parameters.range);
    expect_near(std::scalbn(got.parameters.variance, -2 * value), expected.parameters.variance);
    expect_near(std::scalbn(got.standard_errors.range, -length), expected.standard_errors.range);
    expect_near(std::scalbn(got.standard_errors.variance, -2 * value),
                expected.standard_errors.variance);
    expect_near(std::scalbn(got.likelihood.mean_coefficients[1], length - value),
                expected.likelihood.mean_coefficients[1]);
    // The estimates are a step of the path, in the same units.
    const auto step = std::find_if(got.path.begin(), got.path.end(), [&](const FitStep& t) {
      return t.range == got.parameters.range && t.variance == got.parameters.variance &&
             t.nugget == got.parameters.nugget;
    });
    ASSERT_NE(step, got.path.end());
    EXPECT_EQ(step->log_likelihood, got.likelihood.log_likelihood);
  }
}

TEST(Units, WhatHasNoVarianceInDoublesIsToldApartFromWhatDoesNotVary) {
  FitOptions options{host_options()};
  for (const int e : {-560, 520}) {
    Problem p = problem_in(0, e);
    std::string message;
    EXPECT_EQ(kind_of_error([&] { (void)fit(p.points, p.values, options); }, &message),
              ErrorKind::numerical);
    EXPECT_NE(message.find("out of the range of doubles"), std::string::npos) << message;
    std::fill(p.values.begin(), p.values.end(), p.values[0]);
    message.clear();
    EXPECT_EQ(kind_of_error([&] { (void)fit(p.points, p.values, options); }, &message),
              ErrorKind::numerical);
    EXPECT_NE(message.find("do not vary"), std::string::npos) << message;
  }
  Problem p = problem_in(0, 600);
  p.parameters = problem_in(0, 0).parameters;
  EXPECT_EQ(kind_of_error([&] { (void)likelihood_of(p, Mean::zero); }), ErrorKind::numerical);
}

TEST(Units, ACovariateHasItsOwn) {
  const auto with_covariate = [](int e) {
    Problem p = problem_in(0, 0);
    p.points.covariates.emplace_back();
    for (std::size_t i = 0; i < kPoints; ++i)
      p.points.covariates[0].push_back(std::scalbn(random_uniform(8, i), e));
    return likelihood_of(p, Mean::constant);
  };
  const Likelihood expected = with_covariate(0);
  for (const int e : {-600, 600}) {
    const Likelihood got = with_covariate(e);
    EXPECT_EQ(got.log_likelihood, expected.log_likelihood);
    EXPECT_EQ(std::scalbn(got.mean_coefficients[1], e), expected.mean_coefficients[1]);
  }
}

TEST(Units, TimesWhoseSquaresOverflowAreRefusedByRow) {
  Problem p = problem_in(0, 0);
  p.parameters.separation.time = TimeParameters{};
  for (std::size_t i = 0; i < kPoints; ++i) p.points.t.push_back(static_cast<double>(i));
  EXPECT_FALSE(kind_of_error([&] { (void)likelihood_of(p, Mean::zero); }));
  p.points.t[17] = 1e160;
  std::string message;
  EXPECT_EQ(kind_of_error([&] { (void)likelihood_of(p, Mean::zero); }, &message), ErrorKind::input);
  EXPECT_NE(message.find("t[17]"), std::string::npos) << message;
}

TEST(Units, TwinsAreFoundInAny) {
  Points points = random_points(10, 3);
  points.x.push_back(points.x[4] + 1e-12);
  points.y.push_back(points.y[4]);
  for (const int e : {-900, 0, 900}) {
    Points scaled = points;
    for (auto* coordinate : {&scaled.x, &scaled.y})
      for (double& c : *coordinate) c = std::scalbn(c, e);
    const auto pair = find_nearly_coincident_points(scaled);
    ASSERT_TRUE(pair.has_value()) << e;
    EXPECT_EQ(pair->first, 4);
    EXPECT_NEAR(std::scalbn(pair->distance, -e) / 1e-12, 1, 1e-3);
  }
}

}  // namespace
}  // namespace strata
