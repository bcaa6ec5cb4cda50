// More columns than one pass holds: the same promise, dependent columns, the same bits.

#include <gtest/gtest.h>

#include "strata/error.hpp"
#include "tests/qr/factored.hpp"
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
  Tall v = many_columns(700, 530);
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
  expect_promise(v, test::plain(), 526);
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
  const Tall wide = many_columns(800, 540);
  const auto v = test::make_matrix<float>(800, 540, [&](auto i, auto j) { return wide(i, j); });
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

}  // namespace
}  // namespace strata
