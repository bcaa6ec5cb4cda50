// Covariates of the mean: everything that estimates one, against the dense oracle, and that they go
// where their points go, whatever orders, cuts or streams these.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/constants.hpp"
#include "geostat/point_sets.hpp"
#include "tests/geostat/dense_oracle.hpp"
#include "tests/geostat/simulated_data.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

constexpr Mean kMeansWithCovariates[] = {Mean::constant, Mean::linear};
const MaternParameters kParameters{1.7, 0.15, 0.8, 0.2};

/// Random points with covariates of several sizes and origins, as percentages, metres and years
/// would be; the fourth and those after it are noise.
Points with_covariates(std::size_t n, std::size_t covariates, std::uint64_t seed) {
  Points points = random_points(n, seed);
  for (std::size_t k = 0; k < covariates; ++k) {
    std::vector<double>& u = points.covariates.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      const double noise = random_uniform(seed + 1 + k, i);
      const double of_place = std::sin(5 * points.x[i]) * std::cos(3 * points.y[i]);
      u.push_back(k == 0   ? 60 + 30 * of_place + 10 * noise
                  : k == 1 ? 1e-3 * noise
                  : k == 2 ? 2e5 + 500 * points.x[i] * points.y[i]
                           : noise - 0.5);
    }
  }
  return points;
}

SimulatedData data_with_covariates(std::size_t n, std::size_t covariates, std::uint64_t seed = 31) {
  SimulatedData data{with_covariates(n, covariates, seed), {}};
  data.values = simulate_field(data.points, kParameters, seed + 50);
  for (std::size_t i = 0; i < n; ++i) {
    data.values[i] += 4 - 3 * data.points.y[i];
    for (std::size_t k = 0; k < covariates; ++k)
      data.values[i] += (k == 0 ? 0.2 : k == 1 ? 700 : 0.01) * data.points.covariates[k][i];
  }
  return data;
}

SimulatedData reversed(const SimulatedData& data) {
  std::vector<std::int64_t> rows(data.values.size());
  std::iota(rows.rbegin(), rows.rend(), 0);
  return {rows_of(data.points, rows), {data.values.rbegin(), data.values.rend()}};
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (const double v : values) out = std::max(out, std::fabs(v));
  return out;
}

TEST(CoefficientCount, HasOneMoreForEachCovariate) {
  EXPECT_EQ(coefficient_count(Mean::constant), 1);
  EXPECT_EQ(coefficient_count(Mean::constant, 4), 5);
  EXPECT_EQ(coefficient_count(Mean::linear, 2), 5);
  EXPECT_EQ(coefficient_count(Mean::sample, 2), 1);
  EXPECT_EQ(coefficient_count(Mean::zero, 2), 0);
}

TEST(Covariates, LikelihoodAgreesWithTheDenseOracle) {
  for (const std::size_t n : {9U, 33U, 97U}) {
    for (const std::size_t covariates : {1U, 2U, 3U}) {
      const SimulatedData data = data_with_covariates(n, covariates);
      for (const Mean mean : kMeansWithCovariates) {
        const auto label = testing::Message() << n << " points, " << covariates
                                              << " covariates, mean " << static_cast<int>(mean);
        const DenseOracle oracle(data.points, data.values, kParameters, mean);
        const Likelihood got =
            log_likelihood(data.points, data.values, kParameters, mean, host_options());
        ASSERT_TRUE(got.factor.ok);
        const auto expected = static_cast<double>(oracle.log_likelihood);
        EXPECT_NEAR(got.log_likelihood, expected, 1e-10 * std::fabs(expected)) << label;
        EXPECT_NEAR(got.quadratic_form, static_cast<double>(oracle.quadratic_form),
                    1e-9 * got.quadratic_form)
            << label;
        ASSERT_EQ(got.mean_coefficients.size(), oracle.beta.size()) << label;
        for (std::size_t k = 0; k < oracle.beta.size(); ++k) {
          const auto beta = static_cast<double>(oracle.beta[k]);
          EXPECT_NEAR(got.mean_coefficients[k], beta, 1e-8 * std::fabs(beta)) << label << ' ' << k;
        }
      }
    }
  }
}

