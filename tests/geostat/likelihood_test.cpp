// log_likelihood against the dense oracle, and what it refuses.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/constants.hpp"
#include "tests/geostat/dense_oracle.hpp"
#include "tests/geostat/simulated_data.hpp"

namespace strata {
namespace {

struct LikelihoodData {
  Points points = random_points(53, 1);
  std::vector<double> values;

  LikelihoodData() {
    values = simulate_field(points, {2, 0.2, 0.7, 0.1}, 2);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 30 + 5 * points.x[i];
  }
};

TEST(LogLikelihood, AgreesWithTheDenseOracle) {
  LikelihoodData data;
  for (const MaternParameters& p : {MaternParameters{1.3, 0.15, 0.5, 0},
                                    {2, 0.2, 0.73, 0.1},
                                    {0.4, 0.05, 1.5, 0.01},
                                    {3, 0.1, 2.5, 0.02},
                                    {1, 10, 0.2, 1}}) {
    for (const Mean mean : kMeans) {
      const DenseOracle oracle(data.points, data.values, p, mean);
      const Likelihood got = log_likelihood(data.points, data.values, p, mean, host_options());
      ASSERT_TRUE(got.factor.ok);
      const auto label = testing::Message() << "mean " << static_cast<int>(mean) << " range "
                                            << p.range << " smoothness " << p.smoothness;
      const auto near = [](double value, Real expected) {
        return std::fabs(value - expected) <= 1e-10L * std::fabs(expected);
      };
      EXPECT_PRED2(near, got.log_likelihood, oracle.log_likelihood) << label;
      EXPECT_PRED2(near, got.quadratic_form, oracle.quadratic_form) << label;
      EXPECT_PRED2(near, got.factor.log_determinant, oracle.log_determinant) << label;
      ASSERT_EQ(got.mean_coefficients.size(), oracle.beta.size()) << label;
      for (std::size_t k = 0; k < oracle.beta.size(); ++k) {
        EXPECT_PRED2(near, got.mean_coefficients[k], oracle.beta[k]) << label << " beta " << k;
      }
    }
  }
}

TEST(LogLikelihood, OnePoint) {
  // Σ = 2 + ½, r = 3: −½(log 2π + log 2.5 + 9/2.5).
  const std::vector<double> values{3};
  const Likelihood got =
      log_likelihood({{0}, {0}}, values, {2, 1, 0.5, 0.5}, Mean::zero, host_options());
  EXPECT_DOUBLE_EQ(got.log_likelihood, -0.5 * (std::log(2 * std::acos(-1.0) * 2.5) + 3.6));
  EXPECT_DOUBLE_EQ(got.quadratic_form, 3.6);
}

TEST(LogLikelihood, LinearCoefficientsSurviveAFarOrigin) {
  LikelihoodData data;
  const MaternParameters p{2, 200, 0.7, 0.1};
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    data.points.x[i] = 5e5 + 1000 * data.points.x[i];  // coordinates like those of a map projection
    data.points.y[i] = 4.8e6 + 1000 * data.points.y[i];
  }
  const DenseOracle oracle(data.points, data.values, p, Mean::linear);
  const auto got = log_likelihood(data.points, data.values, p, Mean::linear, host_options());
  // Coordinates of six digits before those that differ cost three of the oracle's normal equations.
  const auto far = static_cast<double>(oracle.log_likelihood);
  EXPECT_NEAR(got.log_likelihood, far, 1e-12 * std::fabs(far));
  for (std::size_t k = 0; k < 3; ++k) {
    const auto expected = static_cast<double>(oracle.beta[k]);
    EXPECT_NEAR(got.mean_coefficients[k], expected, 1e-8 * std::fabs(expected)) << k;
  }
}

TEST(LogLikelihood, FactorizationThatFailsIsAValue) {
  // Points closer than the smooth covariance can tell apart: numerically singular.
  Points points;
  for (int i = 0; i < 40; ++i) {
    points.x.push_back(1e-4 * i);
    points.y.push_back(0);
  }
  const std::vector<double> values(40, 1.0);
  const auto got = log_likelihood(points, values, {1, 1, 5, 0}, Mean::zero, host_options());
  EXPECT_FALSE(got.factor.ok);
  EXPECT_GE(got.factor.first_bad_pivot, 1);
  EXPECT_TRUE(std::isnan(got.log_likelihood));
  EXPECT_TRUE(std::isnan(got.quadratic_form));
}

TEST(LogLikelihood, CoincidentPointsNeedANugget) {
  LikelihoodData data;
  const MaternParameters without{1, 0.1, 0.5, 0};
  MaternParameters with = without;
  with.nugget = 0.1;
  // Rows 4 = 40, 7 = 9, 7 = 30: the first pair in row order is (4, 40).
  for (const auto& [to, from] : {std::pair{40, 4}, {9, 7}, {30, 7}}) {
    data.points.x[static_cast<std::size_t>(to)] = data.points.x[static_cast<std::size_t>(from)];
    data.points.y[static_cast<std::size_t>(to)] = data.points.y[static_cast<std::size_t>(from)];
  }
  const auto pair = find_coincident_points(data.points);
  ASSERT_TRUE(pair);
  EXPECT_EQ(*pair, (std::pair<std::int64_t, std::int64_t>{4, 40}));
  std::string message;
  const auto kind = kind_of_error(
      [&] {
        static_cast<void>(log_likelihood(data.points, data.values, without, Mean::zero,  //
                                         host_options()));
      },
      &message);
  EXPECT_EQ(kind, ErrorKind::numerical);
  EXPECT_NE(message.find("rows 4 and 40"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  const auto got = log_likelihood(data.points, data.values, with, Mean::zero, host_options());
  const DenseOracle oracle(data.points, data.values, with, Mean::zero);
  // The nugget bounds the condition by some hundreds, and roundings by as many units.
  const auto expected = static_cast<double>(oracle.log_likelihood);
  EXPECT_NEAR(got.log_likelihood, expected, 1e-13 * std::fabs(expected));
}

TEST(LogLikelihood, NoCoincidentPoints) {
  EXPECT_FALSE(find_coincident_points(random_points(1000, 4)));
  EXPECT_FALSE(find_coincident_points({{1, 1, 2, 2}, {1, 2, 1, 2}}));
  EXPECT_TRUE(find_coincident_points({{0.0, 1, -0.0}, {5, 5, 5}}));
  EXPECT_FALSE(find_coincident_points({}));
}

class BadInput : public testing::Test {
 protected:
  void expect(ErrorKind kind, const char* words, const MaternParameters& p = {1, 0.1, 0.5, 0.1},
              Mean mean = Mean::zero) {
    std::string message;
    const auto got = kind_of_error(
        [&] { static_cast<void>(log_likelihood(data.points, data.values, p, mean)); }, &message);
    EXPECT_EQ(got, kind) << words;
    EXPECT_NE(message.find(words), std::string::npos) << message;
    data = LikelihoodData{};
  }

  LikelihoodData data;
};

TEST_F(BadInput, Data) {
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    data.values[17] = bad;
    expect(ErrorKind::input, "values[17]");
    data.points.x[3] = bad;
    expect(ErrorKind::input, "x[3]");
    data.points.y[52] = bad;
    expect(ErrorKind::input, "y[52]");
  }
  data.values.pop_back();
  expect(ErrorKind::misuse, "53 points, but 52 values");
  data.points.y.pop_back();
  expect(ErrorKind::misuse, "53 x coordinates, but 52 y coordinates");
  data.points = {};
  data.values = {};
  expect(ErrorKind::misuse, "0 rows");
}

TEST_F(BadInput, Parameters) {
  for (const double bad : {0.0, -1.0, kNaN, kInfinity}) {
    expect(ErrorKind::misuse, "variance", {bad, 0.1, 0.5, 0.1});
    expect(ErrorKind::misuse, "range", {1, bad, 0.5, 0.1});
    expect(ErrorKind::misuse, "smoothness", {1, 0.1, bad, 0.1});
    if (bad != 0) expect(ErrorKind::misuse, "nugget", {1, 0.1, 0.5, bad});
  }
  expect(ErrorKind::misuse, "smoothness is 50.5", {1, 0.1, 50.5, 0.1});
}

TEST_F(BadInput, PointsOnALineDoNotDetermineALinearMean) {
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    data.points.y[i] = 3 - 2 * data.points.x[i];
  }
  expect(ErrorKind::numerical, "3 coefficients", {1, 0.1, 0.5, 0.1}, Mean::linear);
  data.points.y.assign(data.values.size(), 7.0);
  expect(ErrorKind::numerical, "3 coefficients", {1, 0.1, 0.5, 0.1}, Mean::linear);
}

}  // namespace
}  // namespace strata
