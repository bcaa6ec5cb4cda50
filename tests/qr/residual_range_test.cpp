// The residual of least squares that is told is that of x, however small: its squares may
// underflow, and so may products of A and x. The oracle is the residual in 600 bits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/qr/factored.hpp"
#include "tests/qr/procrustes.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::Many;
using test::Tall;

void expect_true_residual(const Tall& a, const Tall& b) {
  Tall x(a.cols, 1);
  const LeastSquaresInfo info = least_squares(std::as_const(a).view(), b.view(), x.view(),
                                              test::for_least_squares(test::plain()));
  Many square = 0;
  Many longest = 1;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    Many rest = b(i, 0);
    longest = std::max(longest, Many(abs(rest)));
    for (std::int64_t j = 0; j < a.cols; ++j) rest -= Many(a(i, j)) * Many(x(j, 0));
    square += rest * rest;
  }
  const Many truth = sqrt(square);
  const Many least = std::numeric_limits<double>::denorm_min();
  ASSERT_TRUE(std::isfinite(info.residual_norm[0]));
  EXPECT_GE(Many(info.residual_norm[0]), truth * (1 - Many(1e-12)));
  // Columns are scaled to lengths near 1, beside which products may underflow.
  EXPECT_LE(Many(info.residual_norm[0]), truth * (1 + Many(1e-9)) + 100 * least * longest);
}

TEST(ResidualRange, SquaresOfASmallResidualDoNotVanish) {
  for (const double size : {1e-150, 1e-170, 1e-200, 1e-300, 1e-310, 1e-320}) {
    SCOPED_TRACE(size);
    Tall a(3, 1);
    Tall b(3, 1);
    a(0, 0) = b(0, 0) = 1;
    a(1, 0) = size;
    b(1, 0) = 3 * size;
    expect_true_residual(a, b);
    b(2, 0) = size;
    expect_true_residual(a, b);
    for (const double unit : {0x1p-900, 0x1p-1000, 0x1p900}) {
      Tall c = b;
      for (double& x : c.data) x *= unit;
      expect_true_residual(a, c);
      Tall d = a;
      for (double& x : d.data) x *= unit;
      expect_true_residual(d, b);
    }
  }
}

/// Some rows are solved exactly, by small integers; what others leave is small.
TEST(ResidualRange, OfManyRowsIsThatOfTheSmallOnes) {
  const std::uint64_t cases = test::campaign(5000, 300, 60);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    const auto draw = [seed](std::int64_t k) {
      return random_uniform(4000 + seed, static_cast<std::uint64_t>(k));
    };
    const std::int64_t n = 1 + static_cast<std::int64_t>(seed % 4);
    Tall a(3 * n + 2, n);
    Tall b(a.rows, 1);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const double size = i < n ? 1 : std::pow(10.0, -100 - 230 * draw(900 + i));
      double sum = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        a(i, j) = i < n ? static_cast<double>(i == j ? 4 : std::floor(3 * draw(i * n + j)) - 1)
                        : size * (draw(i * n + j) - 0.5);
        sum += a(i, j) * static_cast<double>(j + 1);
      }
      b(i, 0) = i < n ? sum : size * draw(500 + i);
    }
    if (seed % 3 == 1)
      for (double& x : a.data) x *= 0x1p-300;
    if (seed % 3 == 2)
      for (double& x : b.data) x *= 0x1p500;
    expect_true_residual(a, b);
  }
}

}  // namespace
}  // namespace strata
