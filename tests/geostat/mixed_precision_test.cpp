// Gaussian processes with covariances in several precisions: against dense FP64 by LAPACK and
// formulas in long double, within what their certificates say; and orders of points, which change
// nothing but rounding.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cholesky/covariance_solver.hpp"
#include "geostat/fit_precision.hpp"
#include "geostat/point_order.hpp"
#include "tests/geostat/dense_oracle.hpp"
#include "tests/geostat/simulated_data.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/gaussian.hpp"

namespace strata {
namespace {

CovarianceOptions mixed_options(double accuracy, std::int64_t tile) {
  CovarianceOptions options = host_options();
  options.tile = tile;
  options.mixed.accuracy = accuracy;
  return options;
}

/// What is less than FP64 in a run.
std::int64_t coarse_tiles(const RunReport& run) {
  const auto& tiles = run.mixed.value().tiles;
  return tiles[1] + tiles[2] + tiles[3] + tiles[4];
}

/// Random points, which are in no order, with values of an exponential covariance.
struct Field {
  Field(std::int64_t n, double range, std::uint64_t seed)
      : points(random_points(static_cast<std::size_t>(n), seed)), parameters{1, range, 0.5, 0} {
    const auto at = test::make_matrix<double>(n, 2, [&](auto i, auto j) {
      return (j == 0 ? points.x : points.y)[static_cast<std::size_t>(i)];
    });
    const test::Matrix<double> l = test::dense_factor(test::exponential_covariance(at, range));
    for (std::int64_t i = 0; i < n; ++i) {
      long double sum = 0;
      for (std::int64_t k = 0; k <= i; ++k)
        sum += static_cast<long double>(l(i, k)) *
               random_normal(seed + 1, static_cast<std::uint64_t>(k));
      values.push_back(static_cast<double>(sum));
      log_determinant += 2 * std::log(static_cast<long double>(l(i, i)));
    }
    std::vector<long double> white;
    for (std::int64_t i = 0; i < n; ++i) {
      long double rest = values[static_cast<std::size_t>(i)];
      for (std::int64_t k = 0; k < i; ++k) rest -= l(i, k) * white[static_cast<std::size_t>(k)];
      white.push_back(rest / l(i, i));
      quadratic_form += white.back() * white.back();
    }
    log_likelihood = -0.5L * (static_cast<long double>(n) * std::log(2 * std::acos(-1.0L)) +
                              log_determinant + quadratic_form);
  }

