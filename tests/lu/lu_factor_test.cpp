// LuFactor: LAPACK's pivots and factors, determinants against exact integers, solves both ways, and
// the outcomes that are told.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <limits>

#include "base/index.hpp"
#include "strata/error.hpp"
#include "strata/lu.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::kNan;
using test::Matrix;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

LuOptions in_panels(std::int64_t panel) {
  LuOptions options;
  options.run.devices = "host";
  options.panel = panel;
  return options;
}

struct LapackFactors {
  Matrix<double> lu;
  std::vector<lapack_int> pivots;
  lapack_int info = 0;

  explicit LapackFactors(const Matrix<double>& a) : lu(a), pivots(at(a.rows)) {
    const auto n = static_cast<lapack_int>(a.rows);
    info = LAPACKE_dgetrf(LAPACK_COL_MAJOR, n, n, lu.data.data(), n, pivots.data());
  }
};

TEST(LuFactorOf, RandomMatricesHasLapacksPivotsAndFactors) {
  for (const std::int64_t n : {1, 2, 3, 17, 64, 65, 200}) {
    const Matrix<double> a = test::random_general(n, 13);
    const LapackFactors expected(a);
    for (const std::int64_t panel : {0, 1, 7, 64}) {
      const LuFactor factor = lu(a.view(), in_panels(panel));
      ASSERT_TRUE(factor.info().ok);
      const std::vector<std::int64_t> pivots = factor.pivots();
      ASSERT_TRUE(
          std::equal(pivots.begin(), pivots.end(), expected.pivots.begin(), expected.pivots.end()))
          << n << ' ' << panel;
      Matrix<double> found(n, n);
      factor.copy_factors(found.view());
      double largest = 0;
      for (std::size_t i = 0; i < found.data.size(); ++i)
        ASSERT_NEAR(found.data[i], expected.lu.data[i], 1e-12 * static_cast<double>(n));
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i <= j; ++i)
          largest = std::max(largest, std::abs(expected.lu(i, j)));
      // Growth is of all elements met; those of U are among them.
      double most = 0;
      for (const double x : a.data) most = std::max(most, std::abs(x));
      EXPECT_GE(factor.info().growth, largest / most * (1 - 1e-12));
      EXPECT_LE(factor.info().growth, 4 * static_cast<double>(n));
    }
  }
}

TEST(LuFactorOf, WilkinsonsMatrixTellsItsGrowth) {
  for (const std::int64_t n : {2, 10, 40, 60}) {
    const LuFactor factor = lu(test::wilkinson_matrix(n).view(), in_panels(7));
    EXPECT_EQ(factor.info().growth, std::ldexp(1.0, static_cast<int>(n) - 1)) << n;
  }
}

TEST(LuFactorOf, AnyBudgetAndDevicesHasTheSameBits) {
  const std::int64_t n = 150;
  const Matrix<double> a = test::random_general(n, 17);
  const LuFactor whole = lu(a.view(), in_panels(16));
  Matrix<double> expected(n, n);
  whole.copy_factors(expected.view());
  Matrix<double> b = test::make_matrix<double>(
      n, 20, [](auto i, auto j) { return test::signed_uniform(19, i, j); });
  Matrix<double> x = b;
  LuFactor solver = lu(a.view(), in_panels(16));
  (void)solver.solve(x.view());
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t panels : {3, 4, 6, 30}) {
      for (const Policy policy : {Policy::sync, Policy::v3, Policy::opt}) {
        LuOptions options = in_panels(16);
        options.run.devices = "host:" + std::to_string(devices);
        options.run.device_memory_bytes = panels * (n * 16 * 8 + 512) + 8192;
        options.run.policy = policy;
        LuFactor factor = lu(a.view(), options);
        Matrix<double> found(n, n);
        factor.copy_factors(found.view());
        ASSERT_TRUE(test::same_bits(found.data, expected.data)) << devices << ' ' << panels;
        EXPECT_EQ(factor.pivots(), whole.pivots());
        EXPECT_EQ(factor.report().traffic.total(), factor.report().planned_traffic.total());
        Matrix<double> mine = b;
        const RunReport solve = factor.solve(mine.view());
        EXPECT_EQ(solve.traffic.total(), solve.planned_traffic.total());
        for (std::size_t i = 0; i < x.data.size(); ++i) ASSERT_NEAR(mine.data[i], x.data[i], 1e-9);
      }
    }
  }
}

