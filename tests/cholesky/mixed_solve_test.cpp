// Solves and whitened sums with mixed factors, against dense solves with the numbers that the tiles
// hold.

#include <gtest/gtest.h>

#include "cholesky/tile_factor.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/mixed_factors.hpp"
#include "tests/cholesky/sine_columns.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/mixed_problem.hpp"

namespace strata::test {
namespace {

class MixedSolve : public ::testing::TestWithParam<std::tuple<Element, int>> {
 protected:
  MixedSolve()
      : c(kMixedOrder, kMixedTile, std::get<0>(GetParam()), std::get<1>(GetParam())),
        scrambled(scrambled_case(kMixedOrder, kMixedTile, std::get<0>(GetParam()))) {
    scrambled.problem.devices = c.problem.devices;
  }
  /// With room for everything, or for a few tiles.
  [[nodiscard]] TileFactor factor_of(const MixedCase& one, bool roomy) const {
    CholeskyOptions options;
    options.run.devices = "host:" + std::to_string(one.problem.devices);
    options.run.device_memory_bytes = roomy ? std::int64_t{1} << 24 : 30'000;
    TileFactor factor(one.problem, options);
    EXPECT_TRUE(factor.factor_covariance(one.points.data.data(), one.parameters).ok);
    return factor;
  }
  static Matrix<double> lower_of(TileFactor& factor) {
    Matrix<double> m(kMixedOrder, kMixedOrder);
    factor.copy_lower(m.view());
    return m;
  }

  MixedCase c;
  MixedCase scrambled;
};

INSTANTIATE_TEST_SUITE_P(Singles, MixedSolve,
                         ::testing::Combine(::testing::Values(Element::fp32, Element::fp16x2),
                                            ::testing::Values(1, 3)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) + "On" +
                                  std::to_string(std::get<1>(info.param));
                         });

Matrix<double> transposed(const Matrix<double>& m) {
  return make_matrix<double>(m.cols, m.rows, [&](auto i, auto j) { return m(j, i); });
}

TEST_P(MixedSolve, SweepsAreThoseOfTheNumbersThatTheTilesHold) {
  for (const MixedCase* one : {&c, &scrambled}) {
    for (const bool roomy : {true, false}) {
      if (kSanitized && roomy != (one == &c)) continue;
      TileFactor factor = factor_of(*one, roomy);
      for (const std::int64_t columns : {1, 5, 33}) {
        if (kSanitized && columns == 5) continue;
        const Matrix<double> b = sine_columns(kMixedOrder, columns);
        Matrix<double> forward = b;
        EXPECT_EQ(factor.sweep(Sweep::forward, forward.view()).n, kMixedOrder);
        Matrix<double> backward = b;
        (void)factor.sweep(Sweep::backward, backward.view());
        Matrix<double> both = b;
        (void)factor.sweep(Sweep::both, both.view());
        Matrix<double> in_turn = forward;
        (void)factor.sweep(Sweep::backward, in_turn.view());
        EXPECT_TRUE(same_bits(both.data, in_turn.data)) << columns;
        const Matrix<double> m = lower_of(factor);
        EXPECT_LE(backward_error(m, b, forward), 1e-15) << columns;
        EXPECT_LE(backward_error(transposed(m), b, backward), 1e-15) << columns;
      }
    }
  }
}

TEST_P(MixedSolve, SolvesTheCovarianceToTheAccuracyOfTheFactor) {
  TileFactor factor = factor_of(c, true);
  const Matrix<double> b = sine_columns(kMixedOrder, 2);
  Matrix<double> x = b;
  (void)factor.sweep(Sweep::both, x.view());
  EXPECT_LE(backward_error(c.a, b, x), 4 * kSmallAccuracy);
  EXPECT_GT(backward_error(c.a, b, x), 1e-13) << "or nothing was rounded";
  const std::vector<double> again = factor.multiply({x.data.begin(), x.data.begin() + kMixedOrder});
  for (std::int64_t i = 0; i < kMixedOrder; ++i)
    ASSERT_NEAR(again[static_cast<std::size_t>(i)], b(i, 0), 1e-12);
}

TEST_P(MixedSolve, WhitenedSumsAreThoseOfTheNumbersThatTheTilesHold) {
  constexpr std::int64_t kTargets = 23;
  constexpr std::int64_t kColumns = 2;
  const Matrix<double> targets = make_matrix<double>(kTargets, 2, [](auto i, auto j) {
    return random_uniform(31, static_cast<std::uint64_t>(2 * i + j));
  });
  const Matrix<double> right = sine_columns(kMixedOrder, kColumns);
  for (const MixedCase* one : {&c, &scrambled}) {
    for (const bool roomy : {true, false}) {
      TileFactor factor = factor_of(*one, roomy);
      CovarianceParameters cross = one->parameters;
      cross.same_points = false;
      Matrix<double> products(kTargets, kColumns);
      std::vector<double> squares(kTargets);
      TargetChunk chunk;
      chunk.points = one->points.data.data();
      chunk.targets = targets.data.data();
      chunk.right = right.data.data();
      chunk.parameters = &cross;
      chunk.tile = 8;
      chunk.products = products.view();
      chunk.squares = squares.data();
      const RunReport report = factor.sum_whitened(chunk, {});
      EXPECT_EQ(report.traffic, report.planned_traffic);
      Matrix<double> w = make_matrix<double>(kMixedOrder, kTargets, [&](auto i, auto t) {
        return std::exp(
            -std::hypot(one->points(i, 0) - targets(t, 0), one->points(i, 1) - targets(t, 1)) /
            cross.range);
      });
      const Matrix<double> m = lower_of(factor);
      cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit,
                  static_cast<int>(kMixedOrder), static_cast<int>(kTargets), 1, m.data.data(),
                  static_cast<int>(kMixedOrder), w.data.data(), static_cast<int>(kMixedOrder));
      for (std::int64_t t = 0; t < kTargets; ++t) {
        long double square = 0;
        for (std::int64_t i = 0; i < kMixedOrder; ++i) square += w(i, t) * w(i, t);
        EXPECT_NEAR(squares[static_cast<std::size_t>(t)], static_cast<double>(square), 1e-13);
        for (std::int64_t j = 0; j < kColumns; ++j) {
          long double product = 0;
          for (std::int64_t i = 0; i < kMixedOrder; ++i) product += w(i, t) * right(i, j);
          EXPECT_NEAR(products(t, j), static_cast<double>(product), 1e-13);
        }
      }
    }
  }
}

TEST_P(MixedSolve, ProductsWithTheCovarianceDoNotMindWhatTheFactorIsKeptIn) {
  for (const bool roomy : {true, false}) {
    TileFactor factor = factor_of(scrambled, roomy);
    const Matrix<double> v = sine_columns(kMixedOrder, 3);
    Matrix<double> before = v;
    (void)factor.sweep(Sweep::both, before.view());
    Matrix<double> y(kMixedOrder, 3);
    (void)factor.multiply_covariance(
        {scrambled.points.data.data(), &scrambled.parameters, v.view(), y.view()});
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t i = 0; i < kMixedOrder; ++i) {
        long double sum = 0;
        for (std::int64_t k = 0; k < kMixedOrder; ++k) sum += scrambled.a(i, k) * v(k, j);
        ASSERT_NEAR(y(i, j), static_cast<double>(sum), 1e-13);
      }
    }
    Matrix<double> after = v;
    (void)factor.sweep(Sweep::both, after.view());
    EXPECT_TRUE(same_bits(after.data, before.data)) << "the factor is what it was";
  }
}

}  // namespace
}  // namespace strata::test