  Points points;
  MaternParameters parameters;
  std::vector<double> values;
  long double log_determinant = 0;
  long double quadratic_form = 0;
  long double log_likelihood = 0;
};

TEST(MixedLikelihood, IsThatOfDenseFp64WithinItsCertificate) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kPoints = 1500;
  for (const double range : {0.02627, 0.078809, 0.210158}) {
    const Field field(kPoints, range, 81);
    for (const double accuracy : {1e-5, 1e-8}) {
      const auto label = testing::Message() << "range " << range << ", accuracy " << accuracy;
      const Likelihood got = log_likelihood(field.points, field.values, field.parameters,
                                            Mean::zero, mixed_options(accuracy, 96));
      ASSERT_TRUE(got.factor.ok) << label;
      EXPECT_GT(coarse_tiles(got.run), 0) << label;
      const LikelihoodCertificate& known = got.certificate.value();
      EXPECT_LE(known.backward_error, 40 * 0x1p-53) << label;
      EXPECT_EQ(known.probes, 32);
      // What the oracle itself may be off by, for its factor is one of doubles, is as much again.
      const LikelihoodError error = got.error();
      const LikelihoodError rounding = got.rounding;
      EXPECT_GT(rounding.log_likelihood(), 0) << label;
      const auto quadratic_error = static_cast<double>(got.quadratic_form - field.quadratic_form);
      EXPECT_LE(std::abs(quadratic_error), error.quadratic_form + rounding.quadratic_form) << label;
      const auto determinant_error =
          static_cast<double>(got.factor.log_determinant - field.log_determinant);
      EXPECT_LE(std::abs(determinant_error), error.log_determinant + rounding.log_determinant)
          << label;
      EXPECT_LE(std::abs(static_cast<double>(got.log_likelihood - field.log_likelihood)),
                error.log_likelihood() + rounding.log_likelihood())
          << label;
      // Refined, the likelihood is wrong by no more than the factor's log-determinant.
      const double of_factor =
          determinant_error - (known.corrected ? known.log_determinant_difference : 0);
      EXPECT_LE(std::abs(static_cast<double>(got.log_likelihood - field.log_likelihood)),
                std::abs(of_factor / 2) + 1e-6)
          << label;
      EXPECT_EQ(error.log_determinant, rounding.log_determinant + known.log_determinant_remainder);
      EXPECT_EQ(error.quadratic_form, rounding.quadratic_form + known.quadratic_form_remainder);
    }
  }
}

TEST(MixedLikelihood, HasTheMeansOfTheDenseOracle) {
  const Points points = random_points(300, 83);
  const MaternParameters p{1.7, 0.1, 0.8, 0.01};
  std::vector<double> values = simulate_field(points, p, 84);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 1e3 - 3 * points.y[i];
  for (const Mean mean : kMeans) {
    const DenseOracle oracle(points, values, p, mean);
    const Likelihood got = log_likelihood(points, values, p, mean, mixed_options(1e-4, 32));
    ASSERT_TRUE(got.certificate.has_value());
    EXPECT_GT(coarse_tiles(got.run), 0);
    ASSERT_EQ(got.mean_coefficients.size(), oracle.beta.size());
    for (std::size_t k = 0; k < oracle.beta.size(); ++k)
      EXPECT_NEAR(got.mean_coefficients[k], static_cast<double>(oracle.beta[k]), 1e-9) << k;
    EXPECT_NEAR(got.quadratic_form, static_cast<double>(oracle.quadratic_form),
                1e-9 * got.quadratic_form);
    EXPECT_NEAR(got.log_likelihood, static_cast<double>(oracle.log_likelihood),
                got.error().log_likelihood() + 1e-8);
  }
}

TEST(MixedLikelihood, HasNoCorrectionWithoutProbes) {
  const Field field(400, 0.1, 85);
  CovarianceOptions options = mixed_options(1e-5, 50);
  const auto evaluate = [&] {
    return log_likelihood(field.points, field.values, field.parameters, Mean::zero, options);
  };
  const Likelihood probed = evaluate();
  options.probing.probes = 0;
  const Likelihood plain = evaluate();
  const LikelihoodCertificate& known = plain.certificate.value();
  EXPECT_FALSE(known.corrected);
  EXPECT_TRUE(std::isnan(known.log_determinant_difference));
  EXPECT_TRUE(std::isnan(known.log_determinant_remainder));
  EXPECT_TRUE(std::isnan(plain.error().log_likelihood()));
  EXPECT_FALSE(std::isnan(plain.rounding.log_likelihood()));
  EXPECT_TRUE(std::isnan(known.divergence));
  EXPECT_EQ(known.probes, 0);
  const LikelihoodCertificate& more = probed.certificate.value();
  EXPECT_EQ(plain.factor.log_determinant + (more.corrected ? more.log_determinant_difference : 0),
            probed.factor.log_determinant);
  EXPECT_EQ(plain.quadratic_form, probed.quadratic_form);
  options.probing.probes = 32;
  options.mixed.allowed = {true, false, false, false};
  options.mixed.keep_all = true;
  const Likelihood all_fp64 = evaluate();  // nothing is left to be corrected
  EXPECT_LE(std::abs(all_fp64.certificate.value().log_determinant_difference), 1e-9);
}

TEST(MixedLikelihood, IsCorrectedWhereEnoughIsKnown) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Field field(300, 0.03, 85);
  CovarianceOptions options = mixed_options(1e-3, 18);
  options.mixed.guard = false;
  options.mixed.rule = PrecisionRule::paper;  // whose error is the larger one here
  options.probing.probes = 1000;
  const Likelihood got =
      log_likelihood(field.points, field.values, field.parameters, Mean::zero, options);
  const LikelihoodCertificate& known = got.certificate.value();
  ASSERT_TRUE(known.corrected);
  const auto error = static_cast<double>(got.factor.log_determinant - field.log_determinant);
  EXPECT_LE(std::abs(error), got.error().log_determinant);
  EXPECT_LE(std::abs(error), std::abs(error - known.log_determinant_difference));
  EXPECT_LE(std::abs(static_cast<double>(got.log_likelihood - field.log_likelihood)),
            got.error().log_likelihood());
}

