// solve_general of complex systems: what is certified is true, by elimination of the parts in 113
// bits.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "base/index.hpp"
#include "scalar/complex.hpp"
#include "strata/lu.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Complex64;
using test::ComplexErrors;
using test::Matrix;
using test::random_complex;

LuOptions complex_on_host(std::int64_t panel = 0) {
  LuOptions options;
  options.run.devices = "host";
  options.panel = panel;
  return options;
}

/// Solves A·x = b in T, whatever A and b are in, and expects of what is certified that it is true.
/// Returns whether it is what a caller wants.
template <class T, class A, class B>
bool certified_truly(const Matrix<A>& a, const Matrix<B>& b, const std::string& what,
                     std::int64_t panel = 16) {
  Matrix<T> x(a.rows, b.cols);
  const GeneralSolveResult result =
      solve_general(a.view(), b.view(), x.view(), complex_on_host(panel));
  EXPECT_TRUE(result.info.ok) << what;
  const Certificate& c = result.certificate;
  EXPECT_EQ(c.precision, element_of<T>);
  ComplexErrors worst;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    const ComplexErrors of_column = test::complex_errors(a, b, x, j);
    worst.forward = std::max(worst.forward, of_column.forward);
    worst.normwise = std::max(worst.normwise, of_column.normwise);
    worst.componentwise = std::max(worst.componentwise, of_column.componentwise);
  }
  EXPECT_LE(worst.forward, c.forward_error) << what;
  // Never below the truth, and no more above it than sums of magnitudes round.
  const double roundings = 1 + 6 * static_cast<double>(a.rows + 8) * 0x1p-52;
  EXPECT_LE(worst.componentwise, c.componentwise_backward_error) << what;
  EXPECT_LE(worst.normwise, c.backward_error) << what;
  EXPECT_LE(c.backward_error, roundings * worst.normwise) << what;
  const double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  EXPECT_NEAR(result.hpl_residual, c.backward_error / (u * static_cast<double>(a.rows)),
              1e-12 * result.hpl_residual);
  const double promised = 4 * std::sqrt(static_cast<double>(a.rows)) * 2 * u;
  return c.backward_error <= promised && c.forward_error <= solution_error_wanted(c.precision) &&
         !numerically_singular(c.scaled_condition, c.precision);
}

class ComplexSystems : public ::testing::TestWithParam<test::ComplexKind> {};

TEST_P(ComplexSystems, AreSolvedWithinTheBound) {
  for (const std::int64_t n : {1, 2, 9, 33, 50}) {
    if (GetParam().grows && n > 33) continue;
    const Matrix<Complex128> a = GetParam().make(n);
    EXPECT_TRUE(certified_truly<Complex128>(a, random_complex(a.rows, 1, 41),
                                            GetParam().name + std::to_string(n)));
  }
}

TEST_P(ComplexSystems, OfAnyGrowthHaveTrueCertificates) {
  for (const std::int64_t n : {50, 70}) {
    if (!GetParam().grows) continue;
    const Matrix<Complex128> a = GetParam().make(n);
    EXPECT_TRUE(certified_truly<Complex128>(a, random_complex(a.rows, 1, 41),
                                            GetParam().name + std::to_string(n)));
  }
}

