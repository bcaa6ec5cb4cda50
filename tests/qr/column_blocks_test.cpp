// More columns than one pass holds: the same promise, dependent columns, the same bits.

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "strata/error.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/tall_kinds.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::factored;
using test::Tall;

/// Random columns of m rows, some of them spoiled.
Tall many_columns(std::int64_t m, std::int64_t n) { return test::random_tall(m, n, 71); }

void expect_promise(const Tall& v, const QrOptions& options, std::int64_t rank) {
  const auto got = factored(v, options);
  const double promise = 1e-14 * std::sqrt(static_cast<double>(v.cols));
  const bool drop = options.dependent == DependentColumns::drop;
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, rank);
  EXPECT_TRUE(got.info.measured);
  const double error = test::orthogonality_of(got.q, drop ? rank : v.cols);
  EXPECT_LE(error, promise);
  EXPECT_GE(got.info.orthogonality, error * (1 - 1e-3));
  EXPECT_LE(test::residual_of(v, got.q, got.r), promise);
}

TEST(QrOfManyColumns, KeepsThePromiseOfOneBlock) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  Tall v = many_columns(900, 600);
  expect_promise(v, test::plain(), 600);
  // Nearly dependent on columns of another block and of their own, and graded.
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 300) = v(i, 5) + 1e-9 * v(i, 300);
    v(i, 520) = v(i, 515) + 1e-12 * v(i, 520);
    v(i, 550) = v(i, 100) + v(i, 400) + 1e-11 * v(i, 550);
    v(i, 17) *= 1e100;
    v(i, 560) *= 1e-100;
  }
  expect_promise(v, test::plain(), 600);
}

TEST(QrOfManyColumns, FindsDependentColumnsInAndBetweenBlocks) {
  Tall v = many_columns(560, 530);
  for (double& x : v.data) x = std::round(std::ldexp(x, 20));
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 9) = 0;
    v(i, 200) = v(i, 100);
    v(i, 400) = v(i, 100);
    v(i, 520) = 2 * v(i, 3) - v(i, 300);
  }
  const auto got = factored(v, test::plain());
  EXPECT_EQ(got.info.dependent_columns, (std::vector<std::int64_t>{9, 200, 400, 520}));
  EXPECT_EQ(got.info.numerical_rank, 526);
  if (!test::kSanitized) expect_promise(v, test::plain(), 526);
  QrOptions fill = test::plain();
  fill.dependent = DependentColumns::fill;
  expect_promise(v, fill, 526);
}

TEST(QrOfManyColumns, HasTheSameBitsOnSeveralDevices) {
  const Tall v = many_columns(3000, 520);
  QrOptions options = test::plain();
  const auto expected = factored(v, options);
  for (const char* devices : {"host:2", "host:3"}) {
    if (test::kSanitized && devices == std::string("host:2")) continue;
    options.run.devices = devices;
    options.run.device_memory_bytes = 26 << 20;  // of several blocks of rows: not all of V
    const auto got = factored(v, options);
    EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << devices;
    EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << devices;
    EXPECT_EQ(got.info.report.traffic,
              static_cast<const Traffic&>(got.info.report.planned_traffic));
  }
}

TEST(QrOfManyColumns, OfFloatsIsOrthonormalToTheirRounding) {
  const Tall wide = many_columns(560, 540);
  const auto v = test::make_matrix<float>(560, 540, [&](auto i, auto j) { return wide(i, j); });
  const auto got = factored(v, test::plain());
  EXPECT_TRUE(got.info.ok);
  EXPECT_LE(test::orthogonality_of(got.q, 540), 1e-5 * std::sqrt(540.0));
  EXPECT_LE(test::residual_of(v, got.q, got.r), 1e-5);
}