TEST(MixedLikelihood, RefusesWhatIsNoAccuracyOrNoNumberOfProbes) {
  const Points points = random_points(20, 86);
  const std::vector<double> values(20, 1.5);
  CovarianceOptions options = mixed_options(1e-2, 0);
  const auto evaluate = [&] {
    (void)log_likelihood(points, values, {1, 0.1, 0.5, 0.1}, Mean::zero, options);
  };
  std::string message;
  EXPECT_EQ(kind_of_error(evaluate, &message), ErrorKind::misuse);
  EXPECT_NE(message.find("0.01"), std::string::npos) << message;
  options.mixed.accuracy = 1e-13;
  EXPECT_EQ(kind_of_error(evaluate), ErrorKind::misuse);
  options.mixed.accuracy = 1e-5;
  options.probing.probes = 1;
  EXPECT_EQ(kind_of_error(evaluate), ErrorKind::misuse);
  options.probing.probes = -2;
  EXPECT_EQ(kind_of_error(evaluate), ErrorKind::misuse);
}

TEST(MixedPredict, HasTheMeansOfTheDenseOracleAndErrorsWithinItsCertificate) {
  Points targets = random_points(37, 87);
  targets.x.push_back(40);  // far away: the mean alone
  targets.y.push_back(-7);
  Model model;
  model.parameters = {1.7, 0.1, 0.8, 0.02};
  model.points = random_points(300, 88);
  model.values = simulate_field(model.points, model.parameters, 89);
  for (std::size_t i = 0; i < model.values.size(); ++i)
    model.values[i] += 4 - 3 * model.points.y[i];
  for (const Mean mean : kMeans) {
    model.mean = mean;
    model.mean_coefficients.clear();
    const DenseOracle oracle(model.points, model.values, model.parameters, mean);
    for (const bool given : {false, true}) {
      if (given) model.mean_coefficients.assign(oracle.beta.begin(), oracle.beta.end());
      const Prediction got = predict(model, targets, mixed_options(1e-4, 32));
      EXPECT_GT(coarse_tiles(got.run), 0);
      const PredictionCertificate& known = got.certificate.value();
      EXPECT_LT(known.variance_error, 0.05);
      EXPECT_GT(known.variance_error, 0);
      EXPECT_LT(known.mean_error, 1e-9);
      for (std::size_t t = 0; t < targets.x.size(); ++t) {
        const auto [expected, variance] = oracle.predict(targets, t);
        EXPECT_NEAR(got.mean[t], static_cast<double>(expected), known.mean_error) << t;
        const double deviation = got.process_standard_error[t];
        EXPECT_NEAR(deviation * deviation, static_cast<double>(variance), known.variance_error)
            << t;
      }
    }
  }
}

TEST(MixedPredict, OfAStreamIsTheSame) {
  const Field field(300, 0.1, 90);
  const Model model{field.parameters, Mean::constant, {}, field.points, field.values};
  const Points targets = random_points(50, 91);
  const Prediction all = predict(model, targets, mixed_options(1e-4, 32));
  std::int64_t next = 0;
  std::vector<double> mean;
  const StreamedPrediction got = predict(
      model,
      [&](std::int64_t) {
        Points some;
        for (const std::int64_t end = std::min<std::int64_t>(next + 7, 50); next < end; ++next) {
          some.x.push_back(targets.x[static_cast<std::size_t>(next)]);
          some.y.push_back(targets.y[static_cast<std::size_t>(next)]);
        }
        return some;
      },
      [&](const Points&, const Prediction& part) {
        mean.insert(mean.end(), part.mean.begin(), part.mean.end());
      },
      mixed_options(1e-4, 32));
  EXPECT_TRUE(test::same_bits(mean, all.mean));
  EXPECT_EQ(got.certificate.value().variance_error, all.certificate.value().variance_error);
}

