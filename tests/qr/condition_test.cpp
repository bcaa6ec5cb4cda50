// The condition that any method states is not below that of V, and the residual not below the
// truth, at the lower end of the range as well. The oracle is the exact triangle in 600 bits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/qr/exact_triangle.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/tall_kinds.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::Tall;

/// That of the columns that are not zeros: infinite where they are dependent.
template <class T>
double true_condition(const test::Matrix<T>& v) {
  const test::ExactTriangle exact = test::exact_triangle_of(v);
  std::int64_t columns = 0;
  for (const test::Many& length : exact.lengths) columns += length > 0 ? 1 : 0;
  return std::ssize(exact.kept) == columns ? exact.condition()
                                           : std::numeric_limits<double>::infinity();
}

/// ‖v_j − Q·r_j‖/‖v_j‖ in many digits, the largest.
template <class T>
double true_residual(const test::Matrix<T>& v, const test::Matrix<T>& q, const test::Matrix<T>& r) {
  using test::Many;
  double worst = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    Many left = 0;
    Many length = 0;
    for (std::int64_t i = 0; i < v.rows; ++i) {
      Many rest = v(i, j);
      length += rest * rest;
      for (std::int64_t k = 0; k <= j; ++k) rest -= Many(q(i, k)) * Many(r(k, j));
      left += rest * rest;
    }
    if (length > 0) worst = std::max(worst, static_cast<double>(sqrt(Many(left / length))));
  }
  return worst;
}

/// Where a method states numbers they bound those of V, Q and R.
template <class T>
void expect_bounds(const test::Matrix<T>& v, double condition, QrMethod method, bool verify) {
  QrOptions options = test::plain(method);
  options.verify = verify;
  const auto got = test::factored(v, options);
  SCOPED_TRACE(std::string(to_string(method)) + (verify ? "" : " without measuring"));
  EXPECT_GE(got.info.condition, condition * (1 - 1e-9));
  bool finite = true;
  for (const T x : got.q.data) finite = finite && std::isfinite(x);
  for (const T x : got.r.data) finite = finite && std::isfinite(x);
  if (finite && !std::isnan(got.info.residual)) {
    EXPECT_LE(true_residual(v, got.q, got.r), got.info.residual * (1 + 1e-9));
  }
}

TEST(QrCondition, OfNoMethodIsBelowTheTruth) {
  const std::uint64_t cases = test::campaign(4000, 36, 12);
  for (std::uint64_t i = 0; i < cases; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Tall v = test::tall_of_kind(i % test::kTallKinds, i);
    const double condition = true_condition(v);
    for (const QrMethod method : qr_methods()) {
      if (method == QrMethod::automatic) continue;  // certificate_test.cpp
      expect_bounds(v, condition, method, true);
      if (i % 3 == 0) expect_bounds(v, condition, method, false);
    }
  }
}

/// Pivots of rounding in the first R, at the lower end of the range and elsewhere.
TEST(QrCondition, TheResidualBehindABadFirstTriangleIsBounded) {
  for (const std::uint64_t i : {1883, 2279, 3226, 3359}) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Tall v = test::tall_of_kind(i % test::kTallKinds, i);
    for (const QrMethod method : {QrMethod::mrcqr_fp16, QrMethod::cholqr_wide_solve})
      expect_bounds(v, true_condition(v), method, true);
  }
}

TEST(QrCondition, OfFloatsIsNotBelowTheTruth) {
  for (std::uint64_t i = 0; i < test::campaign(400, 12, 6); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Tall wide = test::with_condition(40, 6, std::pow(10.0, static_cast<double>(i)), 90 + i);
    const auto v = test::make_matrix<float>(
        40, 6, [&](auto r, auto c) { return static_cast<float>(wide(r, c)); });
    const double condition = true_condition(v);
    for (const QrMethod method : qr_methods())
      if (method != QrMethod::automatic) expect_bounds(v, condition, method, true);
  }
}