TEST(Covariates, PredictionAgreesWithTheDenseOracle) {
  SimulatedData data = data_with_covariates(61, 3);
  const Points targets = with_covariates(23, 3, 77);
  for (const Mean mean : kMeansWithCovariates) {
    const DenseOracle oracle(data.points, data.values, kParameters, mean);
    for (const std::int64_t chunk : {0, 1, 7}) {
      const Prediction got = predict({kParameters, mean, {}, data.points, data.values}, targets,
                                     host_options(), chunk);
      for (std::size_t t = 0; t < targets.x.size(); ++t) {
        const auto [expected, variance] = oracle.predict(targets, t);
        const auto label = testing::Message() << "mean " << static_cast<int>(mean) << ", " << t;
        EXPECT_NEAR(got.mean[t], static_cast<double>(expected), 1e-9 * largest(data.values))
            << label;
        EXPECT_NEAR(got.process_standard_error[t], static_cast<double>(std::sqrt(variance)),
                    1e-8 * got.process_standard_error[t])
            << label;
      }
    }
  }
}

TEST(Covariates, MoreOfThemThanATileHasColumns) {
  const SimulatedData data = data_with_covariates(50, 25);
  const Points targets = with_covariates(9, 25, 78);
  CovarianceOptions options = host_options();
  options.tile = 16;
  const DenseOracle oracle(data.points, data.values, kParameters, Mean::linear);
  const Prediction got =
      predict({kParameters, Mean::linear, {}, data.points, data.values}, targets, options);
  for (std::size_t t = 0; t < targets.x.size(); ++t) {
    const auto [expected, variance] = oracle.predict(targets, t);
    EXPECT_NEAR(got.mean[t], static_cast<double>(expected), 1e-8 * largest(data.values)) << t;
    EXPECT_NEAR(got.process_standard_error[t], static_cast<double>(std::sqrt(variance)),
                1e-8 * got.process_standard_error[t]);
  }
}