TEST(LuFactorOf, AMatrixThatIsOverwrittenHasTheSameBits) {
  constexpr std::int64_t kN = 150;
  const Matrix<double> a = test::random_general(kN, 23);
  const Matrix<double> b = test::random_general(kN, 29);
  LuFactor expected = lu(a.view(), in_panels(16));
  Matrix<double> expected_factors(kN, kN);
  expected.copy_factors(expected_factors.view());
  Matrix<double> expected_x = b;
  (void)expected.solve(expected_x.view());
  for (const std::int64_t panels : {0, 3, 5}) {
    LuOptions options = in_panels(16);
    options.run.device_memory_bytes = panels * (kN * 16 * 8 + 512) + (panels > 0 ? 8192 : 0);
    Matrix<double> mine = a;
    LuFactor factor = lu_overwriting(mine.view(), options);
    EXPECT_THROW(factor.copy_factors(mine.view()), Error);
    EXPECT_FALSE(test::same_bits(mine.data, a.data));
    EXPECT_EQ(factor.pivots(), expected.pivots());
    EXPECT_EQ(factor.info().determinant.log(), expected.info().determinant.log());
    EXPECT_EQ(factor.info().growth, expected.info().growth);
    EXPECT_LT(factor.report().host_bytes, kN * kN * 8);
    Matrix<double> found(kN, kN);
    factor.copy_factors(found.view());
    EXPECT_TRUE(test::same_bits(found.data, expected_factors.data)) << panels;
    Matrix<double> x = b;
    (void)factor.solve(x.view());
    for (std::size_t i = 0; i < x.data.size(); ++i)
      ASSERT_NEAR(x.data[i], expected_x.data[i], 1e-9) << panels;
  }
}

TEST(LuFactorOf, OnlyColumnsWithoutGapsAreOverwritten) {
  Matrix<double> a = test::random_general(20, 31);
  const Matrix<double> before = a;
  EXPECT_THROW((void)lu_overwriting(MatrixView<double>{a.data.data(), 10, 10, 20}), Error);
  EXPECT_THROW((void)lu_overwriting(ArrayRef(a.data.data(), Element::fp64, 20, 20, 20, 1)), Error);
  EXPECT_THROW((void)lu_overwriting(MatrixView<double>{a.data.data(), 20, 10, 20}), Error);
  EXPECT_TRUE(test::same_bits(a.data, before.data));
  a(3, 5) = kNan;
  EXPECT_EQ(lu_overwriting(a.view(), in_panels(7)).info().not_finite, 5);
  Matrix<double> zero(4, 4);
  EXPECT_EQ(lu_overwriting(zero.view(), in_panels(2)).info().zero_pivot, 0);
}

// ---- determinants

/// Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", 1968.
__extension__ using Integer = __int128;
Integer exact_determinant(std::vector<Integer> a, std::int64_t n) {
  Integer before = 1;
  int sign = 1;
  for (std::int64_t k = 0; k + 1 < n; ++k) {
    std::int64_t p = k;
    while (p < n && a[at(p + k * n)] == 0) ++p;
    if (p == n) return 0;
    if (p != k) {
      sign = -sign;
      for (std::int64_t j = 0; j < n; ++j) std::swap(a[at(k + j * n)], a[at(p + j * n)]);
    }
    for (std::int64_t i = k + 1; i < n; ++i)
      for (std::int64_t j = k + 1; j < n; ++j)
        a[at(i + j * n)] =
            (a[at(i + j * n)] * a[at(k + k * n)] - a[at(i + k * n)] * a[at(k + j * n)]) / before;
    before = a[at(k + k * n)];
  }
  return n == 0 ? 1 : sign * a[at(n * n - 1)];
}