TEST(MixedLeaveOneOut, IsThatOfFp64WithinItsCertificate) {
  const Points points = random_points(250, 92);
  const MaternParameters p{1.7, 0.1, 0.8, 0.02};
  const std::vector<double> values = simulate_field(points, p, 93);
  for (const Mean mean : kMeans) {
    const CrossValidation exact = leave_one_out(points, values, p, mean, host_options());
    const CrossValidation got = leave_one_out(points, values, p, mean, mixed_options(1e-4, 32));
    EXPECT_FALSE(exact.certificate.has_value());
    const double relative = got.certificate.value().variance_error;
    EXPECT_LT(relative, 0.05);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(values[i] - exact.mean[i]);
      EXPECT_NEAR(got.mean[i], exact.mean[i], 2 * relative * error + 1e-9) << i;
      // FP64 rounds, too.
      EXPECT_NEAR(got.mean[i], exact.mean[i], 1.01 * got.certificate->mean_error) << i;
      EXPECT_NEAR(got.standard_error[i], exact.standard_error[i],
                  relative * exact.standard_error[i])
          << i;
    }
  }
  CrossValidationOptions folds{host_options()};
  folds.folds = 5;
  const CrossValidation exact = cross_validate(points, values, p, Mean::constant, folds);
  static_cast<CovarianceOptions&>(folds) = mixed_options(1e-4, 32);
  const CrossValidation got = cross_validate(points, values, p, Mean::constant, folds);
  ASSERT_TRUE(got.certificate.has_value());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(got.mean[i], exact.mean[i], 1e-9);
}

TEST(MixedSimulate, HonoursTheDataAndItsKriging) {
  const Points points = random_points(200, 94);
  const MaternParameters p{1.7, 0.1, 0.8, 0};
  const Model model{p, Mean::constant, {}, points, simulate_field(points, p, 95)};
  Points targets = random_points(5, 96);
  targets.x.push_back(points.x[3]);
  targets.y.push_back(points.y[3]);
  SimulateOptions options{mixed_options(1e-5, 32)};
  options.realizations = 400;
  const Simulation got = conditional_simulate(model, targets, options);
  EXPECT_GT(coarse_tiles(got.run), 0);
  const Prediction known = predict(model, targets, host_options());
  for (std::size_t t = 0; t < 6; ++t) {
    double sum = 0;
    for (std::size_t r = 0; r < 400; ++r) sum += got.values[r * 6 + t];
    // Five standard deviations of a mean of 400.
    EXPECT_NEAR(sum / 400, known.mean[t], 5 * known.process_standard_error[t] / 20 + 1e-9) << t;
  }
}

// ---- orders of points

