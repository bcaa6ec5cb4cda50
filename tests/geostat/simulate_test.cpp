// simulate: its covariance within bounds of sampling, its whitening, its bits; conditional
// simulation against the data, the kriging mean and its errors.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

SimulateOptions host_simulation(std::int64_t realizations, std::uint64_t seed = 3) {
  SimulateOptions options{host_options()};
  options.realizations = realizations;
  options.seed = seed;
  return options;
}

/// How far a normal deviate lies from 0 with probability `p` at most: exp(−t²/2) <= p / 2.
double deviations(double p) { return std::sqrt(2 * std::log(2 / p)); }

TEST(Simulate, IsTheFactorTimesTheRandomNumbersOfItsSeed) {
  const Points points = random_points(57, 51);
  const MaternParameters p{1.7, 0.15, 0.8, 0.1};
  const std::size_t n = points.x.size();
  const DenseOracle oracle(points, std::vector<double>(n, 0.0), p, Mean::zero);
  const std::vector<double> coefficients{3, -1, 2};
  const Simulation got = simulate(points, p, coefficients, host_simulation(3, 9));
  ASSERT_EQ(got.values.size(), 3 * n);
  for (std::size_t r = 0; r < 3; ++r) {
    // Whitened it is ε again, to n roundings times the condition of L, below √(n·(1.7 + 0.1)/0.1).
    Vector white;
    for (std::size_t i = 0; i < n; ++i) {
      Real value = got.values[r * n + i] - (3.0L - points.x[i] + 2.0L * points.y[i]);
      for (std::size_t k = 0; k < i; ++k) value -= oracle.factor[i][k] * white[k];
      white.push_back(value / oracle.factor[i][i]);
      EXPECT_NEAR(static_cast<double>(white.back()), random_normal(9, r * n + i),
                  57 * 32 * std::numeric_limits<double>::epsilon() * 10)
          << r << ", " << i;
    }
  }
  EXPECT_EQ(got.run.n, 57);
  EXPECT_GT(got.multiply.flops, 0);
}

TEST(Simulate, HasTheCovarianceOfItsModel) {
  // For R realizations with known mean 0, R·S/Σ is a sum of products of normals: var S_ij =
  // (Σ_ii·Σ_jj + Σ_ij²)/R. With 20·21/2 of them, none is further off than t standard deviations
  // with probability 1 − 210·p(t); t is that of p = 10⁻⁶, and a half more because the sum of R
  // products has tails that are a little longer than normal.
  const Points points = random_points(20, 52);
  const MaternParameters p{2.5, 0.3, 1.2, 0.2};
  constexpr std::int64_t kRealizations = 20000;
  const Simulation got = simulate(points, p, {}, host_simulation(kRealizations));
  const double t = 1.5 * deviations(1e-6 / 210);
  const auto at = [&](std::size_t i, std::int64_t r) {
    return got.values[static_cast<std::size_t>(r) * 20 + i];
  };
  const auto sigma = [&](std::size_t i, std::size_t j) {
    return static_cast<double>(oracle_covariance(p, points, i, points, j)) +
           (i == j ? p.nugget : 0);
  };
  for (std::size_t i = 0; i < 20; ++i) {
    double mean = 0;
    for (std::int64_t r = 0; r < kRealizations; ++r) mean += at(i, r) / kRealizations;
    EXPECT_LE(std::fabs(mean), t * std::sqrt(sigma(i, i) / kRealizations)) << i;
    for (std::size_t j = 0; j <= i; ++j) {
      double sample = 0;
      for (std::int64_t r = 0; r < kRealizations; ++r) sample += at(i, r) * at(j, r);
      sample /= kRealizations;
      const double deviation =
          std::sqrt((sigma(i, i) * sigma(j, j) + sigma(i, j) * sigma(i, j)) / kRealizations);
      EXPECT_NEAR(sample, sigma(i, j), t * deviation) << i << ", " << j;
    }
  }
}

TEST(Simulate, WithoutNoiseIsTheProcess) {
  const Points points = random_points(31, 53);
  SimulateOptions options = host_simulation(2);
  const Simulation plain = simulate(points, {1, 0.2, 0.5, 0}, {}, options);
  options.noise = false;
  EXPECT_TRUE(
      test::same_bits(simulate(points, {1, 0.2, 0.5, 0.4}, {}, options).values, plain.values));
}

