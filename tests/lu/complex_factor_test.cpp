// LuFactor of complex matrices: LAPACK's pivots and factors, determinants against exact Gaussian
// integers, solves in three ways, and the outcomes that are told.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <complex>
#include <limits>

#include "base/index.hpp"
#include "scalar/complex.hpp"
#include "strata/error.hpp"
#include "strata/lu.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Complex64;
using test::kNan;
using test::Matrix;
using test::quarter_turn;
using test::random_complex;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LuOptions complex_panels(std::int64_t panel) {
  LuOptions options;
  options.run.devices = "host";
  options.panel = panel;
  return options;
}

lapack_int complex_getrf(lapack_int n, Complex128* a, lapack_int* pivots) {
  return LAPACKE_zgetrf(LAPACK_COL_MAJOR, n, n, reinterpret_cast<lapack_complex_double*>(a), n,
                        pivots);
}
lapack_int complex_getrf(lapack_int n, Complex64* a, lapack_int* pivots) {
  return LAPACKE_cgetrf(LAPACK_COL_MAJOR, n, n, reinterpret_cast<lapack_complex_float*>(a), n,
                        pivots);
}

template <class T>
class ComplexLu : public ::testing::Test {};
using ComplexLuTypes = ::testing::Types<Complex128, Complex64>;
TYPED_TEST_SUITE(ComplexLu, ComplexLuTypes);

TYPED_TEST(ComplexLu, HasLapacksPivotsAndFactors) {
  for (const std::int64_t n : {1, 2, 3, 17, 64, 65, 129}) {
    const Matrix<TypeParam> a = random_complex<TypeParam>(n, n, 13);
    Matrix<TypeParam> expected = a;
    std::vector<lapack_int> expected_pivots(at(n));
    ASSERT_EQ(
        complex_getrf(static_cast<lapack_int>(n), expected.data.data(), expected_pivots.data()), 0);
    for (const std::int64_t panel : {0, 1, 7, 64}) {
      const LuFactor factor = lu(a.view(), complex_panels(panel));
      ASSERT_TRUE(factor.info().ok);
      const std::vector<std::int64_t> pivots = factor.pivots();
      ASSERT_TRUE(
          std::equal(pivots.begin(), pivots.end(), expected_pivots.begin(), expected_pivots.end()))
          << n << ' ' << panel;
      Matrix<TypeParam> found(n, n);
      factor.copy_factors(found.view());
      const double wanted =
          5e3 * static_cast<double>(n) * std::numeric_limits<RealOf<TypeParam>>::epsilon();
      for (std::size_t i = 0; i < found.data.size(); ++i)
        ASSERT_LE(std::abs(found.data[i] - expected.data[i]), wanted) << n << ' ' << panel;
      EXPECT_GE(factor.info().growth, 1);
      EXPECT_LE(factor.info().growth, 4 * static_cast<double>(n));
    }
  }
}

TYPED_TEST(ComplexLu, SolvesByAByItsTransposedAndByItsAdjoint) {
  const double tolerance = std::is_same_v<TypeParam, Complex128> ? 1e-9 : 0.05;
  for (const std::int64_t n : {1, 2, 16, 33, 90}) {
    for (const std::int64_t columns : {1, 3, 40}) {
      const Matrix<TypeParam> a = random_complex<TypeParam>(n, n, 23);
      const Matrix<Complex128> x = random_complex(n, columns, 29);
      LuFactor factor = lu(a.view(), complex_panels(16));
      for (const int way : {0, 1, 2}) {
        Matrix<TypeParam> b = test::make_matrix<TypeParam>(n, columns, [&](auto i, auto c) {
          Complex128 sum = 0;
          for (std::int64_t k = 0; k < n; ++k) {
            const Complex128 element = way == 0 ? a(i, k) : a(k, i);
            sum += (way == 2 ? std::conj(element) : element) * x(k, c);
          }
          return sum;
        });
        (void)(way == 0   ? factor.solve(b.view())
               : way == 1 ? factor.solve_transposed(b.view())
                          : factor.solve_adjoint(b.view()));
        for (std::int64_t c = 0; c < columns; ++c)
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_LE(std::abs(Complex128(b(i, c)) - x(i, c)), tolerance) << n << " way " << way;
      }
    }
  }
}