class Orders : public ::testing::TestWithParam<PointOrder> {
 protected:
  [[nodiscard]] static CovarianceOptions ordered() {
    CovarianceOptions options = host_options();
    options.tile = 24;
    options.order = GetParam();
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(All, Orders,
                         ::testing::Values(PointOrder::hilbert, PointOrder::kd, PointOrder::coarse),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(Orders, ChangeNothingButRounding) {
  const Points points = random_points(101, 97);
  const MaternParameters p{1.7, 0.15, 0.8, 0.1};
  const std::vector<double> values = simulate_field(points, p, 98);
  CovarianceOptions given = host_options();
  given.tile = 24;
  const Points targets = random_points(9, 99);
  for (const Mean mean : kMeans) {
    const Likelihood a = log_likelihood(points, values, p, mean, given);
    const Likelihood b = log_likelihood(points, values, p, mean, ordered());
    EXPECT_FALSE(b.certificate.has_value());
    EXPECT_NEAR(a.log_likelihood, b.log_likelihood, 1e-10);
    ASSERT_EQ(a.mean_coefficients.size(), b.mean_coefficients.size());
    for (std::size_t k = 0; k < a.mean_coefficients.size(); ++k)
      EXPECT_NEAR(a.mean_coefficients[k], b.mean_coefficients[k], 1e-11);
    const Model model{p, mean, {}, points, values};
    const Prediction c = predict(model, targets, given);
    const Prediction d = predict(model, targets, ordered());
    const CrossValidation e = leave_one_out(points, values, p, mean, given);
    const CrossValidation f = leave_one_out(points, values, p, mean, ordered());
    for (std::size_t t = 0; t < 9; ++t) {
      EXPECT_NEAR(c.mean[t], d.mean[t], 1e-11);
      EXPECT_NEAR(c.standard_error[t], d.standard_error[t], 1e-11);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(e.mean[i], f.mean[i], 1e-10) << i;
      EXPECT_NEAR(e.standard_error[i], f.standard_error[i], 1e-10) << i;
    }
  }
}

TEST_P(Orders, OfASimulationAreUndone) {
  const std::int64_t n = 101;
  const Points points = random_points(101, 97);
  const MaternParameters p{1.7, 0.15, 0.8, 0.1};
  SimulateOptions options{ordered()};
  options.realizations = 2;
  options.seed = 7;
  const Simulation got = simulate(points, p, {}, options);
  const auto at = test::make_matrix<double>(n, 2, [&](auto i, auto j) {
    return (j == 0 ? points.x : points.y)[static_cast<std::size_t>(i)];
  });
  const std::vector<std::int64_t> order = order_points(at.view(), GetParam(), 24);
  Points sorted;
  for (const std::int64_t row : order) {
    sorted.x.push_back(points.x[static_cast<std::size_t>(row)]);
    sorted.y.push_back(points.y[static_cast<std::size_t>(row)]);
  }
  const DenseOracle oracle(sorted, std::vector<double>(101, 0.0), p, Mean::zero);
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t k = 0; k < 101; ++k) {
      Real sum = 0;
      for (std::size_t i = 0; i <= k; ++i)
        sum += oracle.factor[k][i] * random_normal(7, r * 101 + i);
      EXPECT_NEAR(got.values[r * 101 + static_cast<std::size_t>(order[k])],
                  static_cast<double>(sum), 1e-11)
          << k;
    }
  }
}

TEST(MixedLikelihood, HasTimesHeightsAndTheSphere) {
  Points points = random_points(260, 100);
  for (std::size_t i = 0; i < 260; ++i) {
    points.z.push_back(0.3 * random_uniform(101, i));
    points.t.push_back(std::floor(4 * random_uniform(102, i)));
  }
  MaternParameters p{1.2, 0.1, 0.8, 0.05};
  p.separation.time = TimeParameters{0.5, 0.9, 0.4};
  MaternParameters sphere{1.2, 800, 0.5, 0.05};
  sphere.separation.distance = Distance::great_circle;
  Points places = random_points(260, 103);
  for (double& x : places.x) x = 360 * x - 180;
  for (double& y : places.y) y = 160 * y - 80;
  std::vector<double> values;
  for (std::size_t i = 0; i < 260; ++i) values.push_back(random_normal(104, i));
  for (const auto& [at, parameters] : {std::pair{points, p}, {places, sphere}}) {
    const Likelihood exact = log_likelihood(at, values, parameters, Mean::constant, host_options());
    const Likelihood got =
        log_likelihood(at, values, parameters, Mean::constant, mixed_options(1e-5, 32));
    EXPECT_GT(coarse_tiles(got.run), 0);
    EXPECT_NEAR(got.log_likelihood, exact.log_likelihood,
                got.error().log_likelihood() + exact.error().log_likelihood());
  }
}

// ---- divergence

TEST(PrecisionDivergence, IsThatOfTheTwoFactorsByLapack) {
  constexpr std::int64_t kPoints = 400;
  constexpr std::int64_t kTile = 40;
  const Points points = random_points(kPoints, 105);
  const auto at = test::make_matrix<double>(kPoints, 2, [&](auto i, auto j) {
    return (j == 0 ? points.x : points.y)[static_cast<std::size_t>(i)];
  });
  const std::vector<std::int64_t> order = order_points(at.view(), PointOrder::kd, kTile);
  const auto sorted = test::make_matrix<double>(
      kPoints, 2, [&](auto i, auto j) { return at(order[static_cast<std::size_t>(i)], j); });
  for (const double accuracy : {1e-4, 1e-6}) {
    const CovarianceOptions options = mixed_options(accuracy, kTile);
    CovarianceSolver solver(sorted.view(), options);
    ASSERT_TRUE(solver.factor({1, 0.1, 0.5, 0, true}).ok);
    test::Matrix<double> m(kPoints, kPoints);
    solver.copy_lower(0, m.view());
    const auto expected =
        test::factor_error(test::dense_factor(test::exponential_covariance(sorted, 0.1)), m);
    const PrecisionDivergence got = precision_divergence(points, {1, 0.1, 0.5, 0}, options);
    EXPECT_TRUE(got.exact);
    ASSERT_TRUE(got.factor.ok);
    EXPECT_GT(coarse_tiles(got.run), 0);
    EXPECT_NEAR(got.divergence, expected.kl, 1e-6 * expected.kl);
    EXPECT_NEAR(got.likelihood_difference_at_zero(), std::abs(expected.half_log_determinant),
                1e-5 * std::abs(expected.half_log_determinant) + 1e-12);
    const PrecisionDivergence estimate =
        precision_divergence(points, {1, 0.1, 0.5, 0}, options, DivergenceMethod::estimate);
    EXPECT_FALSE(estimate.exact);
    EXPECT_EQ(estimate.probes, 32);
    // Terms are never negative, so their spread is of the order of their mean: four deviations.
    EXPECT_NEAR(estimate.divergence, got.divergence, 4 * estimate.divergence_error);
    EXPECT_NEAR(estimate.log_determinant_difference, got.log_determinant_difference,
                estimate.log_determinant_error);
  }
}

TEST(PrecisionDivergence, NeedsLowerPrecisionsAndACovariance) {
  const Points points = random_points(60, 106);
  EXPECT_EQ(kind_of_error([&] {
              (void)precision_divergence(points, {1, 0.1, 0.5, 0.1}, host_options());
            }),
            ErrorKind::misuse);
  // Much smoother than FP64 can tell from singular.
  const PrecisionDivergence got =
      precision_divergence(points, {1, 50, 20, 0}, mixed_options(1e-6, 16));
  EXPECT_FALSE(got.factor.ok);
  EXPECT_TRUE(std::isnan(got.divergence));
}

// ---- fit

TEST(MixedFit, EndsInFp64WhereFp64Ends) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Points points = random_points(test::kSanitized ? 300 : 600, 107);
  const MaternParameters truth{1.5, 0.1, 0.5, 0.1};
  SimulateOptions simulation{host_options()};
  const std::vector<double> values = simulate(points, truth, {}, simulation).values;
  FitOptions options{host_options()};
  options.smoothness = 0.5;
  const FitResult exact = fit(points, values, options);
  static_cast<CovarianceOptions&>(options) = mixed_options(1e-5, 48);
  const FitResult got = fit(points, values, options);
  EXPECT_FALSE(exact.mixed.has_value());
  ASSERT_TRUE(got.mixed.has_value());
  EXPECT_GT(got.mixed->accuracy, 0);
  EXPECT_TRUE(got.converged);
  EXPECT_FALSE(got.likelihood.certificate.has_value());
  EXPECT_FALSE(got.likelihood.run.mixed.has_value());
  // The likelihood is flat there: a hundredth of it is a seventh of a standard error.
  EXPECT_GE(got.likelihood.log_likelihood, exact.likelihood.log_likelihood - 0.01);
  EXPECT_NEAR(got.parameters.range, exact.parameters.range, 0.2 * exact.standard_errors.range);
  EXPECT_NEAR(got.standard_errors.range, exact.standard_errors.range,
              0.1 * exact.standard_errors.range);
  const Likelihood there =
      log_likelihood(points, values, got.parameters, Mean::constant, host_options());
  EXPECT_NEAR(got.likelihood.log_likelihood, there.log_likelihood, 1e-8);
}