TEST(Covariates, OnesThatAreTheCoordinatesAreALinearMean) {
  SimulatedData data = data_with_covariates(53, 0);
  SimulatedData named = data;
  named.points.covariates = {data.points.x, data.points.y};
  const Likelihood expected =
      log_likelihood(data.points, data.values, kParameters, Mean::linear, host_options());
  const Likelihood got =
      log_likelihood(named.points, named.values, kParameters, Mean::constant, host_options());
  EXPECT_NEAR(got.log_likelihood, expected.log_likelihood,
              1e-13 * std::fabs(expected.log_likelihood));
  ASSERT_EQ(got.mean_coefficients.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(got.mean_coefficients[k], expected.mean_coefficients[k], 1e-12) << k;
  Points targets = random_points(7, 79);
  const Prediction plain =
      predict({kParameters, Mean::linear, {}, data.points, data.values}, targets, host_options());
  targets.covariates = {targets.x, targets.y};
  const Prediction same = predict({kParameters, Mean::constant, {}, named.points, named.values},
                                  targets, host_options());
  for (std::size_t t = 0; t < 7; ++t) {
    EXPECT_NEAR(same.mean[t], plain.mean[t], 1e-12);
    EXPECT_NEAR(same.standard_error[t], plain.standard_error[t], 1e-13);
  }
}

TEST(Covariates, GoWithTheirPointsInAnyOrder) {
  const SimulatedData data = data_with_covariates(150, 2);
  const SimulatedData back = reversed(data);
  const Points targets = with_covariates(11, 2, 80);
  const DenseOracle oracle(data.points, data.values, kParameters, Mean::linear);
  for (const PointOrder order : {PointOrder::none, PointOrder::kd, PointOrder::hilbert}) {
    for (const double accuracy : {0.0, 1e-4}) {
      for (const SimulatedData* some : {&data, &back}) {
        CovarianceOptions options = host_options();
        options.tile = 32;
        options.order = order;
        options.mixed.accuracy = accuracy;
        const auto label = testing::Message()
                           << "order " << static_cast<int>(order) << ", accuracy " << accuracy
                           << ", reversed " << (some == &back);
        const Likelihood got =
            log_likelihood(some->points, some->values, kParameters, Mean::linear, options);
        const double unknown = got.certificate ? got.error().log_likelihood() : 0;
        EXPECT_EQ(got.certificate.has_value(), accuracy > 0) << label;
        EXPECT_NEAR(got.log_likelihood, static_cast<double>(oracle.log_likelihood), unknown + 1e-8)
            << label;
        for (std::size_t k = 0; k < 5; ++k) {
          const auto beta = static_cast<double>(oracle.beta[k]);
          EXPECT_NEAR(got.mean_coefficients[k], beta, 1e-8 * std::fabs(beta)) << label << ' ' << k;
        }
        const Prediction predicted =
            predict({kParameters, Mean::linear, {}, some->points, some->values}, targets, options);
        const double slack = predicted.certificate ? predicted.certificate->variance_error : 0;
        for (std::size_t t = 0; t < targets.x.size(); ++t) {
          const auto [expected, variance] = oracle.predict(targets, t);
          EXPECT_NEAR(predicted.mean[t], static_cast<double>(expected), 1e-8) << label << ' ' << t;
          EXPECT_NEAR(std::pow(predicted.process_standard_error[t], 2),
                      static_cast<double>(variance), 2 * slack + 1e-8)
              << label << ' ' << t;
        }
      }
    }
  }
}

TEST(Covariates, StreamedTargetsKeepTheirs) {
  const SimulatedData data = data_with_covariates(40, 2);
  const Points targets = with_covariates(65, 2, 81);
  const Model model{kParameters, Mean::constant, {}, data.points, data.values};
  CovarianceOptions options = host_options();
  options.tile = 16;
  const std::vector<double> expected = predict(model, targets, options).mean;
  for (const std::int64_t portion : {1, 7, 13}) {
    std::int64_t next = 0;
    std::vector<double> got;
    Points seen;
    const auto source = [&](std::int64_t most) {
      const std::int64_t count = std::min({most, portion, targets.size() - next});
      next += count;
      return rows_of(targets, next - count, count);
    };
    const auto sink = [&](const Points& at, const Prediction& part) {
      append(seen, at);
      got.insert(got.end(), part.mean.begin(), part.mean.end());
    };
    EXPECT_EQ(predict(model, source, sink, options).targets, 65);
    EXPECT_TRUE(test::same_bits(got, expected)) << portion;
    EXPECT_EQ(seen.covariates, targets.covariates);
  }
}

TEST(Covariates, CrossValidationIsThePredictionFromTheOthers) {
  const SimulatedData data = data_with_covariates(37, 2);
  const std::int64_t n = data.points.size();
  const auto predicted_without = [&](auto&& left_out, std::size_t i) {
    std::vector<std::int64_t> rows;
    std::vector<double> values;
    for (std::int64_t k = 0; k < n; ++k) {
      if (left_out(static_cast<std::size_t>(k))) continue;
      rows.push_back(k);
      values.push_back(data.values[static_cast<std::size_t>(k)]);
    }
    return DenseOracle(rows_of(data.points, rows), values, kParameters, Mean::constant)
        .predict(data.points, i);
  };
  for (const double accuracy : {0.0, 1e-5}) {
    CovarianceOptions options = host_options();
    options.tile = 16;
    options.mixed.accuracy = accuracy;
    const CrossValidation one =
        leave_one_out(data.points, data.values, kParameters, Mean::constant, options);
    EXPECT_EQ(one.certificate.has_value(), accuracy > 0);
    for (std::size_t i = 0; i < data.values.size(); ++i) {
      const auto [mean, variance] = predicted_without([i](std::size_t k) { return k == i; }, i);
      EXPECT_NEAR(one.mean[i], static_cast<double>(mean), accuracy > 0 ? 1e-3 : 1e-9) << i;
      EXPECT_NEAR(one.standard_error[i], static_cast<double>(std::sqrt(variance + 0.2L)),
                  accuracy > 0 ? 1e-3 : 1e-9)
          << i;
    }
  }
  CrossValidationOptions folds{host_options()};
  folds.folds = 5;
  const CrossValidation some =
      cross_validate(data.points, data.values, kParameters, Mean::constant, folds);
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    const auto [mean, variance] =
        predicted_without([&](std::size_t k) { return some.fold[k] == some.fold[i]; }, i);
    EXPECT_NEAR(some.mean[i], static_cast<double>(mean), 1e-9) << i;
    EXPECT_NEAR(some.standard_error[i], static_cast<double>(std::sqrt(variance + 0.2L)), 1e-9) << i;
  }
}

