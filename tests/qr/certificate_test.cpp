// What qr() says of a result is never better than the result: residuals, orthogonality, rank and
// condition on matrices with structure, against 600 bits, long double, and ranks by construction.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "qr/exact_rank.hpp"
#include "tests/qr/exact_triangle.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/tall_kinds.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::Tall;

template <class T>
constexpr double kPromise = std::is_same_v<T, double> ? 1e-14 : 1e-5;

/// What is certified, beside the truth.
template <class T>
void expect_true(const test::Matrix<T>& v, const std::string& name) {
  const test::ExactTriangle exact = test::exact_triangle_of(v);
  const double promise = kPromise<T> * std::sqrt(static_cast<double>(v.cols));
  for (const bool verify : {true, false}) {
    SCOPED_TRACE(name + (verify ? "" : " --no-verify"));
    QrOptions options = test::plain();
    options.verify = verify;
    const auto got = test::factored(v, options);
    const QrInfo& info = got.info;
    const double residual = test::residual_of(v, got.q, got.r);
    const double orthogonality = test::orthogonality_of(got.q, info.rank);
    EXPECT_LE(residual, info.residual + 1e-18);
    if (verify) {
      EXPECT_LE(orthogonality, info.orthogonality * (1 + 1e-3) + 1e-17);
    }
    EXPECT_LE(info.rank, std::ssize(exact.kept));
    if (!info.ok) continue;
    EXPECT_LE(residual, promise);
    EXPECT_LE(orthogonality, promise);
    ASSERT_EQ(info.rank, std::ssize(exact.kept));
    for (const std::int64_t j : exact.kept)
      EXPECT_FALSE(
          std::binary_search(info.dependent_columns.begin(), info.dependent_columns.end(), j));
    const double condition = exact.condition();
    EXPECT_GE(info.condition, condition * (1 - 1e-9));
    if (condition < 1e12 && std::is_same_v<T, double>) {
      EXPECT_LE(info.condition, 1.05 * condition);
    }
  }
}
template <class T>
void expect_done(const test::Matrix<T>& v, const std::string& name) {
  expect_true(v, name);
  EXPECT_TRUE(test::factored(v, test::plain()).info.ok) << name;
}

/// One row that is long beside the others, as a sentinel in a file of data: columns are nearly
/// parallel, and independent.
template <class T>
test::Matrix<T> with_stray_row(double size, std::uint64_t seed) {
  return test::make_matrix<T>(40, 10, [&](auto i, auto j) {
    return random_normal(seed, static_cast<std::uint64_t>(40 * j + i)) * (i == 7 ? size : 1.0);
  });
}

TEST(Certificate, IsTrueOfStrayRows) {
  for (const double size : {1e6, 1e8, 1e9, 1e10, 1e12, 1e15, 1e18}) {
    for (std::uint64_t seed = 0; seed < test::campaign(4, 4, 1); ++seed) {
      const std::string name = std::to_string(std::log10(size));
      expect_true(with_stray_row<float>(size, seed), name + " in float");
      EXPECT_EQ(test::factored(with_stray_row<float>(size, seed), test::plain()).info.rank, 10);
      expect_done(with_stray_row<double>(size, seed), name);
      // Copies of columns beside that.
      test::Matrix<float> v = with_stray_row<float>(size, seed);
      for (std::int64_t i = 0; i < v.rows; ++i) v(i, 6) = v(i, 2);
      EXPECT_EQ(test::factored(v, test::plain()).info.rank, 9) << name;
    }
  }
}

/// Beyond what a wide Gram matrix tells.
TEST(Certificate, TheRankBesideAStrayRowOfAnySizeIsExact) {
  for (const double size : {1e25, 1e30, 1e60, 1e150}) {
    const Tall v = with_stray_row<double>(size, 2);
    const auto got = test::factored(v, test::plain());
    EXPECT_TRUE(got.info.ok) << size;
    EXPECT_EQ(got.info.rank, 10) << size;
    EXPECT_LE(test::residual_of(v, got.q, got.r), got.info.residual);
    EXPECT_LE(test::orthogonality_of(got.q, 10), got.info.orthogonality);
    Tall r(10, 10);
    const QrInfo alone = qr_r(TallInput<double>{v.view()}, r.view(), test::plain());
    EXPECT_EQ(alone.rank, 10) << size;
  }
}