TEST(ComplexLuFactor, AdjointOfARealMatrixIsItsTransposed) {
  const Matrix<double> a = test::random_general(20, 5);
  LuFactor factor = lu(a.view(), complex_panels(6));
  Matrix<double> one = test::random_general(20, 6);
  Matrix<double> other = one;
  (void)factor.solve_transposed(one.view());
  (void)factor.solve_adjoint(other.view());
  EXPECT_TRUE(test::same_bits(one.data, other.data));
}

TEST(ComplexLuFactor, OfNothingIsOne) {
  LuFactor factor = lu(MatrixView<const Complex128>{nullptr, 0, 0, 1}, complex_panels(4));
  EXPECT_TRUE(factor.info().ok);
  EXPECT_EQ(factor.info().determinant.complex_value(), 1.0);
  (void)factor.solve(MatrixView<Complex128>{nullptr, 0, 3, 1});
}

TEST(ComplexLuFactor, HasTheSameBitsInAnyBudgetAndOnAnyDevices) {
  const std::int64_t n = 150;
  const Matrix<Complex128> a = random_complex(n, n, 17);
  const LuFactor whole = lu(a.view(), complex_panels(16));
  Matrix<Complex128> expected(n, n);
  whole.copy_factors(expected.view());
  const Matrix<Complex128> b = random_complex(n, 20, 19);
  Matrix<Complex128> x = b;
  LuFactor solver = lu(a.view(), complex_panels(16));
  (void)solver.solve_adjoint(x.view());
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t panels : {3, 4, 30}) {
      for (const Policy policy : {Policy::sync, Policy::v3, Policy::opt}) {
        LuOptions options = complex_panels(16);
        options.run.devices = "host:" + std::to_string(devices);
        options.run.device_memory_bytes = panels * (n * 16 * 16 + 512) + 8192;
        options.run.policy = policy;
        LuFactor factor = lu(a.view(), options);
        Matrix<Complex128> found(n, n);
        factor.copy_factors(found.view());
        ASSERT_TRUE(test::same_bits(found.data, expected.data)) << devices << ' ' << panels;
        EXPECT_EQ(factor.pivots(), whole.pivots());
        EXPECT_EQ(factor.report().traffic.total(), factor.report().planned_traffic.total());
        Matrix<Complex128> mine = b;
        const RunReport solve = factor.solve_adjoint(mine.view());
        EXPECT_EQ(solve.traffic.total(), solve.planned_traffic.total());
        for (std::size_t i = 0; i < x.data.size(); ++i)
          ASSERT_LE(std::abs(mine.data[i] - x.data[i]), 1e-9);
      }
    }
  }
}

TEST(ComplexLuFactor, TurnedMatricesGrowAsThoseTheyCameFrom) {
  for (const std::int64_t n : {2, 10, 40, 60}) {
    const LuFactor factor = lu(test::turned(test::wilkinson_matrix(n)).view(), complex_panels(7));
    EXPECT_EQ(factor.info().growth, std::ldexp(1.0, static_cast<int>(n) - 1)) << n;
  }
}

// ---- determinants

__extension__ using Integer = __int128;
struct GaussianInteger {
  Integer re = 0;
  Integer im = 0;

