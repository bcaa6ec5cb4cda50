// predict against textbook formulas, and scores against numerical integration.

#include <gtest/gtest.h>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/geostat/simulated_data.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

Model example(Mean mean, double nugget) {
  Model model;
  model.parameters = {1.7, 0.15, 0.8, nugget};
  model.mean = mean;
  model.points = random_points(61, 11);
  model.values = simulate_field(model.points, {1.7, 0.15, 0.8, 0.2}, 12);
  for (std::size_t i = 0; i < model.values.size(); ++i) {
    model.values[i] += 4 - 3 * model.points.y[i];
  }
  return model;
}

/// What rounding is relative to: a mean is a sum of weighted values, and may cancel.
double largest_value(const Model& model) {
  double largest = 0;
  for (const double value : model.values) largest = std::max(largest, std::fabs(value));
  return largest;
}

TEST(Predict, AgreesWithTheDenseOracle) {
  Points targets = random_points(23, 13);
  targets.x.push_back(40);  // far away: the mean alone
  targets.y.push_back(-7);
  for (const Mean mean : kMeans) {
    for (const double nugget : {0.0, 0.2}) {
      const Model model = example(mean, nugget);
      const DenseOracle oracle(model.points, model.values, model.parameters, mean);
      for (const std::int64_t chunk : {0, 1, 7, 24, 1000}) {
        const Prediction got = predict(model, targets, host_options(), chunk);
        ASSERT_EQ(got.mean.size(), targets.x.size());
        ASSERT_EQ(got.standard_error.size(), targets.x.size());
        ASSERT_EQ(got.process_standard_error.size(), targets.x.size());
        for (std::size_t t = 0; t < targets.x.size(); ++t) {
          const auto [expected, variance] = oracle.predict(targets, t);
          const auto label = testing::Message()
                             << "mean " << static_cast<int>(mean) << " target " << t;
          EXPECT_NEAR(got.mean[t], static_cast<double>(expected), 1e-11 * largest_value(model))
              << label;
          EXPECT_NEAR(got.process_standard_error[t], static_cast<double>(std::sqrt(variance)),
                      1e-9 * got.process_standard_error[t])
              << label;
          EXPECT_NEAR(got.standard_error[t], static_cast<double>(std::sqrt(variance + nugget)),
                      1e-9 * got.standard_error[t])
              << label;
        }
      }
    }
  }
}

TEST(Predict, GivenCoefficientsAreUsed) {
  Model model = example(Mean::linear, 0.2);
  const auto fitted =
      log_likelihood(model.points, model.values, model.parameters, model.mean, host_options());
  const Points targets = random_points(5, 14);
  const Prediction estimated = predict(model, targets, host_options());
  model.mean_coefficients = fitted.mean_coefficients;
  const Prediction given = predict(model, targets, host_options());
  const double bound = 1e-12 * largest_value(model);
  for (std::size_t t = 0; t < 5; ++t) EXPECT_NEAR(given.mean[t], estimated.mean[t], bound);
  model.mean_coefficients[0] += 1;
  const Prediction shifted = predict(model, targets, host_options());
  for (std::size_t t = 0; t < 5; ++t) EXPECT_GT(shifted.mean[t], given.mean[t] + 1e-3);
}

TEST(Predict, InterpolatesWithoutNugget) {
  for (const Mean mean : kMeans) {
    const Model model = example(mean, 0);
    const Prediction got = predict(model, model.points, host_options());
    for (std::size_t i = 0; i < model.values.size(); ++i) {
      EXPECT_NEAR(got.mean[i], model.values[i], 1e-12 * largest_value(model)) << i;
      // The root of what is left of the variance when it cancels: n roundings of it.
      const double left = 61 * std::numeric_limits<double>::epsilon() * model.parameters.variance;
      EXPECT_LE(got.standard_error[i], std::sqrt(left)) << i;
    }
  }
}

