// R of a V that is only read.

#include <gtest/gtest.h>

#include "tests/qr/factored.hpp"
#include "tests/qr/procrustes.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::executed_as_planned;
using test::Factored;
using test::factored;
using test::kind_of;
using test::on;
using test::Tall;

template <class T>
struct Triangle {
  test::Matrix<T> r;
  QrInfo info;
};
template <class T>
Triangle<T> triangle_of(const test::Matrix<T>& v, const QrOptions& options) {
  Triangle<T> result{test::Matrix<T>(v.cols, v.cols), {}};
  result.info = qr_r(TallInput<T>{v.view()}, result.r.view(), options);
  return result;
}

TEST(QrTriangle, IsThatOfColumnsWithinRoundingOfV) {
  struct Case {
    const char* name;
    Tall v;
    int passes;  ///< 0: whatever it takes
  };
  Tall duplicate = test::random_tall(300, 12, 41);
  for (std::int64_t i = 0; i < 300; ++i) duplicate(i, 7) = 3 * duplicate(i, 2);
  for (std::int64_t i = 0; i < 300; ++i) duplicate(i, 9) = 0;
  const Case cases[] = {
      {"one column", test::random_tall(7, 1, 40), 1},
      {"square", test::random_tall(13, 13, 42), 1},
      {"K10", test::krylov(10), 1},
      {"K20", test::krylov(20), 1},
      {"K25", test::krylov(25), 2},
      {"K30", test::krylov(30), 2},
      {"sigma 1e8", test::with_condition(1500, 20, 1e8, 3), 1},
      {"sigma 1e14", test::with_condition(400, 20, 1e14, 3), 1},
      {"sigma 1e17", test::with_condition(400, 20, 1e17, 3), 2},
      {"Hilbert 1000 x 16", test::hilbert(1000, 16), 2},
      {"Hilbert 24 x 24", test::hilbert(24, 24), 0},
      {"Lauchli 1e-20", test::lauchli(20, [](auto) { return 1e-20; }), 2},
      {"graded to 1e-80", test::graded(500, 20, 1e80), 1},
      {"graded to 1e-250", test::graded(500, 20, 1e250), 3},
      {"rank 12 of 20", test::integers_of_rank(500, 20, 12, 70), 2},
      {"a duplicate and zeros", duplicate, 0},
  };
  test::Thinned thinned(3);
  for (const Case& c : cases) {
    if (thinned.skips()) continue;
    QrOptions options = test::plain();
    options.dependent = DependentColumns::fill;  // rows stay where they are
    const Triangle<double> got = triangle_of(c.v, options);
    const auto n = static_cast<double>(c.v.cols);
    EXPECT_TRUE(got.info.ok) << c.name;
    EXPECT_LE(test::backward_error(c.v, got.r), 1e-14 * std::sqrt(n)) << c.name;
    if (c.passes > 0) {
      EXPECT_EQ(got.info.passes, c.passes) << c.name;
    }
    EXPECT_TRUE(std::isnan(got.info.orthogonality)) << c.name;
    const QrInfo whole = factored(c.v, options).info;
    EXPECT_EQ(got.info.rank, whole.rank) << c.name;
    EXPECT_EQ(got.info.dependent_columns, whole.dependent_columns) << c.name;
    // Both are upper bounds; beyond 1e13 that of the wide sums, which R has, is farther from κ.
    EXPECT_GE(got.info.condition / whole.condition, 0.9) << c.name;
    EXPECT_LE(got.info.condition / whole.condition, whole.condition < 1e13 ? 1.1 : 2) << c.name;
    EXPECT_TRUE(executed_as_planned(got.info.report)) << c.name;
  }
}

// ---- the same bits

class QrTriangles : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, QrTriangles, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(QrTriangles, HaveTheSameBitsOnAnyDevicesInAnyBudgetAndPolicy) {
  // Blocks of 4096 rows, the last one short; one pass and two.
  test::Thinned thinned(5);
  for (const double condition : {1e12, 1e17}) {
    const Tall v = test::with_condition(20001, 40, condition, 5);
    const Triangle<double> expected = triangle_of(v, on("host:1", 64 << 20));
    ASSERT_TRUE(expected.info.ok);
    ASSERT_EQ(expected.info.passes, condition < 1e15 ? 1 : 2);
    for (const int devices : {1, 2, 3, 4}) {
      const std::string text = test::devices_text(GetParam(), devices);
      if (text.empty()) continue;
      for (const std::int64_t budget : {3 << 20, 64 << 20}) {
        for (const Policy policy : {Policy::sync, Policy::v1, Policy::opt}) {
          if (policy != Policy::opt && devices > 2) continue;
          if (thinned.skips()) continue;
          const Triangle<double> got = triangle_of(v, on(text, budget, policy));
          EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << text << ' ' << budget;
          EXPECT_EQ(got.info.condition, expected.info.condition);
          EXPECT_TRUE(executed_as_planned(got.info.report)) << text << ' ' << budget;
        }
      }
    }
  }
}

TEST(QrTriangle, HasTheBitsOfQrWhereThatHasOneSolve) {
  for (const std::int64_t m : {1, 5, 127, 1024, 1025, 9001}) {
    const std::int64_t n = std::min<std::int64_t>(m, 5);
    const Tall v = test::random_tall(m, n, 50);
    const auto rows = test::make_matrix<double>(n, m, [&](auto i, auto j) { return v(j, i); });
    const Factored<double> whole = factored(v, on("host:1", 64 << 20));
    Tall r(n, n);
    const QrInfo info =
        qr_r(TallInput<double>{rows.view(), true}, r.view(), on("host:1", 64 << 20));
    EXPECT_TRUE(test::same_bits(r.data, whole.r.data)) << m;
    EXPECT_EQ(info.passes, 1);
    EXPECT_NEAR(info.condition / whole.info.condition, 1, 1e-9);  // what each may round differs
    EXPECT_EQ(info.numerical_rank, n);
  }
}