TEST(QrOfManyColumns, NamesWhatIsNotFiniteAndLeavesV) {
  Tall v = many_columns(600, 530);
  v(44, 525) = std::nan("");
  const Tall before = v;
  Tall r(530, 530);
  try {
    (void)qr(v.view(), r.view(), test::plain());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("(44, 525)"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(test::same_bits(v.data, before.data));
}

/// What is certified, beside the truth: a residual that may be twice the promise here, since
/// columns are taken for dependent at a distance.
template <class T>
test::Factored<T> expect_certified(const test::Matrix<T>& v, const QrOptions& options) {
  const auto got = factored(v, options);
  const double promise =
      (std::is_same_v<T, double> ? 1e-14 : 1e-5) * std::sqrt(static_cast<double>(v.cols));
  const QrInfo& info = got.info;
  const bool drop = options.dependent == DependentColumns::drop;
  EXPECT_TRUE(info.ok);
  EXPECT_EQ(info.rank, v.cols - std::ssize(info.dependent_columns));
  const double error = test::orthogonality_of(got.q, drop ? info.rank : v.cols);
  EXPECT_LE(error, promise);
  EXPECT_LE(error, info.orthogonality * (1 + 1e-3));
  const double residual = test::residual_of(v, got.q, got.r);
  EXPECT_LE(residual, info.residual);
  EXPECT_LE(info.residual, 2.5 * (promise + options.rank_tolerance));
  return got;
}

TEST(QrOfManyColumns, KeepsThePromiseWhereHundredsDependByRounding) {
  const Tall powers = test::vandermonde<double>(700, 530, -1, 1);
  const auto got = expect_certified(powers, test::plain());
  EXPECT_GE(got.info.rank, 50);  // of singular values above 1e-13 of the columns' length
  EXPECT_LE(got.info.rank, 250);
  if (test::kSanitized) return;
  QrOptions options = test::plain();
  options.dependent = DependentColumns::fill;
  (void)expect_certified(powers, options);
  options = test::plain();
  options.rank_tolerance = 1e-9;
  (void)expect_certified(powers, options);
  (void)expect_certified(test::vandermonde<float>(600, 520, -1, 1), test::plain());
}

/// Matrices of structure with more columns than a kernel holds.
Tall wide_of_kind(std::uint64_t kind, std::uint64_t seed) {
  const auto of = [seed](std::uint64_t which, std::int64_t i) {
    return random_uniform(9000 + 10 * seed + which, static_cast<std::uint64_t>(i));
  };
  const auto n = 513 + static_cast<std::int64_t>(500 * of(0, 0) * of(0, 1));
  const auto m = n + static_cast<std::int64_t>(200 * of(0, 2));
  const auto make = [&](auto&& element) { return test::make_matrix<double>(m, n, element); };
  switch (kind) {
    case 0: return test::vandermonde<double>(m, n, of(1, 0) - 1.1, 1);
    case 1: return make([&](auto i, auto j) { return 1 / (of(1, i) + of(2, j) + 1e-3); });
    case 2:  // Krylov vectors of a diagonal matrix
      return make([&](auto i, auto j) {
        return of(1, i) * std::pow(2 * of(2, i) - 1, static_cast<double>(j));
      });
    case 3: {  // copies of columns, in units
      const auto few = 1 + static_cast<std::int64_t>(static_cast<double>(n) * of(1, 0));
      return make([&](auto i, auto j) {
        const auto from = static_cast<std::int64_t>(static_cast<double>(few) * of(2, j));
        return (of(3, i + from * m) - 0.5) * std::pow(10.0, 300 * of(4, j) - 150);
      });
    }
    case 4:  // Kahan's
      return make([&](auto i, auto j) {
        return i > j ? 0 : std::pow(0.6, static_cast<double>(i)) * (i == j ? 1 : -0.8);
      });
    case 5:  // a few powers of two in each column, a quarter of them sums of others
      return make([&](auto i, auto j) {
        double sum = 0;
        for (const std::int64_t k : {j, j % 4 == 3 ? j / 2 : j}) {
          for (std::int64_t e = 0; e < 3; ++e) {
            if (i == static_cast<std::int64_t>(static_cast<double>(m) * of(1, 3 * k + e)))
              sum += std::exp2(std::floor(64 * of(2, 3 * k + e)) - 30);
          }
        }
        return sum;
      });
    case 6:  // columns of zeros
      return make([&](auto i, auto j) { return of(1, j) < 0.5 ? 0 : of(2, i + j * m) - 0.5; });
    default: {  // twins
      const double apart = std::pow(10.0, -17 * of(1, 0));
      return make([&](auto i, auto j) {
        return of(2, i + j / 2 * m) - 0.5 + (j % 2 == 0 ? 0 : apart * of(3, i + j * m));
      });
    }
  }
}

TEST(QrOfManyColumns, IsTrueOfStructures) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const std::uint64_t cases = test::campaign(320, 8, 1);
  for (std::uint64_t i = 0; i < cases; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    (void)expect_certified(wide_of_kind(i % 8, i), test::plain());
  }
}

TEST(QrOfManyColumns, FillsBesideFewColumnsOfARectangleThatIsNearlySquare) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  Tall v = many_columns(790, 780);  // the last block has as many rows left as it has columns
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows && j % 9 != 0; ++i) v(i, j) = v(i, j - j % 9);
  QrOptions options = test::plain();
  options.dependent = DependentColumns::fill;
  const auto got = expect_certified(v, options);
  EXPECT_EQ(got.info.rank, 87);
}

}  // namespace
}  // namespace strata
