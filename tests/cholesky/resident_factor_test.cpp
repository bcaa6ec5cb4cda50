// What a factorization leaves on the devices is where solves and further factorizations begin.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cholesky/covariance_solver.hpp"
#include "strata/cholesky.hpp"
#include "tests/cholesky/sine_columns.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kResidentOrder = 75;  // of tiles of 16: the last one is smaller

class ResidentFactor : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static CovarianceOptions options_on(int devices,
                                                    std::int64_t memory_bytes = 1 << 20) {
    CovarianceOptions options;
    options.run.devices = devices_text(GetParam(), devices);
    options.run.device_memory_bytes = memory_bytes;
    options.tile = 16;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, ResidentFactor, ::testing::ValuesIn(available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(ResidentFactor, AThousandSolvesMoveTheRightHandSidesAndNothingElse) {
  const Matrix<double> a = random_spd_matrix<double>(kResidentOrder, 3);
  CholeskyFactor factor = cholesky(a.view(), options_on(1));
  const Matrix<double> b = sine_columns(kResidentOrder, 3);
  Matrix<double> first = b;
  (void)factor.solve(first.view());
  EXPECT_LE(backward_error(a, b, first), 8 * std::numeric_limits<double>::epsilon());
  for (int i = 0; i < (kSanitized ? 100 : 1000); ++i) {
    Matrix<double> x = b;
    const RunReport report = factor.solve(x.view());
    ASSERT_EQ(report.traffic.host_to_device_bytes, kResidentOrder * 3 * 8) << i;
    ASSERT_EQ(report.traffic.device_to_host_bytes, kResidentOrder * 3 * 8) << i;
    ASSERT_EQ(report.traffic.total(), 2 * kResidentOrder * 3 * 8) << i;
    ASSERT_TRUE(same_bits(x.data, first.data)) << i;
  }
}

TEST_P(ResidentFactor, ServesAnyNumberOfRightHandSidesInTurn) {
  const Matrix<double> a = random_spd_matrix<double>(kResidentOrder, 4);
  CholeskyFactor factor = cholesky(a.view(), options_on(1));
  for (const std::int64_t columns : {1, 16, 2, 0, 5, 1, 40}) {
    const Matrix<double> b = sine_columns(kResidentOrder, columns);
    Matrix<double> x = b;
    const RunReport report = factor.solve(x.view());
    EXPECT_EQ(report.traffic.host_to_device_bytes, kResidentOrder * columns * 8) << columns;
    EXPECT_LE(backward_error(a, b, x), 8 * std::numeric_limits<double>::epsilon()) << columns;
  }
}

TEST_P(ResidentFactor, OnTwoDevicesMovesNoTileAfterTheFirstSolve) {
  if (devices_text(GetParam(), 2).empty()) GTEST_SKIP() << "fewer than two GPUs";
  const Matrix<double> a = random_spd_matrix<double>(kResidentOrder, 5);
  CholeskyFactor one = cholesky(a.view(), options_on(1));
  CholeskyFactor two = cholesky(a.view(), options_on(2));
  const Matrix<double> b = sine_columns(kResidentOrder, 2);
  Matrix<double> expected = b;
  (void)one.solve(expected.view());
  std::int64_t moved = 0;
  for (int i = 0; i < 4; ++i) {
    Matrix<double> x = b;
    const RunReport report = two.solve(x.view());
    EXPECT_TRUE(same_bits(x.data, expected.data)) << i;
    EXPECT_EQ(report.traffic, report.planned_traffic);
    if (i == 1) moved = report.traffic.total();
    if (i > 1) {
      EXPECT_EQ(report.traffic.total(), moved) << i;
    }
    // A block of two columns goes to the other device and comes back, for each of two sweeps.
    if (i > 0) {
      EXPECT_LE(report.traffic.total(), 8 * kResidentOrder * 2 * 8) << i;
    }
  }
}

TEST_P(ResidentFactor, ThatFitsOnlyInPartGivesTheSameBits) {
  const Matrix<double> a = random_spd_matrix<double>(kResidentOrder, 6);
  const Matrix<double> b = sine_columns(kResidentOrder, 4);
  CholeskyFactor whole = cholesky(a.view(), options_on(1));
  CholeskyFactor part = cholesky(a.view(), options_on(1, 9 * 16 * 16 * 8));
  for (int i = 0; i < 3; ++i) {
    Matrix<double> x = b;
    Matrix<double> y = b;
    (void)whole.solve(x.view());
    const RunReport report = part.solve(y.view());
    EXPECT_TRUE(same_bits(x.data, y.data)) << i;
    EXPECT_EQ(report.traffic, report.planned_traffic);
    EXPECT_GT(report.traffic.host_to_device_bytes, kResidentOrder * 4 * 8)
        << "some tiles had to come again";
  }
}

TEST_P(ResidentFactor, MovesWhatIsPlannedAtAllHalfAndAQuarterOfItsMemory) {
  const Matrix<double> a = random_spd_matrix<double>(kResidentOrder, 7);
  const Matrix<double> b = sine_columns(kResidentOrder, 4);
  CholeskyFactor whole = cholesky(a.view(), options_on(1));
  Matrix<double> expected = b;
  (void)whole.solve(expected.view());
  const std::int64_t triangle = kResidentOrder * (kResidentOrder + 16) / 2 * 8;
  std::int64_t moved = 0;
  for (const std::int64_t share : {100, 50, 25}) {
    CholeskyFactor part =
        cholesky(a.view(), options_on(1, std::max(triangle * share / 100, 5 * 16 * 16 * 8L)));
    EXPECT_EQ(part.report().traffic, part.report().planned_traffic) << share;
    RunReport report;
    for (int i = 0; i < 3; ++i) {
      Matrix<double> x = b;
      report = part.solve(x.view());
      EXPECT_TRUE(same_bits(x.data, expected.data)) << share << ' ' << i;
      EXPECT_EQ(report.traffic, report.planned_traffic) << share << ' ' << i;
    }
    EXPECT_GT(report.traffic.total(), moved) << share;
    moved = report.traffic.total();
  }
}

TEST_P(ResidentFactor, ALikelihoodAfterALikelihoodKeepsTheCoordinates) {
  const Matrix<double> points = make_matrix<double>(
      kResidentOrder, 2, [](auto i, auto j) { return std::cos(2.0 * i + 5.0 * j); });
  CovarianceSolver solver(points.view(), options_on(1));
  CovarianceParameters parameters{1.0, 0.3, 0.5, 0.1, true};
  ASSERT_TRUE(solver.factor(parameters).ok);
  EXPECT_EQ(solver.report().traffic.host_to_device_bytes, kResidentOrder * 2 * 8)
      << "coordinates, once";
  const double first = solver.factor(parameters).log_determinant;
  for (int i = 0; i < 5; ++i) {
    Matrix<double> x = sine_columns(kResidentOrder, 1);
    (void)solver.solve_lower(x.view());
    parameters.range = 0.3 + 0.01 * i;
    const FactorInfo& info = solver.factor(parameters);
    ASSERT_TRUE(info.ok);
    EXPECT_EQ(solver.report().traffic.host_to_device_bytes, 0) << i;
    EXPECT_EQ(info.log_determinant == first, i == 0) << "new values, not those that were there";
  }
}

}  // namespace
}  // namespace strata::test
