// Factors in several precisions: how far their Gaussians are from those of dense fp64 factors by
// LAPACK, on weakly, medium and strongly correlated fields.

#include <gtest/gtest.h>

#include <string>

#include "cholesky/covariance_solver.hpp"
#include "cholesky/mixed_factor.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/mixed_factors.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/gaussian.hpp"

namespace strata {
namespace {

using test::kTotal;
using test::lower_of;
using test::Matrix;

constexpr double kRanges[] = {0.02627, 0.078809, 0.210158};  // weak, medium, strong correlation
constexpr double kAccuracies[] = {1e-5, 1e-6, 1e-7, 1e-8};

CovarianceOptions mixed_options_of(std::int64_t tile, double accuracy, PrecisionRule rule) {
  CovarianceOptions options;
  options.run.devices = "host";
  options.run.device_memory_bytes = std::int64_t{1} << 30;
  options.tile = tile;
  options.mixed.accuracy = accuracy;
  options.mixed.rule = rule;
  return options;
}

class MixedField : public ::testing::TestWithParam<std::tuple<PrecisionRule, double>> {};

INSTANTIATE_TEST_SUITE_P(
    Rules, MixedField,
    ::testing::Combine(::testing::Values(PrecisionRule::factor, PrecisionRule::paper),
                       ::testing::ValuesIn(kRanges)),
    [](const auto& info) {
      const double range = std::get<1>(info.param);
      return std::string(std::get<0>(info.param) == PrecisionRule::factor ? "factor" : "paper") +
             (range < 0.05  ? "Weak"
              : range < 0.1 ? "Medium"
                            : "Strong");
    });

TEST_P(MixedField, IsTheNearerToItsGaussianTheFinerTheAccuracy) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kOrder = 1024;
  constexpr std::int64_t kTile = 64;
  const auto& [rule, range] = GetParam();
  const Matrix<double> points = test::ordered_points(kOrder, kTile, 5);
  const Matrix<double> a = test::exponential_covariance(points, range);
  const Matrix<double> l = test::dense_factor(a);
  double before = 1;
  std::vector<TilePrecision> map_before;
  for (const double accuracy : kAccuracies) {
    SCOPED_TRACE(accuracy);
    CovarianceOptions options = mixed_options_of(kTile, accuracy, rule);
    options.mixed.guard = false;
    MixedFactor factor(points.view(), options);
    ASSERT_TRUE(factor.factor({1, range, 0.5, 0, true}).ok);
    const MixedReport& report = factor.report();
    EXPECT_EQ(report.accuracy, accuracy);
    EXPECT_EQ(report.note, "");
    EXPECT_EQ(report.retries, 0) << "the pilot had all points";
    EXPECT_LT(report.tiles[0], 120) << "some tiles are kept in less than FP64";
    const Matrix<double> m = lower_of(factor.tiles());
    EXPECT_LE(test::relative_residual(a, m), kTotal * accuracy);
    const test::FactorError error = test::factor_error(l, m);
    EXPECT_GT(error.kl, 0);
    // Equal tiles may still have unequal products.
    EXPECT_LE(error.kl, before) << (report.map == map_before ? "the same tiles" : "finer tiles");
    if (accuracy == 1e-5) {
      EXPECT_LE(error.log_likelihood, 0.5 * accuracy * kOrder);
    }
    if (accuracy == 1e-8) {
      EXPECT_LE(error.log_likelihood, accuracy * error.inverse_pivots);
    }
    before = error.kl;
    map_before = report.map;
  }
}

TEST(MixedCholesky, OfALargerFieldKeepsItsPromise) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kOrder = 2048;
  constexpr std::int64_t kTile = 128;  // the pilot takes 80 points of each
  const Matrix<double> points = test::ordered_points(kOrder, kTile, 6);
  const Matrix<double> a = test::exponential_covariance(points, kRanges[1]);
  const Matrix<double> l = test::dense_factor(a);
  for (const double accuracy : {1e-5, 1e-8}) {
    MixedFactor factor(points.view(), mixed_options_of(kTile, accuracy, PrecisionRule::factor));
    const FactorInfo& info = factor.factor({1, kRanges[1], 0.5, 0, true});
    ASSERT_TRUE(info.ok);
    EXPECT_EQ(factor.report().retries, 0) << "norms by the pilot suffice";
    const Matrix<double> m = lower_of(factor.tiles());
    EXPECT_LE(test::relative_residual(a, m), kTotal * accuracy);
    const test::FactorError error = test::factor_error(l, m);
    EXPECT_LE(error.log_likelihood,
              accuracy == 1e-5 ? 0.5 * accuracy * kOrder : accuracy * error.inverse_pivots);
    double log_determinant = 0;
    for (std::int64_t i = 0; i < kOrder; ++i) log_determinant += 2 * std::log(m(i, i));
    EXPECT_NEAR(info.log_determinant, log_determinant, 1e-10 * std::fabs(log_determinant));
  }
}

