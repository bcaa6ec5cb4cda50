// Columns whose squares leave the range of doubles, columns of zeros, and what is refused: columns
// that are too long, and more of them than a kernel holds.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/qr/factored.hpp"

namespace strata {
namespace {

using test::error_of;
using test::Factored;
using test::factored;
using test::Tall;

TEST(QrRange, ScalesWhatIsTooLargeOrTooSmallToSquare) {
  for (const double factor : {1e-300, 1e-200, 1e200, 1e300}) {
    const Tall one = test::random_tall(400, 6, 12);
    Tall v = one;
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, 1) *= factor;
    const Factored<double> got = factored(v, test::plain());
    EXPECT_TRUE(got.info.ok) << factor;
    EXPECT_TRUE(got.info.rescaled) << factor;
    EXPECT_EQ(got.info.rank, 6) << factor;
    EXPECT_LE(test::orthogonality_of(got.q, 6), 2e-14) << factor;
    EXPECT_LE(test::residual_of(v, got.q, got.r), 2e-14) << factor;
  }
  EXPECT_FALSE(factored(test::random_tall(400, 6, 12), test::plain()).info.rescaled);
}

/// Beside the length of each column, in 64 bits and with their exponents; to where R has no digits.
TEST(QrRange, TheResidualIsThatOfColumnsHoweverShort) {
  for (int exponent = -960; exponent >= -1060; exponent -= 5) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::int64_t n = 1 + static_cast<std::int64_t>(seed);
      Tall v = test::random_tall(20 + 7 * n, n, seed + 3);
      for (double& x : v.data) x = std::ldexp(x, exponent);
      const Factored<double> got = factored(v, test::plain());
      if (!std::isfinite(got.info.residual) || got.info.rank < n) continue;
      for (std::int64_t j = 0; j < n; ++j) {
        long double length = 0;
        long double off = 0;
        for (std::int64_t i = 0; i < v.rows; ++i) {
          long double r = v(i, j);
          for (std::int64_t k = 0; k <= j; ++k)
            r -= static_cast<long double>(got.q(i, k)) * static_cast<long double>(got.r(k, j));
          length += static_cast<long double>(v(i, j)) * static_cast<long double>(v(i, j));
          off += r * r;
        }
        EXPECT_LE(std::sqrt(static_cast<double>(off / length)), got.info.residual)
            << exponent << ' ' << seed << ' ' << j;
      }
    }
  }
}

TEST(QrRange, AColumnOfZerosIsNotOneWhoseSquaresUnderflow) {
  const Tall full = test::random_tall(5000, 12, 14);
  Tall zero = full;
  Tall tiny = full;  // its squares are zeros too
  Tall both = full;
  for (std::int64_t i = 0; i < full.rows; ++i) {
    zero(i, 4) = both(i, 4) = 0;
    tiny(i, 7) = both(i, 7) = std::ldexp(full(i, 7), -600);
  }
  struct Case {
    const char* name;
    const Tall* v;
    int passes;  ///< a sum, the largest elements, a sum with scales, a solve
    bool rescaled;
    std::vector<std::int64_t> dependent;
  };
  const Case cases[] = {{"full", &full, 2, false, {}},
                        {"a column of zeros", &zero, 3, false, {4}},
                        {"a tiny column", &tiny, 4, true, {}},
                        {"both", &both, 4, true, {4}}};
  for (const Case& c : cases) {
    const Factored<double> got = factored(*c.v, test::plain());
    const auto rank = 12 - std::ssize(c.dependent);
    EXPECT_TRUE(got.info.ok) << c.name;
    EXPECT_EQ(got.info.passes, c.passes) << c.name;
    EXPECT_EQ(got.info.rescaled, c.rescaled) << c.name;
    EXPECT_EQ(got.info.rank, rank) << c.name;
    EXPECT_EQ(got.info.dependent_columns, c.dependent) << c.name;
    EXPECT_LE(test::orthogonality_of(got.q, rank), 1e-14 * std::sqrt(12.0)) << c.name;
    EXPECT_LE(test::residual_of(*c.v, got.q, got.r), 1e-14 * std::sqrt(12.0)) << c.name;
    Tall r(12, 12);
    const QrInfo alone = qr_r({.view = c.v->view()}, r.view(), test::plain());
    EXPECT_EQ(alone.passes, c.passes - 1) << c.name;
    EXPECT_EQ(alone.rescaled, c.rescaled) << c.name;
    EXPECT_EQ(alone.dependent_columns, c.dependent) << c.name;
  }
  // Methods that scale nothing by themselves have nothing to scale either.
  for (const QrMethod method : {QrMethod::cholqr2, QrMethod::cgs2, QrMethod::mgs}) {
    const Factored<double> got = factored(zero, test::plain(method));
    EXPECT_FALSE(got.info.rescaled) << to_string(method);
    EXPECT_EQ(got.info.dependent_columns, std::vector<std::int64_t>{4}) << to_string(method);
    EXPECT_LE(test::residual_of(zero, got.q, got.r), 1e-13) << to_string(method);
  }
}