TEST(Simulate, HasTheSameBitsForAnyBudgetPolicyAndNumberOfDevices) {
  const Points points = random_points(100, 54);
  const auto run = [&](const char* devices, std::int64_t tiles, Policy policy) {
    SimulateOptions options = host_simulation(21);
    options.run.devices = devices;
    options.tile = 16;
    options.run.device_memory_bytes = tiles * (16 * 16 * 8 + 256);
    options.run.policy = policy;
    const Simulation got = simulate(points, {1, 0.2, 0.8, 0.1}, {}, options);
    EXPECT_EQ(got.multiply.traffic, static_cast<const Traffic&>(got.multiply.planned_traffic));
    return got.values;
  };
  const std::vector<double> expected = run("host:1", 1000, Policy::opt);
  for (const char* devices : {"host:1", "host:2", "host:3"}) {
    for (const std::int64_t tiles : {4, 7, 1000}) {
      for (const Policy policy : {Policy::sync, Policy::v1, Policy::v3, Policy::opt}) {
        EXPECT_TRUE(test::same_bits(run(devices, tiles, policy), expected))
            << devices << ' ' << tiles << " tiles";
      }
    }
  }
}

TEST(Simulate, Refuses) {
  const Points points = random_points(5, 55);
  const auto kind = [&](const Points& at, const MaternParameters& p, std::vector<double> mean,
                        std::int64_t realizations = 1) {
    return kind_of_error(
        [&] { static_cast<void>(simulate(at, p, mean, host_simulation(realizations))); });
  };
  EXPECT_EQ(kind(points, {}, {}), std::nullopt);
  EXPECT_EQ(kind(points, {}, {}, 0), ErrorKind::misuse);
  EXPECT_EQ(kind(points, {}, {1, 2}), ErrorKind::misuse);
  EXPECT_EQ(kind(points, {}, {NAN}), ErrorKind::misuse);
  EXPECT_EQ(kind(points, {-1, 1, 1, 0}, {}), ErrorKind::misuse);
  EXPECT_EQ(kind({}, {}, {}), ErrorKind::misuse);
  EXPECT_EQ(kind({{1, 1}, {2, 2}}, {}, {}), ErrorKind::numerical);
  EXPECT_EQ(kind({{1, 1}, {2, 2}}, {1, 1, 0.5, 0.1}, {}), std::nullopt);
  EXPECT_EQ(kind(random_points(60, 56), {1, 1e3, 5, 0}, {}), ErrorKind::numerical);
}

// ---- given observations

Model observed(Mean mean, double nugget) {
  Model model;
  model.parameters = {1.3, 0.2, 0.9, nugget};
  model.mean = mean;
  model.points = random_points(23, 61);
  model.values = simulate_field(model.points, {1.3, 0.2, 0.9, 0.1}, 62);
  for (std::size_t i = 0; i < model.values.size(); ++i) model.values[i] += 5 + model.points.x[i];
  return model;
}

TEST(ConditionalSimulate, ReproducesTheDataWithoutNugget) {
  for (const Mean mean : {Mean::sample, Mean::zero, Mean::constant, Mean::linear}) {
    const Model model = observed(mean, 0);
    Points targets = random_points(4, 63);
    for (std::size_t i = 0; i < 23; i += 3) {
      targets.x.push_back(model.points.x[i]);
      targets.y.push_back(model.points.y[i]);
    }
    targets.x.push_back(targets.x[1]);  // a place that is asked for twice
    targets.y.push_back(targets.y[1]);
    const std::size_t m = targets.x.size();
    const Simulation got = conditional_simulate(model, targets, host_simulation(5));
    ASSERT_EQ(got.values.size(), 5 * m);
    for (std::size_t r = 0; r < 5; ++r) {
      for (std::size_t i = 0; i < 23; i += 3) {
        EXPECT_EQ(got.values[r * m + 4 + i / 3], model.values[i]) << r << ", " << i;
      }
      EXPECT_NE(got.values[r * m], got.values[(r + 1) % 5 * m]) << "another field";
      EXPECT_NEAR(got.values[r * m + m - 1], got.values[r * m + 1], 1e-12);
    }
  }
}

