// Small matrices beside a tall one: bits of the formulas element by element, and what they are
// worth beside LAPACK.

#include "dense/square_matrix.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace strata {
namespace {

using Wide = SquareMatrix<DoubleDouble>;

DoubleDouble random_wide(std::uint64_t seed, std::uint64_t at) {
  const double hi = 2 * random_uniform(seed, 2 * at) - 1;
  return fast_two_sum(hi, 0x1p-54 * (2 * random_uniform(seed, 2 * at + 1) - 1) * std::abs(hi));
}

/// Symmetric; of unit columns of random numbers, so that pivots are positive; NaN below the
/// diagonal, which is not read.
Wide gram_of(std::int64_t n, std::uint64_t seed) {
  const std::int64_t m = n + 5;
  std::vector<DoubleDouble> v;
  for (std::int64_t k = 0; k < m * n; ++k)
    v.push_back(random_wide(seed, static_cast<std::uint64_t>(k)));
  Wide b(n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < m && i <= j; ++k)
        b(i, j) = b(i, j) +
                  v[static_cast<std::size_t>(k + i * m)] * v[static_cast<std::size_t>(k + j * m)];
      if (i > j) b(i, j) = DoubleDouble(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return b;
}

#if defined(__SIZEOF_FLOAT128__)
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif

/// Element by element, each from the sums of its own column and row.
Wide textbook_cholesky(const Wide& b, std::int64_t rows) {
  Wide r(b.n);
  for (std::int64_t j = 0; j < rows; ++j) {
    for (std::int64_t k = j; k < b.n; ++k) {
      DoubleDouble x = b(j, k);
      for (std::int64_t i = 0; i < j; ++i) x = subtract_product(x, r(i, j), r(i, k));
      r(j, k) = k == j ? square_root(x) : x / r(j, j);
    }
  }
  return r;
}

TEST(SmallCholesky, HasTheBitsOfTheTextbook) {
  for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 65, 130}) {
    const Wide b = gram_of(n, 3);
    const SmallCholesky<DoubleDouble> got = small_cholesky(b, BadPivot::stop);
    EXPECT_EQ(got.failed_column, -1);
    EXPECT_EQ(got.r.values, textbook_cholesky(b, n).values) << n;
  }
}

TEST(SmallCholesky, IsRightInManyDigits) {
  // In numbers of 113 bits: what RᵀR leaves of B, beside the diagonal of B.
  const auto quad_of = [](const DoubleDouble& x) {
    return static_cast<Quad>(x.hi) + static_cast<Quad>(x.lo);
  };
  for (const std::int64_t n : {1, 5, 16, 33, 97, 137}) {
    const Wide b = gram_of(n, 20);
    const Wide r = small_cholesky(b, BadPivot::stop).r;
    double worst = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t i = 0; i <= k; ++i) {
        Quad rest = quad_of(b(i, k));
        for (std::int64_t l = 0; l <= i; ++l) rest -= quad_of(r(l, i)) * quad_of(r(l, k));
        worst = std::max(worst,
                         std::abs(static_cast<double>(rest)) / std::sqrt(b(i, i).hi * b(k, k).hi));
      }
    }
    EXPECT_LE(worst, 0x1p-104 * 4 * static_cast<double>(n + 4)) << n;
  }
}

TEST(SmallCholesky, TellsThePivotThatFailsAndKeepsTheRowsBeforeIt) {
  for (const std::int64_t bad : {0, 1, 4, 6, 10}) {
    Wide b = gram_of(11, 4);
    b(bad, bad) = DoubleDouble(-1.0);
    const SmallCholesky<DoubleDouble> got = small_cholesky(b, BadPivot::stop);
    Wide expected = textbook_cholesky(b, bad);
    for (std::int64_t k = bad; k < 11; ++k) expected(k, k) = DoubleDouble(1.0);
    EXPECT_EQ(got.failed_column, bad);
    EXPECT_LT(got.bad_pivot, 0);
    EXPECT_EQ(got.r.values, expected.values) << bad;
  }
  Wide b = gram_of(6, 5);
  b(3, 3) = DoubleDouble(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(small_cholesky(b, BadPivot::stop).failed_column, 3);
  EXPECT_EQ(small_cholesky(b, BadPivot::drop, 1e-20).failed_column, 3);
}

TEST(SmallCholesky, DropsDependentColumnsAndLeavesOutZeros) {
  // Column 2 is column 0, column 4 zeros that are said to be so.
  Wide b = gram_of(7, 6);
  for (std::int64_t i = 0; i < 7; ++i) {
    for (std::int64_t j = i; j < 7; ++j) {
      const std::int64_t of_i = i == 2 ? 0 : i;
      const std::int64_t of_j = j == 2 ? 0 : j;
      b(i, j) = b(std::min(of_i, of_j), std::max(of_i, of_j));
      if (i == 4 || j == 4) b(i, j) = DoubleDouble();
    }
  }
  std::vector<bool> zero(7);
  zero[4] = true;
  const SmallCholesky<DoubleDouble> got = small_cholesky(b, BadPivot::drop, 1e-24, zero);
  EXPECT_EQ(got.failed_column, -1);
  EXPECT_EQ(got.dependent, std::vector<std::int64_t>{2});
  for (std::int64_t k = 0; k < 7; ++k) {
    EXPECT_EQ(got.r(2, k), DoubleDouble());
    EXPECT_EQ(got.r(4, k), DoubleDouble());
    EXPECT_EQ(got.r(k, 4), DoubleDouble());
  }
  EXPECT_EQ(got.r(0, 2), got.r(0, 0));
}

TEST(UpperProduct, HasTheBitsOfTheSums) {
  for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 8, 9, 15, 33, 64, 67}) {
    Wide r(n);
    Wide s(n);
    Wide expected(n);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {  // what lies below is not read
        r(i, j) = random_wide(7, static_cast<std::uint64_t>(i + j * n));
        s(i, j) = random_wide(8, static_cast<std::uint64_t>(i + j * n));
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        for (std::int64_t k = i; k <= j; ++k) expected(i, j) = expected(i, j) + r(i, k) * s(k, j);
      }
    }
    EXPECT_EQ(upper_product(r, s).values, expected.values) << n;
  }
}