TEST(LuDeterminant, IsThatOfIntegerMatrices) {
  int negative = 0;
  for (std::int64_t n = 0; n <= 16; ++n) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const auto element = [&](std::int64_t i, std::int64_t j) {
        return static_cast<int>(random_bits(seed, static_cast<std::uint64_t>(i * 64 + j)) % 9) - 4;
      };
      std::vector<Integer> integers;
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i) integers.push_back(element(i, j));
      const auto exact = static_cast<double>(exact_determinant(integers, n));
      const LuFactor factor =
          lu(test::make_matrix<double>(n, n, element).view(), in_panels(seed % 2 == 0 ? 3 : 16));
      const Determinant& det = factor.info().determinant;
      negative += exact < 0 ? 1 : 0;
      if (exact == 0) {
        EXPECT_LT(std::abs(det.value()), 1e-6);  // singular, up to rounding
        continue;
      }
      EXPECT_NEAR(det.value(), exact, 1e-11 * std::abs(exact)) << n << ' ' << seed;
      EXPECT_EQ(det.sign, exact > 0 ? 1 : -1);
      EXPECT_NEAR(det.log(), std::log(std::abs(exact)), 1e-11);
    }
  }
  EXPECT_GT(negative, 20);
}

TEST(LuDeterminant, OfHadamardMatricesIsAPowerOfTwo) {
  for (const std::int64_t n : {1, 2, 4, 32, 128}) {
    const LuFactor factor = lu(test::hadamard_matrix(n).view(), in_panels(24));
    const Determinant& det = factor.info().determinant;  // ±n^(n/2)
    EXPECT_EQ(det.mantissa, 0.5);
    EXPECT_EQ(det.exponent, n / 2 * std::ilogb(static_cast<double>(n)) + 1);
  }
}

TEST(LuDeterminant, LeavesTheRangeOfNumbersByItsLogarithmAlone) {
  const std::int64_t n = 64;
  for (const double size : {1e300, 1e-300}) {
    const LuFactor factor = lu(
        test::make_matrix<double>(n, n, [&](auto i, auto j) { return i + j == n - 1 ? size : 0.0; })
            .view(),
        in_panels(16));
    const Determinant& det = factor.info().determinant;
    EXPECT_EQ(det.sign, 1);  // 32 exchanges
    EXPECT_NEAR(det.log(), 64 * std::log(size), 1e-9);
    EXPECT_EQ(det.value(), size > 1 ? kInfinite : 0.0);
  }
}

// ---- solves

template <class T>
void expect_solves(std::int64_t n, std::int64_t columns, double tolerance) {
  const Matrix<double> a = test::random_general(n, 23);
  const Matrix<T> narrow = test::make_matrix<T>(n, n, [&](auto i, auto j) { return a(i, j); });
  const Matrix<double> x = test::make_matrix<double>(
      n, columns, [](auto i, auto j) { return test::signed_uniform(29, i, j); });
  LuFactor factor = lu(narrow.view(), in_panels(16));
  for (const bool transposed : {false, true}) {
    Matrix<T> b = test::make_matrix<T>(n, columns, [&](auto i, auto c) {
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += (transposed ? narrow(k, i) : narrow(i, k)) * x(k, c);
      return sum;
    });
    (void)(transposed ? factor.solve_transposed(b.view()) : factor.solve(b.view()));
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(b(i, c), x(i, c), tolerance) << n << (transposed ? " transposed" : "");
  }
}

TEST(LuFactorSolves, ManyRightHandSidesBothWays) {
  for (const std::int64_t n : {1, 2, 16, 33, 100}) {
    for (const std::int64_t columns : {1, 3, 40}) {
      expect_solves<double>(n, columns, 1e-9);
      expect_solves<float>(n, columns, 0.05);
    }
  }
}