TEST(MixedFit, NoiseThatHidesTheMaximumIsSeenWhateverIsKnownOfFp64) {
  const CovarianceOptions options =
      mixed_options(1e-6, 0);  // 500 points: 2.5e-4 is taken for granted
  for (const double exact : {0.0, 1e-6, std::nan("")}) {
    EXPECT_TRUE(hides_the_maximum(0.02, exact, options, 500)) << exact;
    EXPECT_FALSE(hides_the_maximum(2e-4, exact, options, 500)) << exact;
  }
  EXPECT_FALSE(hides_the_maximum(0.02, 0.015, options, 500)) << "FP64 is no better";
}

// A function without noise, on a long curved ridge that rises by 1.4: at 1e-6 likelihoods are off
// by hundredths, and the search saw no way up from where it was.
TEST(MixedFit, GoesOnInFp64WhereRoundingHidesTheMaximum) {
  if (test::kSanitized) GTEST_SKIP() << "hundreds of evaluations";
  const Points points = random_points(420, 91);
  std::vector<double> values;
  for (std::size_t i = 0; i < points.x.size(); ++i)
    values.push_back(std::sin(3 * points.x[i]) * std::cos(2 * points.y[i]));
  FitOptions options{host_options()};
  options.smoothness = 1.5;
  options.nugget = 1e-9;
  options.standard_errors = StandardErrorMethod::none;
  options.tile = 64;
  const FitResult exact = fit(points, values, options);
  ASSERT_TRUE(exact.converged);
  options.mixed.accuracy = 1e-6;
  const FitResult got = fit(points, values, options);  // so long a ridge may exceed its limit
  EXPECT_GE(got.likelihood.log_likelihood, exact.likelihood.log_likelihood - 0.05);
  ASSERT_TRUE(got.mixed.has_value());
  EXPECT_EQ(got.mixed->accuracy, 0);
  EXPECT_NE(got.mixed->note, "");
  EXPECT_EQ(static_cast<std::size_t>(got.evaluations), got.path.size());
}