TEST(QrTriangle, ReadsVOnceAndWritesOnlyR) {
  const Tall v = test::with_condition(20001, 40, 1e12, 5);
  const std::int64_t bytes = v.view().size() * 8;
  const QrInfo info = triangle_of(v, on("host:1", 3 << 20, Policy::sync)).info;
  // Beside V the sums of blocks, which this policy brings home and back, and scales.
  const std::int64_t sums = 2 * 5 * 40 * 40 * 16;
  EXPECT_GE(info.report.traffic.host_to_device_bytes, bytes);
  EXPECT_LE(info.report.traffic.host_to_device_bytes, bytes + sums + 5 * 40 * 8);
  EXPECT_LE(info.report.traffic.device_to_host_bytes, sums);
}

TEST(QrTriangle, OfFloats) {
  for (const double condition : {1e1, 1e3, 1e5, 1e6, 1e9}) {
    const Tall wide = test::with_condition(700, 12, condition, 8);
    const auto v = test::make_matrix<float>(700, 12, [&](auto i, auto j) { return wide(i, j); });
    const Tall same = test::make_matrix<double>(700, 12, [&](auto i, auto j) { return v(i, j); });
    const Triangle<float> got = triangle_of(v, test::plain());
    EXPECT_TRUE(got.info.ok) << condition;
    EXPECT_EQ(got.info.rank, 12) << condition;
    EXPECT_EQ(got.info.passes, condition < 5e6 ? 1 : 2) << condition;
    const Tall r = test::make_matrix<double>(12, 12, [&](auto i, auto j) { return got.r(i, j); });
    EXPECT_LE(test::backward_error(same, r), 2e-7 * std::sqrt(12.0)) << condition;
  }
}

// ---- dependent columns and bad input

TEST(QrTriangle, DropsRowsOfDependentColumns) {
  Tall v = test::integers_of_rank(600, 9, 9, 60);
  for (std::int64_t i = 0; i < 600; ++i) {
    v(i, 3) = 2 * v(i, 0) - v(i, 1);
    v(i, 6) = 0;
  }
  const Triangle<double> got = triangle_of(v, test::plain());
  const Factored<double> whole = factored(v, test::plain());
  EXPECT_EQ(got.info.dependent_columns, (std::vector<std::int64_t>{3, 6}));
  EXPECT_EQ(got.info.rank, 7);
  for (std::int64_t j = 0; j < 9; ++j) {
    double length = 0;
    for (std::int64_t i = 0; i < 9; ++i) length = std::max(length, std::abs(whole.r(i, j)));
    for (std::int64_t i = 0; i < 9; ++i)
      EXPECT_NEAR(got.r(i, j), whole.r(i, j), 1e-13 * length) << i << ' ' << j;
  }
  QrOptions near = test::plain();
  near.rank_tolerance = 1e-10;
  for (std::int64_t i = 0; i < 600; ++i)
    v(i, 8) = v(i, 2) * (1 + 1e-13 * static_cast<double>(i % 3));
  EXPECT_EQ(triangle_of(v, near).info.dependent_columns, (std::vector<std::int64_t>{3, 6, 8}));
  const Triangle<double> zeros = triangle_of(Tall(50, 3), test::plain());
  EXPECT_TRUE(zeros.info.ok);
  EXPECT_EQ(zeros.info.rank, 0);
  const Triangle<double> nothing = triangle_of(Tall(4, 0), test::plain());
  EXPECT_TRUE(nothing.info.ok);
}

TEST(QrTriangle, RefusesWhatItCannotDo) {
  const Tall v = test::random_tall(3000, 5, 13);
  const auto kind = [&](const Tall& of, std::int64_t order, const QrOptions& options) {
    Tall r(order, order);
    return kind_of([&] { (void)qr_r(TallInput<double>{of.view()}, r.view(), options); });
  };
  QrOptions other = test::plain();
  other.method = QrMethod::tsqr;
  EXPECT_EQ(kind(v, 5, other), ErrorKind::misuse);
  EXPECT_EQ(kind(v, 4, test::plain()), ErrorKind::misuse);
  EXPECT_EQ(kind(Tall(3, 4), 4, test::plain()), ErrorKind::misuse);
  EXPECT_EQ(kind(Tall(600, 513), 513, test::plain()), ErrorKind::misuse);
  EXPECT_EQ(kind(v, 5, on("host:1", 20000)), ErrorKind::memory);
  QrOptions cancelled = test::plain();
  cancelled.run.progress = [](const Progress&) { return false; };
  EXPECT_EQ(kind(v, 5, cancelled), ErrorKind::cancelled);
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Tall broken = v;
    broken(1234, 3) = bad;
    EXPECT_EQ(kind(broken, 5, test::plain()), ErrorKind::input);
  }
  Tall large = v;
  for (std::int64_t i = 0; i < 3000; ++i) large(i, 2) = 1.5e308;
  EXPECT_EQ(kind(large, 5, test::plain()), ErrorKind::input);
}

}  // namespace
}  // namespace strata