TEST(Predict, Refuses) {
  const Points targets = random_points(3, 15);
  const auto kind = [&](const Model& model, const Points& at, std::int64_t chunk = 0) {
    return kind_of_error([&] { static_cast<void>(predict(model, at, host_options(), chunk)); });
  };
  Model model = example(Mean::linear, 0);
  EXPECT_EQ(kind(model, targets), std::nullopt);
  EXPECT_EQ(kind(model, {}), ErrorKind::misuse);
  EXPECT_EQ(kind(model, {{1, 2}, {1}}), ErrorKind::misuse);
  EXPECT_EQ(kind(model, {{1, NAN}, {1, 1}}), ErrorKind::input);
  EXPECT_EQ(kind(model, targets, -1), ErrorKind::misuse);
  model.mean_coefficients = {1, 2};
  EXPECT_EQ(kind(model, targets), ErrorKind::misuse);
  model.mean_coefficients = {1, 2, NAN};
  EXPECT_EQ(kind(model, targets), ErrorKind::misuse);
  model = example(Mean::zero, 0);
  model.values[3] = INFINITY;
  EXPECT_EQ(kind(model, targets), ErrorKind::input);
  model = example(Mean::zero, 0);
  model.points.x[5] = model.points.x[4];
  model.points.y[5] = model.points.y[4];
  EXPECT_EQ(kind(model, targets), ErrorKind::numerical);
  model = example(Mean::zero, 0);
  model.parameters = {1, 1e3, 5, 0};  // numerically singular
  EXPECT_EQ(kind(model, targets), ErrorKind::numerical);
  model.parameters.range = -1;
  EXPECT_EQ(kind(model, targets), ErrorKind::misuse);
}

TEST(Predict, HasTheSameBitsForAnyBudgetPolicyNumberOfDevicesAndChunk) {
  const Model model = example(Mean::linear, 0.2);
  const Points targets = random_points(50, 17);
  const auto run = [&](const char* devices, std::int64_t tiles, Policy policy, std::int64_t chunk) {
    CovarianceOptions options;
    options.run.devices = devices;
    options.tile = 16;
    options.run.device_memory_bytes = tiles * (16 * 16 * 8 + 256);
    options.run.policy = policy;
    options.run.compute_queues = 2;
    const Prediction got = predict(model, targets, options, chunk);
    EXPECT_EQ(got.run.traffic, static_cast<const Traffic&>(got.run.planned_traffic));
    EXPECT_EQ(got.solve.traffic, static_cast<const Traffic&>(got.solve.planned_traffic));
    EXPECT_GT(got.solve.flops, 0);
    std::vector<double> all = got.mean;
    all.insert(all.end(), got.standard_error.begin(), got.standard_error.end());
    all.insert(all.end(), got.process_standard_error.begin(), got.process_standard_error.end());
    return all;
  };
  const std::vector<double> expected = run("host:1", 1000, Policy::opt, 0);
  test::Thinned thinned(7);
  for (const char* devices : {"host:1", "host:2", "host:3"}) {
    for (const std::int64_t tiles : {4, 7, 1000}) {
      for (const Policy policy : {Policy::sync, Policy::v1, Policy::v3, Policy::opt}) {
        for (const std::int64_t chunk : {0, 8, 17, 49}) {  // a block is 8 targets
          if (thinned.skips()) continue;
          EXPECT_TRUE(test::same_bits(run(devices, tiles, policy, chunk), expected))
              << devices << ' ' << tiles << " tiles, chunk " << chunk;
        }
      }
    }
  }
}

/// Targets in portions of the given sizes, again and again, as many as are asked for at most.
TargetSource portions(const Points& targets, std::vector<std::int64_t> sizes) {
  return [targets, sizes, next = std::size_t{0}, call = std::size_t{0}](std::int64_t most) mutable {
    Points some;
    const auto size = static_cast<std::size_t>(std::min(most, sizes[call++ % sizes.size()]));
    for (; some.x.size() < size && next < targets.x.size(); ++next) {
      some.x.push_back(targets.x[next]);
      some.y.push_back(targets.y[next]);
    }
    return some;
  };
}