/// A few powers of two in each column, as coefficients of a model in units of its own; some columns
/// are sums of others. Kept columns may differ by less than rounding, dropped ones by that alone.
template <class T>
test::Matrix<T> sparse_columns(std::uint64_t seed) {
  const auto pick = [&](std::uint64_t which, std::int64_t i, std::int64_t count) {
    return static_cast<std::int64_t>(
        static_cast<double>(count) *
        random_uniform(9500 + which + 8 * seed, static_cast<std::uint64_t>(i)));
  };
  const double sizes[] = {1e10, 0x1p-30, 1, -1, 0x1p-10, -1e10, 0x1p20, 3};
  const std::int64_t n = 3 + pick(0, 0, 6);
  test::Matrix<T> v(n + pick(0, 1, 3), n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t e = 0; e <= pick(1, j, 3); ++e)
      v(pick(2, 3 * j + e, v.rows), j) = static_cast<T>(sizes[pick(3, 3 * j + e, 8)]);
  if (pick(0, 2, 10) < 4) return v;
  const std::int64_t sum = pick(0, 3, n);
  const std::int64_t first = pick(0, 4, n);
  const std::int64_t second = pick(0, 5, n);
  const T times = static_cast<T>(std::exp2(static_cast<double>(pick(0, 6, 3) - 1)));
  for (std::int64_t i = 0; i < v.rows; ++i) v(i, sum) = times * v(i, first) + v(i, second);
  return v;
}

/// By elimination modulo a prime, of elements that are multiples of 2^-40.
template <class T>
std::int64_t rank_by_elimination(const test::Matrix<T>& v) {
  constexpr std::int64_t kPrime = 1'000'000'007;
  auto rest = test::make_matrix<std::int64_t>(v.rows, v.cols, [&](auto i, auto j) {
    const double x = std::fmod(std::ldexp(double{v(i, j)}, 40), static_cast<double>(kPrime));
    return static_cast<std::int64_t>(x);
  });
  std::int64_t rank = 0;
  for (std::int64_t j = 0; j < v.cols && rank < v.rows; ++j) {
    std::int64_t pivot = rank;
    while (pivot < v.rows && rest(pivot, j) == 0) ++pivot;
    if (pivot == v.rows) continue;
    for (std::int64_t k = 0; k < v.cols; ++k) std::swap(rest(pivot, k), rest(rank, k));
    for (std::int64_t i = rank + 1; i < v.rows; ++i) {
      const std::int64_t by = rest(i, j);  // rows times each other's leading elements
      for (std::int64_t k = j; k < v.cols; ++k)
        rest(i, k) = (rest(i, k) * rest(rank, j) % kPrime - by * rest(rank, k) % kPrime) % kPrime;
    }
    ++rank;
  }
  return rank;
}

template <class T>
void expect_exact_rank(const test::Matrix<T>& v, const std::string& name) {
  SCOPED_TRACE(name);
  const auto got = test::factored(v, test::plain());
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, rank_by_elimination(v));
  EXPECT_LE(got.info.residual, kPromise<T> * std::sqrt(static_cast<double>(v.cols)));
  EXPECT_LE(test::residual_of(v, got.q, got.r), got.info.residual + 1e-18);
  EXPECT_LE(test::orthogonality_of(got.q, got.info.rank), got.info.orthogonality + 1e-17);
}

TEST(Certificate, IsTrueOfSparseColumnsOfManySizes) {
  const std::uint64_t cases = test::campaign(20'000, 1000, 100);
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::string name = "case " + std::to_string(i);
    expect_exact_rank(sparse_columns<double>(i), name);
    if (i % 5 == 0) expect_exact_rank(sparse_columns<float>(i), name + " in float");
  }
}

TEST(Certificate, IsTrueOfColumnsThatDependByATolerance) {
  for (const double tolerance : {1e-14, 1e-12, 1e-8}) {
    QrOptions options = test::plain();
    options.rank_tolerance = tolerance;
    for (const auto& v : {test::vandermonde<double>(300, 200, -1, 1),
                          test::vandermonde<double>(150, 90, 0, 1), test::tall_of_kind(2, 5)}) {
      const auto got = test::factored(v, options);
      EXPECT_TRUE(got.info.ok) << tolerance;
      EXPECT_LE(got.info.residual, 1e-14 * std::sqrt(static_cast<double>(v.cols)) + 2 * tolerance);
      EXPECT_LE(test::residual_of(v, got.q, got.r), got.info.residual);
      EXPECT_LE(test::orthogonality_of(got.q, got.info.rank), got.info.orthogonality);
    }
  }
}

/// R has such numbers as the columns have, with as few digits.
TEST(Certificate, IsTrueOfSubnormalColumns) {
  for (const int down : {0, 4, 20, 36, 50}) {
    const auto column = [&](double small) {
      return [small](auto i, auto j) {
        return random_normal(3, static_cast<std::uint64_t>(30 * j + i)) * (j == 1 ? small : 1.0);
      };
    };
    expect_true(test::make_matrix<double>(30, 3, column(std::ldexp(1.0, -1022 - down))),
                std::to_string(down));
    expect_true(test::make_matrix<float>(30, 3, column(std::ldexp(1.0, -126 - down / 3))),
                std::to_string(down) + " in float");
  }
}