  [[nodiscard]] bool zero() const { return re == 0 && im == 0; }
};
GaussianInteger times(const GaussianInteger& a, const GaussianInteger& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/// a·b − c·d over e, which divides it (Bareiss 1968).
GaussianInteger bareiss(const GaussianInteger& a, const GaussianInteger& b,
                        const GaussianInteger& c, const GaussianInteger& d,
                        const GaussianInteger& e) {
  const GaussianInteger ab = times(a, b);
  const GaussianInteger cd = times(c, d);
  const GaussianInteger scaled = times({ab.re - cd.re, ab.im - cd.im}, {e.re, -e.im});
  const Integer square = e.re * e.re + e.im * e.im;
  return {scaled.re / square, scaled.im / square};
}
Complex128 exact_determinant(std::vector<GaussianInteger> a, std::int64_t n) {
  GaussianInteger before{1, 0};
  double sign = 1;
  for (std::int64_t k = 0; k + 1 < n; ++k) {
    std::int64_t p = k;
    while (p < n && a[at(p + k * n)].zero()) ++p;
    if (p == n) return 0;
    if (p != k) {
      sign = -sign;
      for (std::int64_t j = 0; j < n; ++j) std::swap(a[at(k + j * n)], a[at(p + j * n)]);
    }
    for (std::int64_t i = k + 1; i < n; ++i)
      for (std::int64_t j = k + 1; j < n; ++j)
        a[at(i + j * n)] =
            bareiss(a[at(i + j * n)], a[at(k + k * n)], a[at(i + k * n)], a[at(k + j * n)], before);
    before = a[at(k + k * n)];
  }
  if (n == 0) return 1;
  const GaussianInteger& last = a[at(n * n - 1)];
  return sign * Complex128(static_cast<double>(last.re), static_cast<double>(last.im));
}

TEST(ComplexLuDeterminant, IsThatOfGaussianIntegers) {
  int quadrants[4] = {};
  for (std::int64_t n = 0; n <= 9; ++n) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const auto part = [&](std::int64_t i, std::int64_t j, std::uint64_t side) {
        return static_cast<int>(random_bits(seed + 50 * side, at(i * 64 + j)) % 7) - 3;
      };
      std::vector<GaussianInteger> integers;
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i) integers.push_back({part(i, j, 0), part(i, j, 1)});
      const Complex128 exact = exact_determinant(integers, n);
      const Matrix<Complex128> a = test::make_matrix<Complex128>(
          n, n, [&](auto i, auto j) { return Complex128(part(i, j, 0), part(i, j, 1)); });
      const LuFactor factor = lu(a.view(), complex_panels(seed % 2 == 0 ? 3 : 16));
      const Determinant& det = factor.info().determinant;
      if (std::abs(exact) == 0) {
        EXPECT_LT(det.value(), 1e-6);  // singular, up to rounding
        continue;
      }
      ++quadrants[(exact.real() < 0 ? 1 : 0) + (exact.imag() < 0 ? 2 : 0)];
      EXPECT_EQ(det.sign, 1);
      EXPECT_NEAR(std::abs(det.phase), 1, 1e-15);
      EXPECT_LE(std::abs(det.phase - exact / std::abs(exact)), 1e-11) << n << ' ' << seed;
      EXPECT_LE(std::abs(det.complex_value() - exact), 1e-11 * std::abs(exact));
      EXPECT_NEAR(det.value(), std::abs(exact), 1e-11 * std::abs(exact));
      EXPECT_NEAR(det.log(), std::log(std::abs(exact)), 1e-11);
    }
  }
  for (const int count : quadrants) EXPECT_GE(count, 10);
}

TEST(ComplexLuDeterminant, CountsTurnsAndExchangesExactly) {
  for (const std::int64_t n : {1, 2, 3, 6, 64, 65}) {
    // A permutation that moves every row by one: n − 1 exchanges; element j is i^j.
    const Matrix<Complex128> a = test::make_matrix<Complex128>(
        n, n, [=](auto i, auto j) { return i == (j + 1) % n ? quarter_turn(j) : Complex128(0); });
    const Determinant det = lu(a.view(), complex_panels(16)).info().determinant;
    const Complex128 turns = quarter_turn(n * (n - 1) / 2);
    EXPECT_EQ(det.phase, n % 2 == 1 ? turns : -turns) << n;
    EXPECT_EQ(det.value(), 1);
  }
}

TEST(ComplexLuDeterminant, OfARealMatrixHasItsSignForPhase) {
  int negative = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Matrix<double> a = test::random_general(9, seed);
    const Determinant real = lu(a.view(), complex_panels(4)).info().determinant;
    EXPECT_EQ(real.phase, Complex128(real.sign));
    EXPECT_EQ(real.complex_value(), Complex128(real.value()));
    negative += real.sign < 0 ? 1 : 0;
    const Matrix<Complex128> wide =
        test::make_matrix<Complex128>(9, 9, [&](auto i, auto j) { return a(i, j); });
    const Determinant as_complex = lu(wide.view(), complex_panels(4)).info().determinant;
    EXPECT_EQ(as_complex.phase, real.phase);
    EXPECT_NEAR(as_complex.value(), std::abs(real.value()), 1e-12 * std::abs(real.value()));
  }
  EXPECT_GT(negative, 0);
}