TEST(Covariates, WithoutARowThatAloneHasOne) {
  SimulatedData data = data_with_covariates(20, 0);
  data.points.covariates = {std::vector<double>(20, 0.0)};
  data.points.covariates[0][13] = 1;
  std::string message;
  EXPECT_EQ(kind_of_error(
                [&] {
                  (void)leave_one_out(data.points, data.values, kParameters, Mean::constant,
                                      host_options());
                },
                &message),
            ErrorKind::numerical);
  EXPECT_NE(message.find("without row 13"), std::string::npos) << message;
}

TEST(Covariates, SimulationHasTheMean) {
  const Points points = with_covariates(33, 2, 82);
  Points bare = points;
  bare.covariates = {};
  SimulateOptions options{host_options()};
  options.realizations = 2;
  const std::vector<double> centred = simulate(bare, kParameters, {}, options).values;
  const std::vector<double> constant{3, 0.5, -7};
  const std::vector<double> linear{3, 2, -1, 0.5, -7};
  for (const std::vector<double>& c : {constant, linear}) {
    const std::vector<double> got = simulate(points, kParameters, c, options).values;
    for (std::size_t k = 0; k < got.size(); ++k) {
      const std::size_t i = k % 33;
      double mean = 3 + 0.5 * points.covariates[0][i] - 7 * points.covariates[1][i];
      if (c.size() == 5) mean += 2 * points.x[i] - points.y[i];
      EXPECT_NEAR(got[k], centred[k] + mean, 1e-12) << k;
    }
  }
  for (const std::size_t count : {0U, 1U, 2U, 4U, 6U}) {
    const std::vector<double> bad(count, 1.0);
    EXPECT_EQ(kind_of_error([&] { (void)simulate(points, kParameters, bad, options); }),
              ErrorKind::misuse)
        << count;
  }
}

TEST(Covariates, ConditionalSimulationFollowsWhatTheyAddToTheObservations) {
  // Kriging with an estimated mean takes what is added to the values for what is added to the mean.
  for (const double nugget : {0.0, 0.2}) {
    SimulatedData data = data_with_covariates(30, 2);
    Points targets = with_covariates(8, 2, 83);
    append(targets, rows_of(data.points, 4, 2));  // observed, …
    targets.covariates[0].back() += 10;           // … one of them with another covariate
    MaternParameters p = kParameters;
    p.nugget = nugget;
    Model model{p, Mean::constant, {}, data.points, data.values};
    SimulateOptions options{host_options()};
    options.realizations = 3;
    const std::vector<double> before = conditional_simulate(model, targets, options).values;
    for (std::size_t i = 0; i < model.values.size(); ++i)
      model.values[i] += 5 + 3 * data.points.covariates[0][i];
    const std::vector<double> after = conditional_simulate(model, targets, options).values;
    for (std::size_t k = 0; k < after.size(); ++k)
      EXPECT_NEAR(after[k] - before[k], 5 + 3 * targets.covariates[0][k % 10], 1e-9) << k;
    if (nugget > 0) continue;
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(after[r * 10 + 8], model.values[4]);
      EXPECT_GT(std::fabs(after[r * 10 + 9] - model.values[5]), 1) << "another mean";
    }
  }
}

class CovariateFit : public testing::Test {
 protected:
  CovariateFit() {
    static_cast<CovarianceOptions&>(options) = host_options();
    options.smoothness = 0.8;
  }
  FitOptions options;
};