TEST(PredictStream, HasTheBitsOfOneGoHoweverTheTargetsCome) {
  test::Thinned thinned(5);
  const Model model = example(Mean::linear, 0.2);
  for (const std::size_t count : {1U, 7U, 8U, 9U, 63U, 64U, 65U, 200U}) {
    const Points targets = random_points(count, 18);
    for (const std::int64_t tile : {16, 61}) {
      CovarianceOptions options = host_options();
      options.tile = tile;
      const Prediction expected = predict(model, targets, options);
      for (const std::int64_t chunk : {0, 8, 17, 64}) {
        if (tile == 61 && chunk == 8) continue;  // less than half a tile: rounds otherwise
        if (tile == 61 && chunk == 17) continue;
        for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{1}, {5, 13}, {1000}}) {
          if (thinned.skips()) continue;
          Prediction got;
          Points seen;
          const StreamedPrediction report = predict(
              model, portions(targets, sizes),
              [&](const Points& at, const Prediction& part) {
                EXPECT_EQ(part.mean.size(), at.x.size());
                const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
                  to.insert(to.end(), from.begin(), from.end());
                };
                add(seen.x, at.x);
                add(seen.y, at.y);
                add(got.mean, part.mean);
                add(got.standard_error, part.standard_error);
                add(got.process_standard_error, part.process_standard_error);
              },
              options, chunk);
          EXPECT_EQ(report.targets, static_cast<std::int64_t>(count));
          EXPECT_EQ(report.run.n, 61);
          EXPECT_EQ(report.solve.traffic,
                    static_cast<const Traffic&>(report.solve.planned_traffic));
          EXPECT_TRUE(test::same_bits(seen.x, targets.x) && test::same_bits(seen.y, targets.y));
          EXPECT_TRUE(test::same_bits(got.mean, expected.mean) &&
                      test::same_bits(got.standard_error, expected.standard_error) &&
                      test::same_bits(got.process_standard_error, expected.process_standard_error))
              << count << " targets, tile " << tile << ", chunk " << chunk;
        }
      }
    }
  }
}

TEST(PredictStream, CountsTargetsAndPassesOnWhatCallbacksThrow) {
  const Model model = example(Mean::constant, 0.1);
  const Points targets = random_points(40, 19);
  CovarianceOptions options = host_options();
  options.tile = 16;
  double last = 0;
  options.run.progress = [&](const Progress& p) {
    if (std::string(p.what) != "predict") return true;
    EXPECT_GE(p.done, last);
    EXPECT_EQ(p.total, 40);
    last = p.done;
    return p.done < 30;
  };
  int pieces = 0;
  const PredictionSink count = [&](const Points&, const Prediction&) { ++pieces; };
  EXPECT_EQ(kind_of_error([&] {
              static_cast<void>(predict(model, portions(targets, {7}), count, options, 8, 40));
            }),
            ErrorKind::cancelled);
  EXPECT_GT(last, 0);
  EXPECT_GT(pieces, 0);
  options.run.progress = nullptr;
  const PredictionSink broken = [](const Points&, const Prediction&) {
    throw Error(ErrorKind::storage, "test", "full");
  };
  EXPECT_EQ(kind_of_error([&] {
              static_cast<void>(predict(model, portions(targets, {7}), broken, options));
            }),
            ErrorKind::storage);
  EXPECT_EQ(
      kind_of_error([&] { static_cast<void>(predict(model, portions({}, {7}), count, options)); }),
      ErrorKind::misuse);
  EXPECT_EQ(kind_of_error([&] {
              static_cast<void>(predict(model, portions({{1, NAN}, {1, 1}}, {2}), count, options));
            }),
            ErrorKind::input);
}