TEST_P(ComplexSystems, InComplex64HaveTrueCertificates) {
  for (const std::int64_t n : {2, 16}) {
    if (GetParam().name == "turned_graded") continue;  // fp32 has no such numbers
    const Matrix<Complex128> a = GetParam().make(n);
    (void)certified_truly<Complex64>(a, random_complex(a.rows, 1, 41), GetParam().name);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ComplexSystems, ::testing::ValuesIn(test::complex_kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(ComplexSolve, TakesTheFourPairsOfPrecisions) {
  const Matrix<Complex128> a = random_complex(24, 24, 3);
  const Matrix<Complex64> narrow = random_complex<Complex64>(24, 24, 3);
  const Matrix<Complex128> b = random_complex(24, 3, 4);
  EXPECT_TRUE(certified_truly<Complex128>(a, b, "complex128"));
  EXPECT_TRUE(certified_truly<Complex64>(a, b, "complex128 in complex64"));
  EXPECT_TRUE(certified_truly<Complex64>(narrow, b, "complex64, b in complex128"));
  EXPECT_TRUE(certified_truly<Complex64>(narrow, random_complex<Complex64>(24, 3, 4), "complex64"));
}

TEST(ComplexSolve, OfEveryConditionIsAccurateOrSaysThatItIsNot) {
  for (int digits = 2; digits <= 18; ++digits) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      const Matrix<Complex128> a =
          test::turned_freely(test::matrix_of_condition(30, std::pow(10.0, digits), seed));
      const std::string what = "condition 1e" + std::to_string(digits);
      const bool promised = certified_truly<Complex128>(a, random_complex(30, 1, seed), what);
      if (digits <= 13) {
        EXPECT_TRUE(promised) << what;
      }
      if (digits >= 17) {
        EXPECT_FALSE(promised) << what;
      }
    }
  }
}

TEST(ComplexSolve, InComplex64OfEveryConditionIsAccurateOrSaysThatItIsNot) {
  for (int digits = 1; digits <= 9; ++digits) {
    const Matrix<Complex128> a =
        test::turned_freely(test::matrix_of_condition(24, std::pow(10.0, digits), 5));
    const bool promised = certified_truly<Complex64>(a, random_complex(24, 1, 5),
                                                     "condition 1e" + std::to_string(digits));
    if (digits <= 4) {
      EXPECT_TRUE(promised) << digits;
    }
    if (digits >= 9) {
      EXPECT_FALSE(promised) << digits;
    }
  }
}

TEST(ComplexSolve, OfImaginaryMatricesIsThatOfRealOnes) {
  const std::int64_t n = 30;
  const Matrix<double> real = test::random_general(n, 8);
  Matrix<double> y(n, 1);
  const Matrix<double> of_real =
      test::make_matrix<double>(n, 1, [](auto i, auto) { return test::signed_uniform(6, i, 0); });
  ASSERT_TRUE(solve_general(real.view(), of_real.view(), y.view(), complex_on_host(8)).info.ok);
  const Matrix<Complex128> a = test::make_matrix<Complex128>(
      n, n, [&](auto i, auto j) { return Complex128(0, real(i, j)); });
  const Matrix<Complex128> b = test::make_matrix<Complex128>(
      n, 1, [&](auto i, auto) { return Complex128(0, of_real(i, 0)); });
  EXPECT_TRUE(certified_truly<Complex128>(a, b, "imaginary"));
  Matrix<Complex128> x(n, 1);
  (void)solve_general(a.view(), b.view(), x.view(), complex_on_host(8));
  for (std::int64_t i = 0; i < n; ++i) EXPECT_LE(std::abs(x(i, 0) - y(i, 0)), 1e-11);
}

TEST(ComplexSolve, RowsAndColumnsOfAnyScaleAreNoCondition) {
  const std::int64_t n = 24;
  const auto power = [](std::int64_t i, std::uint64_t side) {
    return static_cast<int>(random_bits(10 * side, at(i)) % 200) - 100;
  };
  const Matrix<Complex128> plain = random_complex(n, n, 3);
  for (const int which : {1, 2, 3}) {
    const Matrix<Complex128> a = test::make_matrix<Complex128>(n, n, [&](auto i, auto j) {
      return times_power(plain(i, j),
                         (which & 1 ? power(i, 1) : 0) + (which & 2 ? power(j, 2) : 0));
    });
    // With seed 3 b is a multiple of the first column: all other elements of x are noise, and large
    // where their columns are small.
    for (const std::uint64_t seed : {3U, 4U}) {
      const Matrix<Complex128> b = test::make_matrix<Complex128>(n, 1, [&](auto i, auto) {
        return times_power(test::complex_uniform(seed, i, 0), which & 1 ? power(i, 1) : 0);
      });
      Matrix<Complex128> x(n, 1);
      const GeneralSolveResult result =
          solve_general(a.view(), b.view(), x.view(), complex_on_host());
      EXPECT_LT(result.certificate.scaled_condition, 1e5);
      EXPECT_LE(test::complex_errors(a, b, x).forward, result.certificate.forward_error);
      EXPECT_LE(result.certificate.forward_error, 1e-6);
    }
  }
}

/// Parts near the end of the range, so that magnitudes and sums of parts are no numbers.
TEST(ComplexSolve, NearTheEndsOfTheRange) {
  const std::int64_t n = 20;
  const Matrix<Complex128> plain = test::make_matrix<Complex128>(n, n, [](auto i, auto j) {
    const Complex128 z = test::complex_uniform(3, i, j);
    return Complex128(std::copysign(0.9 + 0.09 * std::abs(z.real()), z.real()),
                      std::copysign(0.9 + 0.09 * std::abs(z.imag()), z.imag()));
  });
  for (const int of_a : {-1050, -1000, 0, 1000, 1024}) {
    for (const int of_b : {-1050, 0, 1024}) {
      const auto scaled = [](const Complex128& z, int power) {
        return times_power(times_power(z, power - power / 2), power / 2);
      };
      const Matrix<Complex128> a = test::make_matrix<Complex128>(
          n, n, [&](auto i, auto j) { return scaled(plain(i, j), of_a); });
      const Matrix<Complex128> b = test::make_matrix<Complex128>(
          n, 1, [&](auto i, auto) { return scaled(plain(i, 0), of_b); });
      Matrix<Complex128> x(n, 1);
      const GeneralSolveResult result =
          solve_general(a.view(), b.view(), x.view(), complex_on_host(8));
      ASSERT_TRUE(result.info.ok) << of_a;
      // x is 2^(of_b − of_a)·e₁, but for what elements lost as subnormal numbers.
      const int of_x = of_b - of_a;
      if (of_x > 1026) {
        EXPECT_TRUE(std::isnan(result.certificate.backward_error)) << of_a << ' ' << of_b;
        EXPECT_TRUE(std::isinf(result.certificate.forward_error)) << of_a << ' ' << of_b;
      } else if (of_x > -1000 && of_x < 1015) {
        const double size = std::ldexp(1.0, of_x);
        EXPECT_LE(test::complex_errors(a, b, x).forward, result.certificate.forward_error)
            << of_a << ' ' << of_b;
        EXPECT_NEAR(std::abs(x(0, 0)) / size, 1, 0.01) << of_a << ' ' << of_b;
      }
      EXPECT_NEAR(
          result.info.determinant.log(),
          lu(plain.view(), complex_on_host()).info().determinant.log() + of_a * n * std::log(2.0),
          of_a < -1020 ? 1.0 : 1e-9 * 1050 * n);
    }
  }
}

TEST(ComplexSolve, ColumnsAreSolvedEachForItself) {
  const std::int64_t n = 40;
  const Matrix<Complex128> a = random_complex(n, n, 9);
  Matrix<Complex128> b = random_complex(n, 7, 2);
  for (std::int64_t i = 0; i < n; ++i) {
    b(i, 3) = 0;
    b(i, 5) *= 1e300;
    b(i, 6) *= Complex128(0, 1e-300);
  }
  Matrix<Complex128> x(n, 7);
  const GeneralSolveResult result =
      solve_general(a.view(), b.view(), x.view(), complex_on_host(16));
  for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(x(i, 3), 0.0);
  for (const std::int64_t j : {0, 5, 6})
    EXPECT_LE(test::complex_errors(a, b, x, j).forward, result.certificate.forward_error);
  EXPECT_LE(result.certificate.forward_error, 1e-6);
}

TEST(ComplexSolve, AColumnThatOverflowsIsNotForgottenBesideOthers) {
  const Matrix<Complex128> a = test::make_matrix<Complex128>(
      4, 4, [](auto i, auto j) { return i == j ? Complex128(0, 1e-10) : Complex128(0); });
  Matrix<Complex128> b(4, 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    b(i, 0) = {0, 1e300};
    b(i, 1) = 1;
  }
  Matrix<Complex128> x(4, 2);
  const GeneralSolveResult result = solve_general(a.view(), b.view(), x.view(), complex_on_host());
  EXPECT_TRUE(std::isnan(result.certificate.backward_error));
  EXPECT_TRUE(std::isinf(result.certificate.forward_error));
}

TEST(ComplexSolve, LeavesXOfASingularMatrix) {
  Matrix<Complex128> a = random_complex(20, 20, 9);
  for (std::int64_t i = 0; i < 20; ++i) a(i, 12) = 0;
  Matrix<Complex128> x =
      test::make_matrix<Complex128>(20, 1, [](auto, auto) { return Complex128(7, 1); });
  const GeneralSolveResult result =
      solve_general(a.view(), random_complex(20, 1).view(), x.view(), complex_on_host(8));
  EXPECT_FALSE(result.info.ok);
  EXPECT_EQ(result.info.zero_pivot, 12);
  EXPECT_EQ(result.certificate.factor.first_bad_pivot, 12);
  for (const Complex128& v : x.data) EXPECT_EQ(v, Complex128(7, 1));
  // But for rounding: a column that is a complex multiple of another.
  a = random_complex(20, 20, 9);
  for (std::int64_t i = 0; i < 20; ++i) a(i, 7) = a(i, 3) * Complex128(0.3, -1.7);
  const GeneralSolveResult nearly =
      solve_general(a.view(), random_complex(20, 1).view(), x.view(), complex_on_host(8));
  EXPECT_TRUE(!nearly.info.ok ||
              numerically_singular(nearly.certificate.scaled_condition, Element::complex128))
      << nearly.certificate.scaled_condition;
}

TEST(ComplexSolve, SaysWhichColumnHasAnImaginaryPartThatIsNotFinite) {
  for (const double bad : {test::kNan, std::numeric_limits<double>::infinity()}) {
    Matrix<Complex128> a = random_complex(12, 12, 9);
    a(3, 5) = {1, bad};
    Matrix<Complex128> x(12, 1);
    const GeneralSolveResult result =
        solve_general(a.view(), random_complex(12, 1).view(), x.view(), complex_on_host(4));
    EXPECT_FALSE(result.info.ok);
    EXPECT_EQ(result.info.not_finite, 5);
    EXPECT_TRUE(std::isnan(result.certificate.factor.bad_pivot));
  }
}

}  // namespace
}  // namespace strata