TEST(ComplexLuDeterminant, LeavesTheRangeOfNumbersByItsLogarithmAlone) {
  const std::int64_t n = 64;
  for (const double size : {1e308, 1e-300, 5e-324}) {
    // Both parts: the magnitude of the largest is no number.
    const Matrix<Complex128> a = test::make_matrix<Complex128>(n, n, [&](auto i, auto j) {
      return i + j == n - 1 ? Complex128(1.5 * size, -1.5 * size) : Complex128(0);
    });
    const LuFactor factor = lu(a.view(), complex_panels(16));
    EXPECT_TRUE(factor.info().ok);
    const Determinant& det = factor.info().determinant;
    const double part = a(0, n - 1).real();
    EXPECT_NEAR(det.log(), 64 * (std::log(part) + std::log(2.0) / 2), 1e-9);
    // (1 − i)⁶⁴ = 2³², 32 exchanges.
    EXPECT_LE(std::abs(det.phase - 1.0), 1e-13);
    EXPECT_EQ(det.value(), size > 1 ? kInfinity : 0.0);
  }
}

// ---- outcomes

TEST(ComplexLuOutcome, NamesTheColumnThatIsAComplexMultipleOfAnother) {
  const std::int64_t n = 40;
  const Matrix<Complex128> a = test::make_matrix<Complex128>(n, n, [](auto i, auto j) {
    const auto column = j == 20 ? 3 : j;
    const Complex128 value = i == column  ? quarter_turn(i)
                             : i > column ? 0.25 * quarter_turn(i + j)
                                          : Complex128(0);
    return j == 20 ? Complex128(-2, 2) * (i == 3  ? quarter_turn(3)
                                          : i > 3 ? 0.25 * quarter_turn(i + 3)
                                                  : Complex128(0))
                   : value;
  });
  for (const std::int64_t panel : {0, 1, 16, 21, 40}) {
    LuFactor factor = lu(a.view(), complex_panels(panel));
    EXPECT_FALSE(factor.info().ok);
    EXPECT_EQ(factor.info().zero_pivot, 20) << panel;
    EXPECT_EQ(factor.info().not_finite, -1);
    EXPECT_EQ(factor.info().determinant.sign, 0);
    EXPECT_EQ(factor.info().determinant.phase, 0.0);
    EXPECT_EQ(factor.info().determinant.complex_value(), 0.0);
    Matrix<Complex128> b(n, 1);
    EXPECT_THROW((void)factor.solve(b.view()), Error);
  }
}

TEST(ComplexLuOutcome, NamesTheColumnWhoseImaginaryPartIsNotFinite) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    Matrix<Complex128> a = random_complex(50, 50, 31);
    a(44, 29) = {0.5, bad};
    for (const std::int64_t panel : {1, 16, 50}) {
      LuFactor factor = lu(a.view(), complex_panels(panel));
      EXPECT_FALSE(factor.info().ok);
      EXPECT_EQ(factor.info().not_finite, 29) << panel;
      Matrix<Complex128> b(50, 1);
      EXPECT_THROW((void)factor.solve_adjoint(b.view()), Error);
    }
  }
}

TEST(ComplexLuOutcome, RefusesOtherPrecisionsAndRealRightSides) {
  LuFactor factor = lu(random_complex(4, 4).view(), complex_panels(2));
  Matrix<double> real(4, 1);
  EXPECT_THROW((void)factor.solve(real.view()), Error);
  Matrix<Complex64> narrow(4, 1);
  EXPECT_THROW((void)factor.solve_adjoint(narrow.view()), Error);
  EXPECT_THROW(factor.copy_factors(Matrix<double>(4, 4).view()), Error);
}

TEST(ComplexLuOutcome, IsSimulatedWithoutData) {
  const Machine machine = Machine::emulated(1, std::int64_t{1} << 28);
  LuOptions options;
  options.panel = 128;
  const RunReport real = simulate_lu(4096, machine, options, Element::fp64);
  const RunReport complex = simulate_lu(4096, machine, options, Element::complex128);
  EXPECT_GT(*complex.predicted_seconds, *real.predicted_seconds);
  EXPECT_EQ(complex.flops, 4 * real.flops);
  EXPECT_EQ(complex.planned_traffic.floor_bytes, 2 * 2 * 4096LL * 4096 * 8);
  const RunReport narrow = simulate_lu(4096, machine, options, Element::complex64);
  EXPECT_LT(narrow.planned_traffic.total(), complex.planned_traffic.total());
}

}  // namespace
}  // namespace strata
