// The automatic method where it begins with a sketch: when it does, what a sketch that was good for
// nothing changes, and the bits on any number of devices, in any memory.

#include <gtest/gtest.h>

#include <limits>

#include "qr/methods.hpp"
#include "strata/error.hpp"
#include "tests/qr/factored.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/device_memory.hpp"

namespace strata {
namespace {

using test::factored;
using test::Tall;

/// As many rows as the sketch of n columns wants, and a few.
std::int64_t enough_rows(std::int64_t n) {
  std::int64_t m = 1;
  while (!begins_with_sketch<double>(m, n, test::plain())) m *= 2;
  return m + 77;
}

void expect_promise(const Tall& v, const test::Factored<double>& got, const std::string& what) {
  const double n = static_cast<double>(v.cols);
  EXPECT_TRUE(got.info.ok) << what;
  const double error = test::orthogonality_of(got.q, got.q.cols);
  EXPECT_LE(error, 1e-14 * std::sqrt(n)) << what;
  EXPECT_GE(got.info.orthogonality, error) << what;
  EXPECT_LE(test::residual_of(v, got.q, got.r), 1e-14 * std::sqrt(n)) << what;
}

std::vector<std::string> names_of(const QrInfo& info) {
  std::vector<std::string> names;
  for (const QrStep& step : info.steps) names.push_back(step.what);
  return names;
}

TEST(QrSketched, BeginsWithASketchWhereColumnsAreManyAndRowsMore) {
  const QrOptions plain = test::plain();
  EXPECT_TRUE(begins_with_sketch<double>(1'000'000, 24, plain));
  EXPECT_TRUE(begins_with_sketch<double>(1'000'000, 128, plain));
  EXPECT_FALSE(begins_with_sketch<double>(1'000'000, 23, plain));
  EXPECT_FALSE(begins_with_sketch<double>(1'000'000, 129, plain));
  EXPECT_FALSE(begins_with_sketch<double>(8191, 24, plain));
  EXPECT_FALSE(begins_with_sketch<float>(1'000'000, 64, plain));
  EXPECT_FALSE(begins_with_sketch<double>(1'000'000, 64, test::plain(QrMethod::cholqr2)));
  QrOptions near = plain;
  near.rank_tolerance = 1e-8;  // which is beside lengths of V, not of a sketch
  EXPECT_FALSE(begins_with_sketch<double>(1'000'000, 64, near));
}

TEST(QrSketched, KeepsItsPromiseAtAnyCondition) {
  std::uint32_t seed = 0;
  test::Thinned thinned(3);
  for (const auto& [n, condition] : {std::pair<std::int64_t, double>{24, 1.0},
                                     {24, 1e7},
                                     {24, 4e11},
                                     {24, 4e12},
                                     {24, 1e13},
                                     {24, 4e13},
                                     {24, 1e16},
                                     {24, 1e20},
                                     {33, 1e3},
                                     {33, 1e13}}) {
    const std::uint32_t draw = 1000 * seed++;
    if (thinned.skips()) continue;
    const Tall v = test::with_condition(enough_rows(n), n, condition, 3);
    QrOptions options = test::plain();
    options.seed = draw;
    const auto got = factored(v, options);
    const std::string what = std::to_string(n) + ' ' + std::to_string(condition);
    expect_promise(v, got, what);
    const bool sketched = condition <= 4e11;  // which a sketch tells for sure
    EXPECT_EQ(got.info.steps.front().what == "sketch", sketched) << what;
    if (condition <= 1e13) {
      EXPECT_GE(got.info.condition, condition / 4) << what;
      EXPECT_LE(got.info.condition, condition * 4) << what;
    }
    if (!sketched) continue;
    EXPECT_EQ(got.info.passes, 3) << what;
    EXPECT_LT(got.info.steps[1].condition, 2) << what;
  }
}

TEST(QrSketched, WithoutMeasuringTheBoundIsNotBelowTheTruth) {
  const Tall v = test::with_condition(enough_rows(24), 24, 1e11, 4);
  QrOptions options = test::plain();
  options.verify = false;
  const auto got = factored(v, options);
  EXPECT_FALSE(got.info.measured);
  EXPECT_EQ(names_of(got.info), (std::vector<std::string>{"sketch", "cholesky"}));
  EXPECT_GE(got.info.orthogonality, test::orthogonality_of(got.q, got.q.cols));
  EXPECT_LE(test::orthogonality_of(got.q, got.q.cols), 1e-14 * std::sqrt(24.0));
}

TEST(QrSketched, GradedColumnsAndThoseBeyondTheRangeOfSquares) {
  for (const double step : {1e-6, 1e6, 1e-11, 1e11}) {  // to 1e-253 and 1e253
    Tall v = test::random_tall(enough_rows(24), 24, 8);
    double size = 1;
    for (std::int64_t j = 0; j < 24; ++j, size *= step)
      for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) *= size;
    expect_promise(v, factored(v, test::plain()), std::to_string(step));
  }
}

TEST(QrSketched, DependentAndZeroColumnsAreFoundWithoutIt) {
  Tall v = test::make_matrix<double>(enough_rows(24), 24, [](auto i, auto j) {
    return std::floor(32 * random_uniform(5, static_cast<std::uint64_t>(i * 24 + j))) - 16;
  });
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 9) = 2 * v(i, 3) - v(i, 5);
    v(i, 17) = 0;
    v(i, 23) = v(i, 0);
  }
  const auto got = factored(v, test::plain());
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, 21);
  EXPECT_EQ(got.info.dependent_columns, (std::vector<std::int64_t>{9, 17, 23}));
  EXPECT_NE(got.info.steps.front().what, "sketch");
}