TEST(MixedCholesky, OfOrdersThatAreNoMultipleOfTheTile) {
  for (const std::int64_t n : {1, 2, 63, 64, 65, 129, 200, 383, 511}) {
    const Matrix<double> points = test::ordered_points(n, 64, 7);
    const Matrix<double> a = test::exponential_covariance(points, 0.1);
    for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
      for (const double accuracy : {1e-4, 1e-7}) {
        MixedFactor factor(points.view(), mixed_options_of(64, accuracy, rule));
        ASSERT_TRUE(factor.factor({1, 0.1, 0.5, 0, true}).ok) << n;
        EXPECT_LE(test::relative_residual(a, lower_of(factor.tiles())), kTotal * accuracy) << n;
        const MixedReport& report = factor.report();
        const std::int64_t rows = (n + 63) / 64;
        EXPECT_EQ(report.rows, rows);
        EXPECT_EQ(std::ssize(report.map), rows * (rows + 1) / 2);
        EXPECT_EQ(
            report.tiles[0] + report.tiles[1] + report.tiles[2] + report.tiles[3] + report.tiles[4],
            rows * (rows - 1) / 2);
      }
    }
  }
}

TEST(MixedCholesky, UsesOnlyWhatIsAllowedAndLeavesNothingOutIfItMayNot) {
  constexpr std::int64_t kOrder = 512;
  const Matrix<double> points = test::ordered_points(kOrder, 32, 8);
  const Matrix<double> a = test::exponential_covariance(points, 0.05);
  for (const char* names : {"fp64", "fp64,fp32", "fp64,fp16", "fp64,fp8", "fp64,fp32,fp16"}) {
    for (const bool keep_all : {false, true}) {
      CovarianceOptions options = mixed_options_of(32, 1e-5, PrecisionRule::factor);
      options.mixed.allowed = parse_precisions(names);
      options.mixed.keep_all = keep_all;
      MixedFactor factor(points.view(), options);
      ASSERT_TRUE(factor.factor({1, 0.05, 0.5, 0, true}).ok);
      EXPECT_LE(test::relative_residual(a, lower_of(factor.tiles())), kTotal * 1e-5) << names;
      for (std::size_t p = 0; p < 4; ++p) {
        if (options.mixed.allowed[p]) continue;
        EXPECT_EQ(factor.report().tiles[p], 0) << names;
        EXPECT_EQ(factor.report().products[p], 0) << names;
      }
      EXPECT_EQ(factor.report().tiles[4] == 0, keep_all) << names;
      EXPECT_EQ(factor.report().products[4] == 0, keep_all) << names;
    }
  }
}

TEST(MixedCholesky, ProductRulesOfThePaperKeepItsPromise) {
  const Matrix<double> points = test::ordered_points(512, 32, 9);
  const Matrix<double> a = test::exponential_covariance(points, 0.05);
  for (const ProductRule product : {ProductRule::target, ProductRule::lower, ProductRule::higher}) {
    CovarianceOptions options = mixed_options_of(32, 1e-6, PrecisionRule::paper);
    options.mixed.product = product;
    MixedFactor factor(points.view(), options);
    ASSERT_TRUE(factor.factor({1, 0.05, 0.5, 0, true}).ok);
    EXPECT_LE(test::relative_residual(a, lower_of(factor.tiles())), kTotal * 1e-6);
  }
}

TEST(MixedCholesky, IsWhatACovarianceSolverReportsOf) {
  const Matrix<double> points = test::ordered_points(300, 32, 10);
  CovarianceSolver solver(points.view(), mixed_options_of(32, 1e-6, PrecisionRule::factor));
  ASSERT_TRUE(solver.factor({1, 0.05, 0.5, 0, true}).ok);
  ASSERT_TRUE(solver.report().mixed.has_value());
  EXPECT_EQ(solver.report().mixed->accuracy_asked, 1e-6);
  EXPECT_EQ(solver.report().mixed->rows, 10);
  EXPECT_EQ(solver.report().traffic, solver.report().planned_traffic);
  CovarianceOptions plain = mixed_options_of(32, 0, PrecisionRule::factor);
  CovarianceSolver uniform(points.view(), plain);
  ASSERT_TRUE(uniform.factor({1, 0.05, 0.5, 0, true}).ok);
  EXPECT_FALSE(uniform.report().mixed.has_value());
}

TEST(MixedCholesky, RefusesWhatIsNoAccuracy) {
  const Matrix<double> points = test::ordered_points(10, 32, 10);
  for (const double bad : {1e-2, 1e-13, -1.0}) {
    try {
      const MixedFactor factor(points.view(), mixed_options_of(32, bad, PrecisionRule::factor));
      ADD_FAILURE() << "not refused: " << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
    }
  }
}

}  // namespace
}  // namespace strata
