// solve_general: what is certified is true, by elimination in 113 bits, of matrices that are hard
// for partial pivoting, of every condition, and near the ends of the range.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "base/index.hpp"
#include "strata/error.hpp"
#include "strata/lu.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/support/nan.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata {
namespace {

using test::Matrix;

LuOptions on_host(std::int64_t panel = 0) {
  LuOptions options;
  options.run.devices = "host";
  options.panel = panel;
  return options;
}

Matrix<double> right_side(std::int64_t n, std::uint64_t seed = 41) {
  return test::make_matrix<double>(n, 1,
                                   [=](auto i, auto) { return test::signed_uniform(seed, i, 0); });
}

bool is_promised(const Certificate& c, std::int64_t n) {
  const double promised =
      4 * std::sqrt(static_cast<double>(n)) * (c.precision == Element::fp32 ? 0x1p-23 : 0x1p-52);
  return c.backward_error <= promised && c.forward_error <= solution_error_wanted(c.precision) &&
         !numerically_singular(c.scaled_condition, c.precision);
}

/// Solves, and expects of what is certified that it is true. Returns whether it is what a caller
/// wants.
template <class T>
bool expect_certified(const Matrix<double>& a, const Matrix<double>& b, const std::string& what,
                      std::int64_t panel = 16) {
  const std::int64_t n = a.rows;
  Matrix<T> x(n, 1);
  const GeneralSolveResult result = solve_general(a.view(), b.view(), x.view(), on_host(panel));
  EXPECT_TRUE(result.info.ok) << what;
  const Certificate& c = result.certificate;
  const test::WideErrors exact = test::wide_errors(a.data, b.data, x.data);
  EXPECT_LE(exact.forward, c.forward_error) << what;
  if (std::isfinite(result.log_determinant_error)) {
    const test::WideDeterminant det = test::wide_determinant(a.data, n);
    EXPECT_LE(std::abs(result.info.determinant.log() - det.log),
              result.log_determinant_error + static_cast<double>(n) * 0x1p-50)
        << what;  // the oracle adds up n logarithms
    EXPECT_EQ(result.info.determinant.sign, det.sign) << what;
  }
  EXPECT_LE(exact.componentwise, c.componentwise_backward_error) << what;
  // That the oracle sums up in long double, and what is added for sums of rows.
  const double normwise = test::backward_error(a, b, x);
  EXPECT_NEAR(normwise, c.backward_error,
              static_cast<double>(n + 10) * (0x1p-63 + 0x1p-51 * normwise))
      << what;
  EXPECT_NEAR(result.hpl_residual,
              c.backward_error / (std::numeric_limits<T>::epsilon() / 2 * static_cast<double>(n)),
              1e-12 * result.hpl_residual);
  return is_promised(c, n);
}

class GeneralSystems : public ::testing::TestWithParam<test::GeneralKind> {};

TEST_P(GeneralSystems, AreSolvedWithinTheBoundAndToASmallHplResidual) {
  for (const std::int64_t n : {2, 8, 33, 64}) {
    if (GetParam().grows && n > 33) continue;
    const Matrix<double> a = GetParam().make(n);
    const std::string what = GetParam().name + " " + std::to_string(n);
    EXPECT_TRUE(expect_certified<double>(a, right_side(a.rows), what)) << what;
    Matrix<double> x(a.rows, 1);
    const GeneralSolveResult result =
        solve_general(a.view(), right_side(a.rows).view(), x.view(), on_host(16));
    EXPECT_LT(result.hpl_residual, 16) << what;
  }
}

// Solves with steps of refinement mend growth by up to 2¹⁰⁰; beyond it is no silent failure.
TEST_P(GeneralSystems, OfAnyGrowthHaveTrueCertificates) {
  for (const std::int64_t n : {50, 56, 70, 120}) {
    if (!GetParam().grows) continue;
    const Matrix<double> a = GetParam().make(n);
    const std::string what = GetParam().name + " " + std::to_string(n);
    const bool solved = expect_certified<double>(a, right_side(a.rows), what);
    EXPECT_TRUE(solved || n > 100) << what;
  }
}

TEST_P(GeneralSystems, InFp32HaveTrueCertificates) {
  for (const std::int64_t n : {2, 16}) {
    if (GetParam().name == "graded") continue;  // fp32 has no such numbers
    const Matrix<double> a = GetParam().make(n);
    (void)expect_certified<float>(a, right_side(a.rows), GetParam().name + " in fp32");
  }
}

/// As in finite elements with other units for some unknowns, or equations times a penalty.
TEST_P(GeneralSystems, KeepTheirCertificatesWithRowsInOtherUnits) {
  const test::GeneralKind& kind = GetParam();
  for (const std::int64_t order : {7, 24}) {
    const Matrix<double> plain = kind.make(order);
    const std::int64_t n = plain.rows;
    const Matrix<double> b = right_side(n);
    const bool good = expect_certified<double>(plain, b, kind.name);
    for (const int most : {12, 60, 450}) {
      const auto power = [&](std::int64_t i) {
        return static_cast<int>(random_bits(77, at(i)) % at(2 * most)) - most;
      };
      const Matrix<double> scaled = test::make_matrix<double>(
          n, n, [&](auto i, auto j) { return std::ldexp(plain(i, j), power(i)); });
      const Matrix<double> of_rows = test::make_matrix<double>(
          n, 1, [&](auto i, auto) { return std::ldexp(b(i, 0), power(i)); });
      const bool found =
          expect_certified<double>(scaled, of_rows, kind.name + " by 2^" + std::to_string(most));
      EXPECT_TRUE(found || !good) << kind.name << " by 2^" << most;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GeneralSystems, ::testing::ValuesIn(test::general_kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(GeneralSolve, OfEveryConditionIsAccurateOrSaysThatItIsNot) {
  int kept = 0;
  for (int digits = 2; digits <= 18; ++digits) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Matrix<double> a = test::matrix_of_condition(40, std::pow(10.0, digits), seed);
      const std::string what = "condition 1e" + std::to_string(digits);
      const bool promised = expect_certified<double>(a, right_side(40, seed), what);
      if (digits <= 13) {
        EXPECT_TRUE(promised) << what;
      }
      if (digits >= 17) {
        EXPECT_FALSE(promised) << what;
      }
      kept += promised ? 1 : 0;
    }
  }
  EXPECT_GE(kept, 36);
}

TEST(GeneralSolve, InFp32OfEveryConditionIsAccurateOrSaysThatItIsNot) {
  for (int digits = 1; digits <= 9; ++digits) {
    const Matrix<double> a = test::matrix_of_condition(30, std::pow(10.0, digits), 5);
    const bool promised =
        expect_certified<float>(a, right_side(30), "fp32, condition 1e" + std::to_string(digits));
    if (digits <= 4) {
      EXPECT_TRUE(promised) << digits;
    }
    if (digits >= 9) {
      EXPECT_FALSE(promised) << digits;
    }
  }
}

TEST(GeneralSolve, RowsAndColumnsOfAnyScaleAreNoCondition) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    const std::int64_t n = 30;
    const int which = static_cast<int>(seed % 3) + 1;
    const Matrix<double> plain = test::random_general(n, seed);
    for (const int most : {6, 30, 100, which == 3 ? 450 : 900}) {
      const auto power = [&](std::int64_t i, std::uint64_t side) {
        return static_cast<int>(random_bits(seed + 10 * side, at(i)) % at(2 * most)) - most;
      };
      const Matrix<double> a = test::make_matrix<double>(n, n, [&](auto i, auto j) {
        return std::ldexp(plain(i, j),
                          (which & 1 ? power(i, 1) : 0) + (which & 2 ? power(j, 2) : 0));
      });
      // b of the size of its rows.
      const Matrix<double> b = test::make_matrix<double>(n, 1, [&](auto i, auto) {
        return std::ldexp(test::signed_uniform(3, i, 0), which & 1 ? power(i, 1) : 0);
      });
      Matrix<double> x(n, 1);
      const GeneralSolveResult result = solve_general(a.view(), b.view(), x.view(), on_host());
      ASSERT_TRUE(result.info.ok);
      EXPECT_LT(result.certificate.scaled_condition, 1e5);
      EXPECT_LE(test::wide_errors(a.data, b.data, x.data).forward,
                result.certificate.forward_error);
      EXPECT_LE(result.certificate.forward_error, 1e-6);
    }
  }
}

TEST(GeneralSolve, NearTheEndsOfTheRange) {
  const std::int64_t n = 24;
  const Matrix<double> plain = test::random_general(n, 3);
  for (const int of_a : {-1050, -1000, 0, 1000, 1023}) {
    for (const int of_b : {-1050, 0, 1020}) {
      const Matrix<double> a = test::make_matrix<double>(
          n, n, [&](auto i, auto j) { return std::ldexp(plain(i, j), of_a); });
      const Matrix<double> b = test::make_matrix<double>(
          n, 1, [&](auto i, auto) { return std::ldexp(test::signed_uniform(3, i, 0), of_b); });
      Matrix<double> x(n, 1);
      const GeneralSolveResult result = solve_general(a.view(), b.view(), x.view(), on_host());
      ASSERT_TRUE(result.info.ok) << of_a;
      bool finite = true;
      for (const double v : x.data) finite = finite && std::isfinite(v);
      const int of_x = of_b - of_a;
      if (of_x > 1026) {
        EXPECT_FALSE(finite);
        EXPECT_TRUE(std::isnan(result.certificate.backward_error));
        EXPECT_TRUE(std::isinf(result.certificate.forward_error));
      } else if (of_x < 1015) {
        EXPECT_TRUE(finite);
        EXPECT_LE(test::wide_errors(a.data, b.data, x.data).forward,
                  result.certificate.forward_error)
            << of_a << ' ' << of_b;
      }
      // The determinant is of A as it was given.
      Matrix<double> same = plain;
      EXPECT_NEAR(result.info.determinant.log(),
                  lu(same.view(), on_host()).info().determinant.log() + of_a * n * std::log(2.0),
                  of_a < -1020 ? 1.0 : 1e-9 * 1050 * n);
    }
  }
}

TEST(GeneralSolve, ColumnsAreSolvedEachForItself) {
  const std::int64_t n = 50;
  const Matrix<double> a = test::random_general(n, 9);
  Matrix<double> b = test::make_matrix<double>(
      n, 7, [](auto i, auto j) { return j == 3 ? 0.0 : test::signed_uniform(2, i, j); });
  for (std::int64_t i = 0; i < n; ++i) b(i, 5) *= 1e300;
  for (std::int64_t i = 0; i < n; ++i) b(i, 6) *= 1e-300;
  Matrix<double> x(n, 7);
  const GeneralSolveResult result = solve_general(a.view(), b.view(), x.view(), on_host(16));
  for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(x(i, 3), 0);
  for (const std::int64_t j : {0, 5, 6}) {
    const std::vector<double> column(b.view().column(j), b.view().column(j) + n);
    const std::vector<double> mine(x.view().column(j), x.view().column(j) + n);
    EXPECT_LE(test::wide_errors(a.data, column, mine).forward, result.certificate.forward_error);
  }
  EXPECT_LE(result.certificate.forward_error, 1e-6);
}

TEST(GeneralSolve, LeavesXOfASingularMatrix) {
  Matrix<double> a = test::random_general(20, 9);
  for (std::int64_t i = 0; i < 20; ++i) a(i, 12) = 0;
  Matrix<double> x = test::make_matrix<double>(20, 1, [](auto, auto) { return 7; });
  const GeneralSolveResult result =
      solve_general(a.view(), right_side(20).view(), x.view(), on_host(8));
  EXPECT_FALSE(result.info.ok);
  EXPECT_EQ(result.info.zero_pivot, 12);
  EXPECT_FALSE(result.certificate.factor.ok);
  EXPECT_EQ(result.certificate.factor.first_bad_pivot, 12);
  for (const double v : x.data) EXPECT_EQ(v, 7);
  // But for rounding: a row that is the sum of two others.
  a = test::random_general(20, 9);
  for (std::int64_t j = 0; j < 20; ++j) a(7, j) = (a(3, j) + a(11, j)) / 3;
  const GeneralSolveResult nearly =
      solve_general(a.view(), right_side(20).view(), x.view(), on_host(8));
  EXPECT_TRUE(!nearly.info.ok ||
              numerically_singular(nearly.certificate.scaled_condition, Element::fp64))
      << nearly.certificate.scaled_condition;
}

TEST(GeneralSolve, RefusesShapesThatDoNotFit) {
  const Matrix<double> a = test::random_general(4);
  Matrix<double> x(4, 1);
  EXPECT_THROW((void)solve_general(Matrix<double>(4, 3).view(), right_side(4).view(), x.view()),
               Error);
  EXPECT_THROW((void)solve_general(a.view(), right_side(5).view(), x.view()), Error);
  EXPECT_THROW((void)solve_general(a.view(), Matrix<double>(4, 2).view(), x.view()), Error);
}

// ---- inverses

template <class T>
class GeneralInverse : public ::testing::Test {};
using InverseTypes = ::testing::Types<double, float, std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(GeneralInverse, InverseTypes);

TYPED_TEST(GeneralInverse, IsThatOfABidiagonalMatrixWhoseRowsAreReversed) {
  using T = TypeParam;
  LuOptions options;
  options.run.devices = "host";
  for (const std::int64_t n : {0, 1, 2, 37}) {
    // Ones, and −1 (−i) beside them: powers of 1 (i) in the inverse.
    T beside{1};
    if constexpr (is_complex_v<T>) beside = T(0, 1);
    const auto a = test::make_matrix<T>(n, n, [&](auto i, auto j) {
      const std::int64_t row = n - 1 - i;
      return row == j ? T{1} : row + 1 == j ? -beside : T{};
    });
    Matrix<T> x(n, n);
    const GeneralSolveResult result = inverse_general(a.view(), x.view(), options);
    EXPECT_TRUE(result.info.ok);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        T expected = i <= n - 1 - j ? T{1} : T{};
        for (std::int64_t k = i; k < n - 1 - j; ++k) expected *= beside;
        ASSERT_LE(std::abs(x(i, j) - expected), 1e-6) << n;
      }
    }
  }
  Matrix<T> tall(1'000'000, 1);
  Matrix<T> x(1, 1);
  EXPECT_THROW((void)inverse_general(tall.view(), x.view(), options), Error);
  EXPECT_THROW(
      (void)inverse_general(MatrixView<const T>{tall.data.data(), 2, 2, 2}, x.view(), options),
      Error);
  Matrix<T> singular(3, 3);
  Matrix<T> of_singular(3, 3);
  EXPECT_FALSE(inverse_general(singular.view(), of_singular.view(), options).info.ok);
}

}  // namespace
}  // namespace strata
