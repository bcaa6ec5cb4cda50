// Cross-validation against predictions from the points that are kept.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/geostat/simulated_data.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

SimulatedData data_with_trend(std::size_t n, std::uint64_t seed) {
  SimulatedData data{random_points(n, seed), {}};
  data.values = simulate_field(data.points, {1.7, 0.15, 0.8, 0.2}, seed + 1);
  for (std::size_t i = 0; i < n; ++i) data.values[i] += 4 - 3 * data.points.y[i];
  return data;
}

/// The rows of `data` for which `keep` says so.
template <class F>
SimulatedData kept(const SimulatedData& data, F&& keep) {
  SimulatedData out;
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    if (!keep(i)) continue;
    out.points.x.push_back(data.points.x[i]);
    out.points.y.push_back(data.points.y[i]);
    out.values.push_back(data.values[i]);
  }
  return out;
}

TEST(LeaveOneOut, IsThePredictionWithoutThePoint) {
  for (const std::size_t n : {5U, 16U, 17U, 61U}) {
    const SimulatedData data = data_with_trend(n, 71);
    for (const Mean mean : kMeans) {
      for (const double nugget : {0.0, 0.2}) {
        const MaternParameters p{1.7, 0.15, 0.8, nugget};
        const CrossValidation got =
            leave_one_out(data.points, data.values, p, mean, host_options());
        ASSERT_EQ(got.mean.size(), n);
        EXPECT_TRUE(got.fold.empty());
        for (std::size_t i = 0; i < n; i += test::kSanitized ? 7 : 1) {
          const SimulatedData others = kept(data, [i](std::size_t k) { return k != i; });
          const DenseOracle oracle(others.points, others.values, p, mean);
          const auto [expected, variance] = oracle.predict(data.points, i);
          const std::string label = std::to_string(n) + ", mean " +
                                    std::to_string(static_cast<int>(mean)) + ", row " +
                                    std::to_string(i);
          EXPECT_NEAR(got.mean[i], static_cast<double>(expected), 1e-11 * 10) << label;
          EXPECT_NEAR(got.standard_error[i], static_cast<double>(std::sqrt(variance + nugget)),
                      1e-10 * got.standard_error[i])
              << label;
        }
        const Scores expected = scores(data.values, got.mean, got.standard_error);
        EXPECT_EQ(got.scores.rmse, expected.rmse);
        EXPECT_EQ(got.scores.crps, expected.crps);
      }
    }
  }
}

TEST(LeaveOneOut, HasTheSameBitsForAnyBudgetPolicyAndNumberOfDevices) {
  const SimulatedData data = data_with_trend(100, 72);
  const auto run = [&](const char* devices, std::int64_t tiles, Policy policy) {
    CovarianceOptions options;
    options.run.devices = devices;
    options.tile = 16;
    options.run.device_memory_bytes = tiles * (16 * 16 * 8 + 256);
    options.run.policy = policy;
    CrossValidation got =
        leave_one_out(data.points, data.values, {1, 0.2, 0.8, 0.1}, Mean::linear, options);
    EXPECT_EQ(got.inverse.traffic, static_cast<const Traffic&>(got.inverse.planned_traffic));
    EXPECT_GT(got.inverse.flops, 0);
    got.mean.insert(got.mean.end(), got.standard_error.begin(), got.standard_error.end());
    return got.mean;
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

TEST(LeaveOneOut, Refuses) {
  const auto kind = [](const SimulatedData& data, Mean mean, double nugget) {
    return kind_of_error([&] {
      static_cast<void>(
          leave_one_out(data.points, data.values, {1, 0.2, 0.5, nugget}, mean, host_options()));
    });
  };
  SimulatedData data = data_with_trend(9, 73);
  EXPECT_EQ(kind(data, Mean::linear, 0), std::nullopt);
  EXPECT_EQ(kind(kept(data, [](std::size_t i) { return i == 0; }), Mean::zero, 0),
            ErrorKind::misuse);
  EXPECT_EQ(kind(kept(data, [](std::size_t i) { return i < 3; }), Mean::linear, 0),
            ErrorKind::numerical);
  // Eight on a line: without the ninth a plane is not determined.
  for (std::size_t i = 0; i < 8; ++i) data.points.y[i] = data.points.x[i];
  EXPECT_EQ(kind(data, Mean::linear, 0), ErrorKind::numerical);
  EXPECT_EQ(kind(data, Mean::constant, 0), std::nullopt);
  data.points.x[3] = data.points.x[4];
  data.points.y[3] = data.points.y[4];
  EXPECT_EQ(kind(data, Mean::zero, 0), ErrorKind::numerical);
  EXPECT_EQ(kind(data, Mean::zero, 0.1), std::nullopt);
  data.values[2] = NAN;
  EXPECT_EQ(kind(data, Mean::zero, 0.1), ErrorKind::input);
}

CrossValidationOptions host_folds(int folds, bool blocks) {
  CrossValidationOptions options{host_options()};
  options.folds = folds;
  options.blocks = blocks;
  return options;
}

TEST(CrossValidate, EachFoldIsPredictedFromTheOthers) {
  const SimulatedData data = data_with_trend(53, 74);
  test::Thinned thinned(5);
  const MaternParameters p{1.7, 0.15, 0.8, 0.2};
  for (const Mean mean : kMeans) {
    for (const bool blocks : {false, true}) {
      for (const int folds : {2, 5, 53}) {
        if (thinned.skips()) continue;
        const CrossValidation got =
            cross_validate(data.points, data.values, p, mean, host_folds(folds, blocks));
        std::vector<int> sizes(static_cast<std::size_t>(folds));
        for (const int fold : got.fold) ++sizes.at(static_cast<std::size_t>(fold));
        EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()),
                  *std::min_element(sizes.begin(), sizes.end()) + 1);
        for (int f = 0; f < folds; f += folds / 2) {
          const SimulatedData others = kept(data, [&](std::size_t i) { return got.fold[i] != f; });
          const DenseOracle oracle(others.points, others.values, p, mean);
          for (std::size_t i = 0; i < 53; ++i) {
            if (got.fold[i] != f) continue;
            const auto [expected, variance] = oracle.predict(data.points, i);
            EXPECT_NEAR(got.mean[i], static_cast<double>(expected), 1e-11 * 10) << folds;
            EXPECT_NEAR(got.standard_error[i], static_cast<double>(std::sqrt(variance + 0.2)),
                        1e-10);
          }
        }
        EXPECT_EQ(got.scores.mae, scores(data.values, got.mean, got.standard_error).mae);
      }
    }
  }
}