TEST(MixedFit, SearchesNoCoarserThanAnEstimateBears) {
  // At 1e-3 a log-likelihood is off by up to n·1e-3/2, two thirds of a standard error of every
  // estimate here; and a search that ends within that has not found the maximum.
  const std::int64_t n = test::kSanitized ? 300 : 700;
  const Points points = random_points(static_cast<std::size_t>(n), 108);
  SimulateOptions simulation{host_options()};
  const std::vector<double> values = simulate(points, {1.5, 0.1, 0.5, 0}, {}, simulation).values;
  FitOptions options{host_options()};
  options.smoothness = 0.5;
  options.nugget = 0;
  options.standard_errors = StandardErrorMethod::none;
  const FitResult exact = fit(points, values, options);
  static_cast<CovarianceOptions&>(options) = mixed_options(1e-3, 48);
  const FitResult got = fit(points, values, options);
  ASSERT_TRUE(got.mixed.has_value());
  EXPECT_EQ(got.mixed->accuracy_asked, 1e-3);
  EXPECT_GT(got.mixed->accuracy, 0);
  EXPECT_LE(got.mixed->accuracy, 0.04 / static_cast<double>(n));
  EXPECT_NE(got.mixed->note, "");
  EXPECT_GE(got.likelihood.log_likelihood, exact.likelihood.log_likelihood - 0.01);
  EXPECT_LE(got.noise, 0.02);
  const Likelihood there =
      log_likelihood(points, values, got.parameters, Mean::constant, host_options());
  EXPECT_NEAR(got.likelihood.log_likelihood, there.log_likelihood, 1e-8);
}

}  // namespace
}  // namespace strata