/// Condition of the columns at unit length, by LAPACK's singular values.
double condition_by_lapack(const Wide& r) {
  const auto n = static_cast<int>(r.n);
  std::vector<double> a(r.values.size());
  for (std::int64_t j = 0; j < r.n; ++j) {
    double square = 0;
    for (std::int64_t i = 0; i <= j; ++i) square += r(i, j).hi * r(i, j).hi;
    for (std::int64_t i = 0; i <= j; ++i)
      a[static_cast<std::size_t>(i + j * r.n)] = r(i, j).hi / std::sqrt(square);
  }
  std::vector<double> sigma(static_cast<std::size_t>(n));
  std::vector<double> work(sigma.size());
  EXPECT_EQ(LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'N', 'N', n, n, a.data(), n, sigma.data(), nullptr, 1,
                           nullptr, 1, work.data()),
            0);
  return sigma.front() / sigma.back();
}

TEST(Condition, IsThatOfUnitColumnsToAFactorOfTwo) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 11, 16, 17, 40, 90, 128}) {
    for (const double graded : {1.0, 1e-3, 1e-8}) {
      const Wide near = small_cholesky(gram_of(n, 9), BadPivot::stop).r;
      Wide r = near;
      for (std::int64_t j = 0; j < n; ++j) {
        // The last diagonal is small, and columns have lengths that are to have no say.
        const double down = j + 1 == n ? graded : 1;
        const double scale = std::ldexp(1.0, static_cast<int>(j % 5) * 100 - 200);
        for (std::int64_t i = 0; i <= j; ++i)
          r(i, j) = scaled(r(i, j), scale) * DoubleDouble(i == j ? down : 1.0);
      }
      Wide unscaled = r;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i <= j; ++i)
          unscaled(i, j) = scaled(r(i, j), std::ldexp(1.0, 200 - static_cast<int>(j % 5) * 100));
      }
      const double expected = condition_by_lapack(unscaled);
      const Condition got = condition_of(r, {});
      EXPECT_LE(got.estimate, expected * (1 + 1e-5)) << n << ' ' << graded;
      EXPECT_GE(got.estimate, expected / 2) << n << ' ' << graded;
      EXPECT_GE(got.bound, expected * (1 - 1e-5)) << n << ' ' << graded;
      EXPECT_LE(got.bound, expected * static_cast<double>(n) * (1 + 1e-5)) << n << ' ' << graded;
    }
  }
}

TEST(Condition, LeavesColumnsOutAndIsInfiniteOfASingularMatrix) {
  Wide r = small_cholesky(gram_of(9, 10), BadPivot::stop).r;
  const double all = condition_of(r, {}).estimate;
  for (std::int64_t k = 0; k < 9; ++k) r(k, 5) = r(5, k) = DoubleDouble();
  EXPECT_TRUE(std::isinf(condition_of(r, {}).estimate));
  EXPECT_LE(condition_of(r, {5}).estimate, 2 * all);
  EXPECT_GE(condition_of(r, {5}).estimate, 1);
  EXPECT_EQ(condition_of(r, {0, 1, 2, 3, 4, 5, 6, 7, 8}).estimate, 1);
  EXPECT_EQ(condition_of(Wide(), {}).estimate, 1);
  // Elements whose squares over- and underflow.
  for (const double power : {0x1p1000, 0x1p-1060}) {
    Wide large(3);
    for (std::int64_t j = 0; j < 3; ++j) large(j, j) = DoubleDouble(power);
    EXPECT_NEAR(condition_of(large, {}).estimate, 1, 1e-12) << power;
  }
}

}  // namespace
}  // namespace strata