TEST(QrRange, LeastSquaresLeaveOutAColumnOfZeros) {
  Tall a = test::random_tall(300, 5, 15);
  for (std::int64_t i = 0; i < a.rows; ++i) a(i, 2) = 0;
  const Tall b = test::random_tall(300, 1, 16);
  Tall x(5, 1);
  const LeastSquaresInfo info = least_squares(std::as_const(a).view(), b.view(), x.view(),
                                              test::for_least_squares(test::plain()));
  EXPECT_FALSE(info.ok);  // x is one of many
  EXPECT_LE(info.error_bound, 1e-12);
  EXPECT_EQ(info.dependent_columns, std::vector<std::int64_t>{2});
  EXPECT_EQ(x(2, 0), 0);
  // Its residual is orthogonal to the others.
  for (std::int64_t j = 0; j < 5; ++j) {
    double product = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      double rest = b(i, 0);
      for (std::int64_t k = 0; k < 5; ++k) rest -= a(i, k) * x(k, 0);
      product += a(i, j) * rest;
    }
    EXPECT_NEAR(product, 0, 1e-11) << j;
  }
}

TEST(QrRange, RefusesAFiniteColumnThatIsLongerThanTheLargestDouble) {
  Tall v = test::random_tall(600, 5, 19);
  for (std::int64_t i = 0; i < v.rows; ++i) v(i, 3) = 1.5e308;
  const Tall before = v;
  Tall r(5, 5);
  for (const QrMethod method : qr_methods()) {
    const Error error = error_of([&] { (void)qr(v.view(), r.view(), test::plain(method)); });
    EXPECT_EQ(error.kind(), ErrorKind::input) << to_string(method);
    EXPECT_NE(std::string(error.what()).find("column 3"), std::string::npos) << error.what();
    EXPECT_TRUE(test::same_bits(v.data, before.data)) << to_string(method);
  }
}

TEST(QrRange, WhatHoldsFewColumnsSaysWhatTakesMore) {
  const auto names = [](const char* what, auto&& f) {
    const Error error = error_of(f);
    EXPECT_EQ(error.kind(), ErrorKind::misuse) << what;
    EXPECT_NE(std::string(error.what()).find("takes more"), std::string::npos) << error.what();
  };
  Tall v(700, 600);
  Tall r(600, 600);
  names("another method", [&] { (void)qr(v.view(), r.view(), test::plain(QrMethod::cholqr2)); });
  names("R alone", [&] { (void)qr_r({.view = v.view()}, r.view(), test::plain()); });
  names("an implicit Q", [&] { TallQr<double>({.view = v.view()}, test::plain()); });
  names("a plan", [&] { (void)simulate_qr(100000, 600, Machine::emulated(1, 100000000)); });
}

}  // namespace
}  // namespace strata
