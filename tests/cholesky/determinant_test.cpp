// The log-determinant is that of the factor, however much else a device has to do. A kernel that
// multiplied the diagonal up on its way was at times wrong on a GPU, in 1 of 160 tiles of 2048
// beside other work, while its factor was right.

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "cholesky/tile_factor.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

class Determinant : public ::testing::TestWithParam<std::string> {};

TEST_P(Determinant, IsThatOfTheDiagonalInEveryRunOfMany) {
  const bool gpu = GetParam() == "cuda";
  const std::int64_t tile = gpu ? 2048 : 64;
  const std::int64_t n = gpu ? 8 * tile - 301 : 5 * tile - 19;  // the last tile of odd order
  std::vector<double> points(static_cast<std::size_t>(2 * n));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = random_uniform(7, i);
  CholeskyProblem problem;
  problem.n = n;
  problem.point_dimensions = 2;
  CholeskyOptions options;
  options.run.devices = test::devices_text(GetParam(), 1);
  options.tile = tile;
  options.path = CholeskyPath::planned;
  TileFactor factor(problem, options);
  const CovarianceParameters parameters{1, 0.1, 0.5, 0.01, true};
  const FactorInfo first = factor.factor_covariance(points.data(), parameters);
  ASSERT_TRUE(first.ok);
  double sum = 0;
  constexpr std::int64_t kColumns = 64;
  for (std::int64_t j = 0; j < n; j += kColumns) {
    test::Matrix<double> columns(n, std::min(kColumns, n - j));
    factor.copy_columns(j, columns.view());
    for (std::int64_t c = 0; c < columns.cols; ++c) sum += 2 * std::log(columns(j + c, c));
  }
  EXPECT_NEAR(first.log_determinant, sum, 1e-12 * std::fabs(sum));
  for (int run = 0; run < (gpu ? 50 : 5); ++run) {
    const FactorInfo again = factor.factor_covariance(points.data(), parameters);
    ASSERT_EQ(again.log_determinant, first.log_determinant) << run;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Determinant, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace strata