TEST(QrSketched, AZeroColumnAloneDoesNotHinderIt) {
  Tall v = test::random_tall(enough_rows(24), 24, 12);
  for (std::int64_t i = 0; i < v.rows; ++i) v(i, 17) = 0;
  const auto got = factored(v, test::plain());
  EXPECT_EQ(got.info.dependent_columns, (std::vector<std::int64_t>{17}));
  EXPECT_EQ(got.info.steps.front().what, "sketch");
  EXPECT_TRUE(got.info.ok);
}

/// 32 rows of a tile and no others, times 32: rows meet in a bucket wherever their tiles do, so
/// some seed loses directions; what is returned is right all the same.
TEST(QrSketched, ASketchThatLosesDirectionsIsNotBelieved) {
  constexpr std::int64_t kColumns = 64;
  Tall v(enough_rows(kColumns), kColumns);
  std::fill(v.data.begin(), v.data.end(), 0.0);
  for (std::int64_t j = 0; j < kColumns; ++j) v(j * 256, j) = 1 + static_cast<double>(j % 7);
  int lost = 0;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    QrOptions options = test::plain();
    options.seed = seed;
    const auto got = factored(v, options);
    lost += got.info.steps.front().what == "sketch" ? 0 : 1;
    EXPECT_TRUE(got.info.ok) << seed;
    EXPECT_EQ(got.info.rank, kColumns) << seed;
    EXPECT_LE(test::orthogonality_of(got.q, got.q.cols), 1e-15) << seed;
  }
  EXPECT_GT(lost, 0) << "no sketch lost anything";
}

TEST(QrSketched, WhatIsNotFiniteIsNamed) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    Tall v = test::random_tall(enough_rows(24), 24, 13);
    v(7000, 20) = bad;
    v(7001, 3) = bad;
    try {
      (void)factored(v, test::plain());
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string(error.what()).find("(7000, 20)"), std::string::npos) << error.what();
    }
  }
}

TEST(QrSketched, AQThatIsNotStoredHasTheSameBits) {
  for (const double condition : {1e3, 1e12}) {
    const Tall v = test::with_condition(enough_rows(24), 24, condition, 14);
    const auto expected = factored(v, test::plain());
    ASSERT_EQ(expected.info.steps.front().what, "sketch");
    TallQr<double> implicit(TallInput<double>{v.view()}, test::plain());
    EXPECT_EQ(implicit.info().passes, 2);
    Tall q(v.rows, 24);
    (void)implicit.write(q.view());
    EXPECT_TRUE(test::same_bits(q.data, expected.q.data)) << condition;
  }
}

class QrSketchedRuns : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, QrSketchedRuns, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(QrSketchedRuns, HasItsBitsOnAnyDevicesInAnyMemory) {
  constexpr std::int64_t kColumns = 24;
  // Five spans of 16,384 rows, the last not whole; blocks have fewer rows, or in place all.
  const Tall v = test::with_condition(5 * 16384 - 1000, kColumns, 1e11, 9);
  for (const QrMethod method : {QrMethod::automatic, QrMethod::multi_sketch}) {
    const auto expected = factored(v, test::plain(method));
    ASSERT_EQ(expected.info.steps.front().what, "sketch");
    for (int devices = 1; devices <= 3; ++devices) {
      const std::string text = test::devices_text(GetParam(), devices);
      if (text.empty() || (test::kSanitized && devices == 2)) continue;
      for (const auto& [budget, policy] : {std::pair<std::int64_t, Policy>{5 << 20, Policy::opt},
                                           {5 << 20, Policy::sync},
                                           {64 << 20, Policy::opt}}) {
        if (test::kSanitized && (devices == 1) != (budget > 5 << 20)) continue;
        const auto got = factored(v, test::on(text, budget, policy, method));
        const std::string what = text + ' ' + std::to_string(budget);
        EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << what;
        EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << what;
        EXPECT_TRUE(test::executed_as_planned(got.info.report)) << what;
        EXPECT_EQ(got.info.passes, expected.info.passes) << what;
      }
    }
    const std::string one = test::devices_text(GetParam(), 1);
    test::DeviceMemory memory(GetParam());
    const MatrixView<double> there = memory.put(v.data, v.rows, v.cols, v.rows);
    QrOptions options;
    options.method = method;
    options.run.devices = one;
    options.wide_sums = WideSums::extraction;
    test::Matrix<double> r(kColumns, kColumns);
    (void)qr_in_place(there, r.view(), options);
    EXPECT_TRUE(test::same_bits(memory.get(there), expected.q.data)) << "in place";
    EXPECT_TRUE(test::same_bits(r.data, expected.r.data)) << "in place";
  }
}

}  // namespace
}  // namespace strata