TEST(CrossValidate, AsManyFoldsAsPointsLeaveOneOut) {
  const SimulatedData data = data_with_trend(24, 75);
  const MaternParameters p{1.7, 0.15, 0.8, 0.2};
  const CrossValidation folds =
      cross_validate(data.points, data.values, p, Mean::linear, host_folds(24, false));
  const CrossValidation one =
      leave_one_out(data.points, data.values, p, Mean::linear, host_options());
  for (std::size_t i = 0; i < 24; ++i) EXPECT_NEAR(folds.mean[i], one.mean[i], 1e-11) << i;
}

TEST(CrossValidate, RandomFoldsFollowTheSeedAndBlocksAreCompact) {
  const SimulatedData data = data_with_trend(200, 76);
  const MaternParameters p{1, 0.1, 0.5, 0.2};
  const auto folds = [&](bool blocks, std::uint64_t seed) {
    CrossValidationOptions options = host_folds(4, blocks);
    options.seed = seed;
    return cross_validate(data.points, data.values, p, Mean::zero, options);
  };
  EXPECT_EQ(folds(false, 3).fold, folds(false, 3).fold);
  EXPECT_NE(folds(false, 3).fold, folds(false, 4).fold);
  // The bounding boxes of the four blocks of a square share nothing but their borders.
  const CrossValidation blocks = folds(true, 3);
  double area = 0;
  for (int f = 0; f < 4; ++f) {
    const SimulatedData own = kept(data, [&](std::size_t i) { return blocks.fold[i] == f; });
    const auto [x0, x1] = std::minmax_element(own.points.x.begin(), own.points.x.end());
    const auto [y0, y1] = std::minmax_element(own.points.y.begin(), own.points.y.end());
    area += (*x1 - *x0) * (*y1 - *y0);
    for (std::size_t i = 0; i < 200; ++i) {
      const bool inside = data.points.x[i] >= *x0 && data.points.x[i] <= *x1 &&
                          data.points.y[i] >= *y0 && data.points.y[i] <= *y1;
      EXPECT_EQ(inside, blocks.fold[i] == f) << i;
    }
  }
  EXPECT_GT(area, 0.8);
  EXPECT_GT(blocks.scores.rmse, folds(false, 3).scores.rmse) << "further from the data";
}

TEST(CrossValidate, Refuses) {
  const SimulatedData data = data_with_trend(9, 77);
  for (const int folds : {-1, 0, 1, 10}) {
    EXPECT_EQ(kind_of_error([&] {
                static_cast<void>(cross_validate(data.points, data.values, {}, Mean::zero,
                                                 host_folds(folds, false)));
              }),
              ErrorKind::misuse);
  }
  EXPECT_EQ(
      kind_of_error([&] { static_cast<void>(cross_validate(data.points, {}, {}, Mean::zero)); }),
      ErrorKind::misuse);
}

}  // namespace
}  // namespace strata