TEST(Predict, CountsTargets) {
  const Model model = example(Mean::constant, 0.1);
  CovarianceOptions options = host_options();
  double last = 0;
  int calls = 0;
  options.run.progress = [&](const Progress& p) {
    if (std::string(p.what) != "predict") return true;
    EXPECT_EQ(p.total, 9);
    EXPECT_GE(p.done, last);
    EXPECT_LE(p.done, p.total * (1 + 1e-12));
    last = p.done;
    ++calls;
    return true;
  };
  (void)predict(model, random_points(9, 16), options, 2);
  EXPECT_GE(calls, 5);
  EXPECT_GE(last, 8);
}

TEST(Predict, Cancels) {
  CovarianceOptions options = host_options();
  options.run.progress = [](const Progress& p) { return std::string(p.what) != "predict"; };
  EXPECT_EQ(
      kind_of_error([&] {
        static_cast<void>(predict(example(Mean::constant, 0.1), random_points(9, 16), options, 2));
      }),
      ErrorKind::cancelled);
}

/// ∫(F(t) − 1[t >= observed])² dt for a normal F, by quadrature.
double crps_by_quadrature(double observed, double mean, double sigma) {
  const auto below = [&](double t) { return 0.5 * std::erfc((mean - t) / sigma / std::sqrt(2.0)); };
  const auto above = [&](double t) { return 0.5 * std::erfc((t - mean) / sigma / std::sqrt(2.0)); };
  const auto integrate = [](auto&& f, double from, double to) {
    return boost::math::quadrature::gauss_kronrod<double, 31>::integrate(f, from, to, 15, 1e-12);
  };
  const double reach = 12 * sigma + std::fabs(observed - mean);
  return integrate([&](double t) { return below(t) * below(t); }, observed - reach, observed) +
         integrate([&](double t) { return above(t) * above(t); }, observed, observed + reach);
}

TEST(Scores, AgainstQuadratureAndByHand) {
  for (const double error : {-7.0, -1.3, -0.2, 0.0, 0.5, 2.0, 6.0}) {
    for (const double sigma : {0.3, 1.0, 4.0}) {
      const std::vector<double> observed{2 + error};
      const std::vector<double> mean{2};
      const std::vector<double> se{sigma};
      const double expected = crps_by_quadrature(2 + error, 2, sigma);
      EXPECT_NEAR(scores(observed, mean, se).crps, expected, 1e-9 * expected)
          << error << " " << sigma;
    }
  }
  const std::vector<double> observed{1, 2, 3, 4};
  const std::vector<double> mean{1, 3, 3, 0};
  const std::vector<double> se{0, 1 / 1.9599, 1, 1};
  const Scores s = scores(observed, mean, se);
  EXPECT_DOUBLE_EQ(s.rmse, std::sqrt(17.0 / 4));
  EXPECT_DOUBLE_EQ(s.mae, 5.0 / 4);
  EXPECT_DOUBLE_EQ(s.coverage95, 3.0 / 4);
  const std::vector<double> narrower{0, 1 / 1.9601, 1, 1};
  EXPECT_DOUBLE_EQ(scores(observed, mean, narrower).coverage95, 2.0 / 4);
  const std::vector<double> certain{0, 0, 0, 0};
  EXPECT_DOUBLE_EQ(scores(observed, mean, certain).crps, 5.0 / 4);
}

TEST(Scores, Refuses) {
  const auto kind = [](const std::vector<double>& a, const std::vector<double>& b,
                       const std::vector<double>& c) {
    return kind_of_error([&] { static_cast<void>(scores(a, b, c)); });
  };
  EXPECT_EQ(kind({}, {}, {}), ErrorKind::misuse);
  EXPECT_EQ(kind({1}, {1, 2}, {1}), ErrorKind::misuse);
  EXPECT_EQ(kind({1}, {1}, {}), ErrorKind::misuse);
  EXPECT_EQ(kind({1}, {1}, {-1}), ErrorKind::misuse);
  EXPECT_EQ(kind({NAN}, {1}, {1}), ErrorKind::input);
  EXPECT_EQ(kind({1}, {1}, {INFINITY}), ErrorKind::input);
}

}  // namespace
}  // namespace strata