TEST(Certificate, IsTrueOfMatricesWithManyNearDependencies) {
  expect_done(test::vandermonde<double>(60, 60, 0, 1), "Vandermonde 60");
  expect_done(test::vandermonde<double>(120, 70, -1, 1), "Vandermonde 120 x 70");
  expect_done(test::vandermonde<float>(30, 30, 0, 1), "Vandermonde 30 in float");
  const double exponents[] = {-17, -37, -28, -31, -21};
  expect_done(test::integers_above<double>(
                  6, 5, [&](auto j) { return std::exp2(exponents[j]); }, 3, 1),
              "powers of two");
  expect_done(test::integers_above<double>(
                  11, 10, [](auto) { return 1.0; }, 1000000, 2),
              "integers");
  const double c = 0.9;
  const double s = std::sqrt(1 - c * c);
  expect_done(test::make_matrix<double>(105, 100,
                                        [&](auto i, auto j) {
                                          if (i > j) return 0.0;
                                          return std::pow(s, static_cast<double>(i)) *
                                                 (i == j ? 1 : -c);
                                        }),
              "Kahan");
}

TEST(Certificate, IsTrueOfStructures) {
  const std::uint64_t cases = test::campaign(20'000, 160, 40);
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::string name = "case " + std::to_string(i);
    const Tall a = test::tall_of_kind(i % 8, i);
    if (i % 8 == 3)
      expect_true(test::powers_of_two<float>(a.rows, a.cols, 20, i), name);
    else
      expect_true(a, name);
  }
}

TEST(Certificate, AColumnNearTheLargestNumberKeepsItsLength) {
  for (const double size : {1.5e308, 1.79e308}) {
    Tall v(3, 2);
    v(0, 0) = size;
    v(1, 1) = v(2, 1) = 1;
    const auto got = test::factored(v, test::plain());
    EXPECT_TRUE(got.info.ok);
    EXPECT_NEAR(got.r(0, 0) / size, 1, 1e-15);
    EXPECT_GE(got.info.condition, 1);
    EXPECT_LE(got.info.condition, 1.01);
  }
  test::Matrix<float> v(3, 2);
  v(0, 0) = 3.4e38F;
  v(1, 1) = v(2, 1) = 1;
  const auto got = test::factored(v, test::plain());
  EXPECT_TRUE(got.info.ok);
  EXPECT_NEAR(got.r(0, 0) / 3.4e38F, 1, 1e-6);
}

TEST(Certificate, TheRankOfIntegersIsThatOfTheirFactorsPastABlock) {
  const auto small = [](std::uint64_t seed) {
    return [seed](auto i, auto j) {
      return std::floor(7 * random_uniform(seed, static_cast<std::uint64_t>(i + 1000 * j))) - 3;
    };
  };
  const Tall left = test::make_matrix<double>(560, 270, small(61));
  const Tall right = test::make_matrix<double>(270, 530, small(62));
  Tall v(560, 530);
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t k = 0; k < 270; ++k)
      for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) += left(i, k) * right(k, j);
  const auto got = test::factored(v, test::plain());
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, 270);
  EXPECT_EQ(got.info.numerical_rank, 270);
  EXPECT_LE(got.info.condition, 1e6);
  const double residual = test::residual_of(v, got.q, got.r);
  EXPECT_LE(residual, got.info.residual);
}

TEST(Certificate, EveryMethodSaysWhetherQIsOrthonormal) {
  const Tall v = test::vandermonde<double>(200, 30, 0, 1);
  for (const QrMethod method : {QrMethod::cholqr, QrMethod::svqr, QrMethod::mgs, QrMethod::cgs}) {
    const auto got = test::factored(v, test::plain(method));
    EXPECT_GE(test::orthogonality_of(got.q, 30), 0.1) << to_string(method);
    EXPECT_FALSE(got.info.ok) << to_string(method);
  }
  EXPECT_TRUE(test::factored(v, test::plain(QrMethod::tsqr)).info.ok);
  EXPECT_TRUE(test::factored(v, test::plain()).info.ok);
}

TEST(ExactRank, IsThatOfNumbersAsTheyAreStored) {
  const auto dependent = [](const Tall& v) {
    ExactRank rank(v.cols);
    rank.add(v.data.data(), v.rows);
    return rank.dependent_columns();
  };
  Tall v(4,
         4);  // a column that differs from a sum of others in its last bit, and one that does not
  for (std::int64_t i = 0; i < 4; ++i) {
    v(i, 0) = static_cast<double>(1 + i);
    v(i, 1) = static_cast<double>(i * i);
    v(i, 2) = v(i, 0) + v(i, 1);
    v(i, 3) = std::ldexp(v(i, 0), -900);
  }
  EXPECT_EQ(dependent(v), (std::vector<std::int64_t>{2, 3}));
  v(2, 2) = std::nextafter(v(2, 2), 100.0);
  EXPECT_EQ(dependent(v), (std::vector<std::int64_t>{3}));
  v(3, 3) = -std::nextafter(v(3, 3), 1.0);
  EXPECT_TRUE(dependent(v).empty());
  for (std::int64_t rank = 1; rank <= 12; ++rank) {
    const Tall integers =
        test::integers_of_rank(40, 12, rank, 80 + 2 * static_cast<std::uint64_t>(rank));
    EXPECT_EQ(std::ssize(dependent(integers)), 12 - rank);
  }
}

}  // namespace
}  // namespace strata