TEST(LuFactorSolves, NothingOfNothing) {
  LuFactor factor = lu(MatrixView<const double>{nullptr, 0, 0, 1}, in_panels(4));
  EXPECT_TRUE(factor.info().ok);
  EXPECT_EQ(factor.info().determinant.value(), 1);
  (void)factor.solve(MatrixView<double>{nullptr, 0, 3, 1});
  LuFactor one = lu(Matrix<double>(test::random_general(5)).view(), in_panels(4));
  (void)one.solve(MatrixView<double>{nullptr, 5, 0, 5});
}

// ---- outcomes

TEST(LuOutcome, NamesTheFirstPivotThatIsZero) {
  // Column 20 is twice column 3, exactly; elimination of small integers by powers of two is exact.
  const std::int64_t n = 40;
  const Matrix<double> a = test::make_matrix<double>(n, n, [](auto i, auto j) {
    const auto column = j == 20 ? 3 : j;
    const double value = i == column ? 1.0 : i > column ? 0.25 : 0.0;
    return (j == 20 ? 2 : 1) * value;
  });
  for (const std::int64_t panel : {0, 1, 16, 21, 40}) {
    LuFactor factor = lu(a.view(), in_panels(panel));
    EXPECT_FALSE(factor.info().ok);
    EXPECT_EQ(factor.info().zero_pivot, 20) << panel;
    EXPECT_EQ(factor.info().not_finite, -1);
    EXPECT_EQ(factor.info().determinant.sign, 0);
    EXPECT_EQ(factor.info().determinant.value(), 0);
    Matrix<double> b(n, 1);
    EXPECT_THROW((void)factor.solve(b.view()), Error);
    EXPECT_EQ(std::ssize(factor.pivots()), n);  // LAPACK goes on, too
  }
}

TEST(LuOutcome, NamesTheFirstColumnThatIsNotFinite) {
  for (const double bad : {kNan, kInfinite}) {
    Matrix<double> a = test::random_general(50, 31);
    a(44, 29) = bad;
    for (const std::int64_t panel : {1, 16, 50}) {
      LuFactor factor = lu(a.view(), in_panels(panel));
      EXPECT_FALSE(factor.info().ok);
      EXPECT_EQ(factor.info().not_finite, 29) << panel;
      EXPECT_THROW((void)factor.pivots(), Error);
      Matrix<double> b(50, 1);
      EXPECT_THROW((void)factor.solve(b.view()), Error);
    }
  }
}

TEST(LuOutcome, RefusesWhatIsNoMatrixAndOtherPrecisions) {
  const Matrix<double> tall(5, 4);
  EXPECT_THROW((void)lu(tall.view()), Error);
  EXPECT_THROW((void)lu(MatrixView<const double>{nullptr, 4, 4, 4}), Error);
  LuFactor factor = lu(test::random_general(4).view(), in_panels(2));
  Matrix<float> narrow(4, 1);
  EXPECT_THROW((void)factor.solve(narrow.view()), Error);
  Matrix<double> short_one(3, 1);
  EXPECT_THROW((void)factor.solve(short_one.view()), Error);
  LuOptions options = in_panels(0);
  options.panel = -1;
  EXPECT_THROW((void)lu(test::random_general(4).view(), options), Error);
}

TEST(LuOutcome, IsSimulatedWithoutData) {
  const RunReport report = simulate_lu(4096, Machine::emulated(1, std::int64_t{1} << 26));
  EXPECT_GT(*report.predicted_seconds, 0);
  EXPECT_GT(report.planned_traffic.total(), report.planned_traffic.floor_bytes);
  EXPECT_THROW((void)simulate_lu(-1, Machine::emulated(1, 1 << 20)), Error);
}

}  // namespace
}  // namespace strata