/// Beyond 1e16 the triangle of rounded reflections has pivots of rounding, whatever V has: integers
/// up to 1e6 above a diagonal of ones, with a condition of 1e22 and more.
TEST(QrCondition, BeyondWhatRoundingLeavesIsNotStated) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const std::int64_t n = 5 + static_cast<std::int64_t>(seed);
    const Tall v = test::integers_above<double>(
        2 * n, n, [](auto) { return 1.0; }, 1000000, 60 + seed);
    const double truth = true_condition(v);
    ASSERT_GE(truth, 1e20);
    for (const QrMethod method : {QrMethod::tsqr, QrMethod::tsqr_flat, QrMethod::mgs,
                                  QrMethod::cgs2, QrMethod::cholqr_wide2, QrMethod::svqr})
      expect_bounds(v, truth, method, true);
  }
}

/// What is not hard is stated as it is.
TEST(QrCondition, OfModestConditionsIsNearTheTruth) {
  for (const double condition : {1.0, 1e2, 1e4}) {
    const Tall v = test::with_condition(300, 12, condition, 5);
    const double truth = true_condition(v);
    for (const QrMethod method : qr_methods())
      EXPECT_LE(test::factored(v, test::plain(method)).info.condition, 1.1 * truth)
          << to_string(method) << ' ' << condition;
  }
  const Tall hard = test::with_condition(300, 12, 1e9, 6);
  EXPECT_LE(test::factored(hard, test::plain(QrMethod::tsqr)).info.condition,
            1.1 * true_condition(hard));
}

/// Small integers times a power of two: Q is that of the integers to the bit.
TEST(QrCondition, ReflectionsOfSubnormalColumnsLoseNothingOfQ) {
  const Tall integers = test::make_matrix<double>(5000, 4, [](auto i, auto j) {
    return std::floor(200 * random_uniform(41, static_cast<std::uint64_t>(i + 5000 * j))) - 100;
  });
  for (const QrMethod method : {QrMethod::tsqr, QrMethod::tsqr_flat}) {
    const auto expected = test::factored(integers, test::plain(method));
    for (const int exponent : {-900, -990, -1030, -1066, -1074}) {
      SCOPED_TRACE(std::string(to_string(method)) + ' ' + std::to_string(exponent));
      Tall v = integers;
      for (std::int64_t i = 0; i < v.rows; ++i) {
        for (const std::int64_t j : {1, 3}) v(i, j) = std::ldexp(v(i, j), exponent);
      }
      const auto got = test::factored(v, test::plain(method));
      EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data));
      const double residual = test::residual_of(v, got.q, got.r);
      EXPECT_LE(residual, got.info.residual);
      // R has the digits that numbers of its size have, and that is told.
      EXPECT_EQ(got.info.ok, exponent > -1050) << residual;
      EXPECT_EQ(got.info.rescaled, exponent < -960);
      EXPECT_TRUE(got.info.dependent_columns.empty());
    }
  }
}

TEST(QrCondition, NoMethodIsSilentAboutSubnormalColumns) {
  for (const double factor : {1e-300, 1e-306, 1e-308, 1e-310, 1e-315, 1e-320}) {
    Tall v = test::random_tall(60, 3, 44);
    for (double& x : v.data) x *= factor;
    const double condition = true_condition(v);
    for (const QrMethod method : qr_methods()) {
      SCOPED_TRACE(std::string(to_string(method)) + ' ' + std::to_string(std::log10(factor)));
      const auto got = test::factored(v, test::plain(method));
      const double residual = true_residual(v, got.q, got.r);
      EXPECT_LE(residual, got.info.residual * (1 + 1e-9));
      EXPECT_GE(got.info.condition, condition * (1 - 1e-9));
      if (residual > 1e-14 * std::sqrt(3.0)) {
        EXPECT_FALSE(got.info.ok);
      }
    }
  }
}

}  // namespace
}  // namespace strata