TEST(ConditionalSimulate, HasMeanAndVarianceOfThePrediction) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  // The mean of R values has the standard error σ/√R, their mean square deviation from a known mean
  // the standard error σ²·√(2/R); t as above, for all targets, means and variances.
  constexpr std::int64_t kRealizations = 4000;
  const Points targets = random_points(9, 64);
  for (const Mean mean : {Mean::sample, Mean::zero, Mean::constant, Mean::linear}) {
    for (const double nugget : {0.0, 0.3}) {
      for (const bool noise : {true, false}) {
        const Model model = observed(mean, nugget);
        SimulateOptions options = host_simulation(kRealizations, 8);
        options.noise = noise;
        const Simulation got = conditional_simulate(model, targets, options);
        const Prediction expected = predict(model, targets, host_options());
        const double t = deviations(1e-6 / (4 * 2 * 2 * 2 * 9));
        for (std::size_t i = 0; i < 9; ++i) {
          const double sigma =
              noise ? expected.standard_error[i] : expected.process_standard_error[i];
          double average = 0;
          double square = 0;
          for (std::int64_t r = 0; r < kRealizations; ++r) {
            const double error = got.values[static_cast<std::size_t>(r) * 9 + i] - expected.mean[i];
            average += error / kRealizations;
            square += error * error / kRealizations;
          }
          const std::string label = "mean " + std::to_string(static_cast<int>(mean)) + " nugget " +
                                    std::to_string(nugget) + " noise " + std::to_string(noise);
          EXPECT_LE(std::fabs(average), t * sigma / std::sqrt(kRealizations)) << label;
          EXPECT_NEAR(square, sigma * sigma, t * sigma * sigma * std::sqrt(2.0 / kRealizations))
              << label;
        }
      }
    }
  }
}

TEST(ConditionalSimulate, IsCorrelatedAsTheErrorOfThePredictionIs) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Model model = observed(Mean::zero, 0.2);
  const Points targets{{0.41, 0.43}, {0.52, 0.55}};
  constexpr std::int64_t kRealizations = 20000;
  SimulateOptions options = host_simulation(kRealizations, 12);
  options.noise = false;
  const Simulation got = conditional_simulate(model, targets, options);
  const DenseOracle oracle(model.points, model.values, model.parameters, Mean::zero);
  std::vector<Vector> c(2);
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t i = 0; i < 23; ++i)
      c[t].push_back(oracle_covariance(model.parameters, model.points, i, targets, t));
  }
  const auto expected = [&](std::size_t s, std::size_t t) {
    return static_cast<double>(oracle_covariance(model.parameters, targets, s, targets, t) -
                               oracle_dot(c[s], oracle_solve(oracle.factor, c[t])));
  };
  double product = 0;
  for (std::size_t r = 0; r < kRealizations; ++r) {
    product += (got.values[2 * r] - static_cast<double>(oracle.predict(targets, 0).first)) *
               (got.values[2 * r + 1] - static_cast<double>(oracle.predict(targets, 1).first));
  }
  const double deviation = std::sqrt(
      (expected(0, 0) * expected(1, 1) + expected(0, 1) * expected(0, 1)) / kRealizations);
  EXPECT_NEAR(product / kRealizations, expected(0, 1), deviations(1e-6) * deviation);
}

TEST(ConditionalSimulate, Refuses) {
  const Points targets = random_points(3, 65);
  Model model = observed(Mean::zero, 0);
  const auto kind = [&](const Points& at, std::int64_t realizations = 1) {
    return kind_of_error(
        [&] { static_cast<void>(conditional_simulate(model, at, host_simulation(realizations))); });
  };
  EXPECT_EQ(kind(targets), std::nullopt);
  EXPECT_EQ(kind({}), ErrorKind::misuse);
  EXPECT_EQ(kind(targets, 0), ErrorKind::misuse);
  EXPECT_EQ(kind({{NAN}, {0}}), ErrorKind::input);
  model.values.pop_back();
  EXPECT_EQ(kind(targets), ErrorKind::misuse);
}

}  // namespace
}  // namespace strata