TEST_F(CovariateFit, OfTheCoordinatesIsThatOfALinearMean) {
  SimulatedData data = data_with_covariates(130, 0);
  options.mean = Mean::linear;
  const FitResult expected = fit(data.points, data.values, options);
  data.points.covariates = {data.points.x, data.points.y};
  options.mean = Mean::constant;
  const FitResult got = fit(data.points, data.values, options);
  EXPECT_NEAR(got.likelihood.log_likelihood, expected.likelihood.log_likelihood, 1e-6);
  EXPECT_NEAR(got.parameters.range, expected.parameters.range, 1e-3 * got.parameters.range);
}

TEST_F(CovariateFit, FindsTheCoefficients) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const SimulatedData data = data_with_covariates(300, 2);
  const FitResult got = fit(data.points, data.values, options);
  const DenseOracle oracle(data.points, data.values, got.parameters, Mean::constant);
  EXPECT_NEAR(got.likelihood.log_likelihood, static_cast<double>(oracle.log_likelihood), 1e-7);
  ASSERT_EQ(got.likelihood.mean_coefficients.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto beta = static_cast<double>(oracle.beta[k]);
    EXPECT_NEAR(got.likelihood.mean_coefficients[k], beta, 1e-7 * std::fabs(beta)) << k;
  }
  EXPECT_NEAR(got.likelihood.mean_coefficients[1], 0.2, 0.05);
}

TEST_F(CovariateFit, OneThatMarksAFewPointsMayBeMissingFromASample) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  // About a quarter of the points are in the first sample, so hardly all of these.
  options.smoothness = 0.5;
  const SimulatedData unmarked = data_with_covariates(450, 0);
  for (const std::size_t marked : {100U, 200U, 300U, 400U}) {
    if (test::kSanitized && marked % 200 == 0) continue;
    SimulatedData data = unmarked;
    data.points.covariates = {std::vector<double>(450, 0.0)};
    data.points.covariates[0][marked] = 1;
    data.values[marked] += 50;
    const FitResult got = fit(data.points, data.values, options);
    EXPECT_FALSE(got.stages.empty());
    EXPECT_NEAR(got.likelihood.mean_coefficients[1], 50, 4);
  }
}

TEST_F(CovariateFit, JournalsOfOtherCovariatesAreRefused) {
  const test::Scratch scratch;
  options.journal = scratch.path("j.txt");
  options.max_evaluations = 5;
  SimulatedData data = data_with_covariates(60, 1);
  const FitResult first = fit(data.points, data.values, options);
  const FitResult again = fit(data.points, data.values, options);
  EXPECT_EQ(again.likelihood.mean_coefficients, first.likelihood.mean_coefficients);
  std::string message;
  const auto kind = [&] {
    message.clear();
    return kind_of_error([&] { (void)fit(data.points, data.values, options); }, &message);
  };
  data.points.covariates[0][59] += 1;
  EXPECT_EQ(kind(), ErrorKind::input);
  EXPECT_NE(message.find("covariates 1"), std::string::npos) << message;
  data.points.covariates.clear();
  EXPECT_EQ(kind(), ErrorKind::input);
}

TEST(CovariatesThatAreBad, Data) {
  SimulatedData data = data_with_covariates(20, 2);
  std::string message;
  const auto expect = [&](ErrorKind kind, const std::string& words, Mean mean = Mean::constant) {
    message.clear();
    EXPECT_EQ(kind_of_error(
                  [&] {
                    (void)log_likelihood(data.points, data.values, kParameters, mean,
                                         host_options());
                  },
                  &message),
              kind)
        << words;
    EXPECT_NE(message.find(words), std::string::npos) << message;
    message.clear();
    FitOptions options{host_options()};
    options.mean = mean;
    EXPECT_EQ(kind_of_error([&] { (void)fit(data.points, data.values, options); }, &message), kind);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    for (const bool folds : {false, true}) {
      const auto validate = [&] {
        if (folds) {
          (void)cross_validate(data.points, data.values, kParameters, mean, {});
        } else {
          (void)leave_one_out(data.points, data.values, kParameters, mean);
        }
      };
      EXPECT_EQ(kind_of_error(validate), kind) << words;
    }
    const Model model{kParameters, mean, {}, data.points, data.values};
    EXPECT_EQ(kind_of_error([&] { (void)predict(model, data.points); }), kind) << words;
    EXPECT_EQ(kind_of_error([&] { (void)conditional_simulate(model, data.points); }), kind);
    data = data_with_covariates(20, 2);
  };
  for (const Mean mean : {Mean::sample, Mean::zero})
    expect(ErrorKind::misuse, "2 covariates, but the", mean);
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    data.points.covariates[1][17] = bad;
    expect(ErrorKind::input, "covariates[1][17]");
  }
  data.points.covariates[1].pop_back();
  expect(ErrorKind::misuse, "covariate 1 (counting from 0) has 19 values");
  data.points.covariates[0].clear();
  expect(ErrorKind::misuse, "covariate 0 (counting from 0) has 0 values");
  for (const double constant : {0.0, 0.1, -1e9 / 3}) {
    data.points.covariates[1].assign(20, constant);
    expect(ErrorKind::numerical, "3 coefficients of the mean");
  }
  data.points.covariates[1] = data.points.covariates[0];
  for (double& u : data.points.covariates[1]) u = 1e6 - 3 * u;
  expect(ErrorKind::numerical, "a covariate constant or a combination");
  data.points.covariates[1] = data.points.x;
  expect(ErrorKind::numerical, "5 coefficients of the mean", Mean::linear);
}

TEST(CovariatesThatAreBad, TargetsAndCoefficients) {
  const SimulatedData data = data_with_covariates(20, 2);
  Model model{kParameters, Mean::constant, {}, data.points, data.values};
  std::string message;
  for (const std::size_t count : {0U, 1U, 3U}) {
    const Points targets = with_covariates(3, count, 84);
    message.clear();
    EXPECT_EQ(kind_of_error([&] { (void)predict(model, targets, host_options()); }, &message),
              ErrorKind::misuse);
    EXPECT_NE(message.find("2 covariates and the targets " + std::to_string(count)),
              std::string::npos)
        << message;
    EXPECT_EQ(kind_of_error([&] { (void)conditional_simulate(model, targets); }),
              ErrorKind::misuse);
    const auto source = [&](std::int64_t) { return targets; };
    EXPECT_EQ(kind_of_error([&] {
                (void)predict(
                    model, source, [](const Points&, const Prediction&) {}, host_options());
              }),
              ErrorKind::misuse);
  }
  const Points targets = with_covariates(3, 2, 84);
  for (const std::size_t count : {1U, 2U, 5U}) {
    model.mean_coefficients.assign(count, 1.0);
    EXPECT_EQ(kind_of_error([&] { (void)predict(model, targets, host_options()); }),
              ErrorKind::misuse);
  }
  // Those that were estimated, given, predict the same.
  model.mean_coefficients = {};
  const std::vector<double> expected = predict(model, targets, host_options()).mean;
  model.mean_coefficients =
      log_likelihood(data.points, data.values, kParameters, Mean::constant, host_options())
          .mean_coefficients;
  const std::vector<double> got = predict(model, targets, host_options()).mean;
  for (std::size_t t = 0; t < 3; ++t) EXPECT_NEAR(got[t], expected[t], 1e-11);
}

TEST(Covariates, HaveNoPartInWhatIsOnePlace) {
  SimulatedData data = data_with_covariates(20, 1);
  data.points.x[7] = data.points.x[3];
  data.points.y[7] = data.points.y[3];
  const auto pair = find_coincident_points(data.points);
  ASSERT_TRUE(pair);
  EXPECT_EQ(*pair, (std::pair<std::int64_t, std::int64_t>{3, 7}));
  EXPECT_EQ(kind_of_error([&] {
              (void)log_likelihood(data.points, data.values, {1, 0.1, 0.5, 0}, Mean::constant);
            }),
            ErrorKind::numerical);
}

}  // namespace
}  // namespace strata
