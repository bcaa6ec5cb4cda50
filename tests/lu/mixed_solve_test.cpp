// solve_general_mixed: factors in fp32 give what is certified of x in fp64, by elimination in 113
// bits, whatever condition, scale and growth; and where they cannot, it says that fp64 did.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/index.hpp"
#include "strata/lu.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Matrix;

LuOptions mixed_on_host(std::int64_t panel = 16) {
  LuOptions options;
  options.run.devices = "host";
  options.panel = panel;
  return options;
}

Matrix<double> mixed_right_side(std::int64_t n, std::int64_t columns, std::uint64_t seed) {
  return test::make_matrix<double>(
      n, columns, [=](auto i, auto j) { return test::signed_uniform(seed, i, j); });
}

/// Expects of X and its certificate that they are true and as good as in fp64.
GeneralSolveResult expect_mixed(const Matrix<double>& a, const Matrix<double>& b,
                                const std::string& what) {
  const std::int64_t n = a.rows;
  Matrix<double> x(n, b.cols);
  const GeneralSolveResult result =
      solve_general_mixed(a.view(), b.view(), x.view(), mixed_on_host());
  EXPECT_TRUE(result.info.ok) << what;
  const Certificate& c = result.certificate;
  EXPECT_EQ(c.precision, Element::fp64);
  EXPECT_EQ(result.factor_precision, result.fallback.empty() ? Element::fp32 : Element::fp64);
  const double rows = std::sqrt(static_cast<double>(std::max<std::int64_t>(n, 16)));
  const double rounding = static_cast<double>(n + 2) * 0x1p-53;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    const std::vector<double> column(b.view().column(j), b.view().column(j) + n);
    const std::vector<double> mine(x.view().column(j), x.view().column(j) + n);
    const test::WideErrors exact = test::wide_errors(a.data, column, mine);
    EXPECT_LE(exact.forward, c.forward_error) << what;
    EXPECT_LE(exact.componentwise, c.componentwise_backward_error) << what;
    if (!result.fallback.empty()) continue;
    EXPECT_LE(exact.componentwise, rows * 0x1p-52 + rounding) << what;
  }
  if (result.fallback.empty()) {
    EXPECT_LE(c.backward_error, 4 * 0x1p-52) << what;
    EXPECT_LE(c.forward_error, 1e-6) << what;
    EXPECT_FALSE(numerically_singular(c.scaled_condition, Element::fp64)) << what;
  }
  if (std::isfinite(result.log_determinant_error)) {
    const test::WideDeterminant det = test::wide_determinant(a.data, n);
    EXPECT_LE(std::abs(result.info.determinant.log() - det.log),
              result.log_determinant_error + static_cast<double>(n) * 0x1p-50)
        << what;
    EXPECT_EQ(result.info.determinant.sign, det.sign) << what;
  }
  return result;
}

/// A·(I − (1 − 1/condition)·v·vᵀ), A of condition 2 and v of length 1: one singular value is small.
Matrix<double> of_one_small_value(std::int64_t n, double condition) {
  const Matrix<double> a = test::matrix_of_condition(n, 2, 3);
  const Matrix<double> q = test::matrix_of_condition(n, 1, 4);  // orthogonal
  std::vector<long double> product(at(n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      product[at(i)] += static_cast<long double>(a(i, k)) * q(k, 0);
  return test::make_matrix<double>(n, n, [&](auto i, auto j) {
    return static_cast<double>(a(i, j) - (1 - 1 / condition) * product[at(i)] * q(j, 0));
  });
}

TEST(MixedSolve, StepsAloneDoWhereFp32IsNear) {
  for (int digits = 1; digits <= 6; ++digits) {
    const std::string what = "condition 1e" + std::to_string(digits);
    const GeneralSolveResult result = expect_mixed(
        test::matrix_of_condition(60, std::pow(10.0, digits), 3), mixed_right_side(60, 3, 5), what);
    EXPECT_EQ(result.fallback, "") << what;
    EXPECT_EQ(result.gmres_iterations, 0) << what;
    EXPECT_GE(result.certificate.refinement_steps, 1) << what;
  }
}

/// What factors in fp32 are off is in the error of the determinant, where solves with them, which
/// round likewise, do not show it.
TEST(MixedSolve, DeterminantsOfSmallOrdersAreAsGoodAsTheySay) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto n = static_cast<std::int64_t>(1 + seed % 3);
    const auto a = test::make_matrix<double>(n, n, [&](auto i, auto j) {
      return i == j || seed % 2 == 0
                 ? std::ldexp(test::signed_uniform(seed, i, j), static_cast<int>(seed % 7) * 5 - 15)
                 : 0;
    });
    GeneralFactor factor = factor_general(a.view(), Element::fp32, mixed_on_host());
    const Matrix<double> b = mixed_right_side(n, 1, seed);
    Matrix<double> x(n, 1);
    const GeneralSolveResult result = factor.solve(a.view(), b.view(), x.view());
    const double error =
        std::abs(factor.info().determinant.log() - test::wide_determinant(a.data, n).log);
    EXPECT_LE(error, result.log_determinant_error) << seed;
    EXPECT_LE(error, factor.log_determinant_error()) << seed;
    if (result.certificate.scaled_condition < 100) {
      EXPECT_LE(result.log_determinant_error, 1e-3) << seed;
    }
  }
}

/// Elements of x that are zero but for rounding have rows of which the backward error is about 1;
/// x is as good as any all the same.
TEST(MixedSolve, BlocksOfZerosInXAreNoShortcoming) {
  for (const std::int64_t n : {20, 90}) {
    const std::int64_t half = n / 2;
    const auto a = test::make_matrix<double>(n, n, [&](auto i, auto j) {
      if (i >= half && j < half) return 0.0;
      const double size = i < half && j >= half ? 10 : 1;
      return size * test::signed_uniform(8, i, j) +
             (i == j ? 2 * std::sqrt(static_cast<double>(n)) : 0);
    });
    const auto b = test::make_matrix<double>(
        n, 1, [&](auto i, auto j) { return i < half ? test::signed_uniform(9, i, j) : 0.0; });
    const auto turned = test::make_matrix<double>(n, n, [&](auto i, auto j) { return a(j, i); });
    const MatrixSource<double> by_rows{n, true,
                                       [&](std::int64_t first, std::int64_t count, double* to) {
                                         std::copy_n(turned.view().column(first), count * n, to);
                                       }};
    for (const Element precision : {Element::fp64, Element::fp32}) {
      GeneralFactor factor = factor_general(by_rows, precision, mixed_on_host());
      Matrix<double> x(n, 1);
      const GeneralSolveResult result = factor.solve(by_rows, b.view(), x.view());
      EXPECT_EQ(result.fallback, "") << n;
      EXPECT_LE(test::wide_errors(a.data, b.data, x.data).forward,
                result.certificate.forward_error);
      EXPECT_LE(result.certificate.forward_error, 1e-11) << n;
      EXPECT_LE(result.certificate.backward_error, 4 * 0x1p-52);
    }
  }
}

TEST(MixedSolve, SeveralSolvesForOneContractWhereOneDoesNotInTheNorm) {
  for (int digits = 7; digits <= 9; ++digits) {
    const std::string what = "condition 1e" + std::to_string(digits);
    const GeneralSolveResult result = expect_mixed(
        test::matrix_of_condition(60, std::pow(10.0, digits), 3), mixed_right_side(60, 2, 5), what);
    EXPECT_EQ(result.fallback, "") << what;
    EXPECT_EQ(result.gmres_iterations, 0) << what;
  }
}

TEST(MixedSolve, GmresDoesWhereStepsDoNotContract) {
  const GeneralSolveResult of_many = expect_mixed(test::matrix_of_condition(60, 1e10, 3),
                                                  mixed_right_side(60, 2, 5), "condition 1e10");
  EXPECT_EQ(of_many.fallback, "");
  EXPECT_GT(of_many.gmres_iterations, 0);
  for (int digits = 9; digits <= 12; ++digits) {
    const std::string what = "one small value 1e-" + std::to_string(digits);
    const GeneralSolveResult result = expect_mixed(of_one_small_value(60, std::pow(10.0, digits)),
                                                   mixed_right_side(60, 2, 5), what);
    EXPECT_EQ(result.fallback, "") << what;
    EXPECT_GT(result.gmres_iterations, 0) << what;
    // With triangles solved in fp64; those in fp32 take five times as many.
    EXPECT_LE(result.gmres_iterations, 120) << what;
  }
}

TEST(MixedSolve, FallsBackToFp64WhereFp32CannotDo) {
  for (int digits = 13; digits <= 17; ++digits) {
    for (const bool one : {false, true}) {
      const double condition = std::pow(10.0, digits);
      const Matrix<double> a =
          one ? of_one_small_value(40, condition) : test::matrix_of_condition(40, condition, 7);
      const Matrix<double> b = mixed_right_side(40, 2, 5);
      const std::string what = "condition 1e" + std::to_string(digits);
      const GeneralSolveResult result = expect_mixed(a, b, what);
      if (digits >= 16) {
        EXPECT_NE(result.fallback, "") << what;
      }
      if (result.fallback.empty()) continue;
      // What is handed back is what solve_general does, to the bit.
      Matrix<double> mixed(40, 2);
      (void)solve_general_mixed(a.view(), b.view(), mixed.view(), mixed_on_host());
      Matrix<double> x(40, 2);
      const GeneralSolveResult plain = solve_general(a.view(), b.view(), x.view(), mixed_on_host());
      EXPECT_EQ(mixed.data, x.data) << what;
      EXPECT_EQ(result.certificate.scaled_condition, plain.certificate.scaled_condition);
      EXPECT_GT(result.certificate.bytes_moved, plain.certificate.bytes_moved);
    }
  }
}

TEST(MixedSolve, OfHardKinds) {
  for (const test::GeneralKind& kind : test::general_kinds()) {
    for (const std::int64_t n : {2, 17, 33, 60, 70}) {
      const Matrix<double> a = kind.make(n);
      const std::string what = kind.name + " " + std::to_string(n);
      const GeneralSolveResult result = expect_mixed(a, mixed_right_side(a.rows, 2, 5), what);
      if (!kind.grows) {
        EXPECT_EQ(result.fallback, "") << what;
      }
    }
  }
}

// fp32 ends at 1e±38; what is scaled by rows and columns is solved in it all the same.
TEST(MixedSolve, OfAnyScale) {
  const std::int64_t n = 30;
  const Matrix<double> plain = test::random_general(n, 3);
  const auto power = [](std::int64_t i, std::uint64_t side) {
    return std::pow(10.0, static_cast<double>(random_bits(10 * side, at(i)) % 400) - 200);
  };
  for (const int which : {1, 2}) {
    const Matrix<double> a = test::make_matrix<double>(n, n, [&](auto i, auto j) {
      return plain(i, j) * (which == 1 ? power(i, 1) : power(j, 2));
    });
    const Matrix<double> b = test::make_matrix<double>(n, 2, [&](auto i, auto j) {
      return test::signed_uniform(4, i, j) * (which == 1 ? power(i, 1) : 1);
    });
    const std::string what = which == 1 ? "rows" : "columns";
    EXPECT_EQ(expect_mixed(a, b, what).fallback, "") << what;
  }
  for (const double scale : {1e39, 1e-39, 1e300, 1e-300}) {
    const Matrix<double> a =
        test::make_matrix<double>(n, n, [&](auto i, auto j) { return plain(i, j) * scale; });
    EXPECT_EQ(expect_mixed(a, mixed_right_side(n, 2, 5), "all").fallback, "") << scale;
  }
  // One element that fp32 cannot hold.
  Matrix<double> a = plain;
  a(7, 11) = 1e60;
  (void)expect_mixed(a, mixed_right_side(n, 2, 5), "one of 1e60");
}

TEST(MixedSolve, OfOrdersThatAreNone) {
  for (const double only : {1e-310, -3.0, 1e300}) {
    Matrix<double> a(1, 1);
    a(0, 0) = only;
    Matrix<double> b(1, 1);
    b(0, 0) = only;
    Matrix<double> x(1, 1);
    const GeneralSolveResult result = solve_general_mixed(a.view(), b.view(), x.view());
    EXPECT_TRUE(result.info.ok);
    EXPECT_DOUBLE_EQ(x(0, 0), 1);
  }
  Matrix<double> none(0, 0);
  Matrix<double> empty(0, 2);
  Matrix<double> x(0, 2);
  EXPECT_TRUE(solve_general_mixed(none.view(), empty.view(), x.view()).info.ok);
  const Matrix<double> a = test::random_general(9);
  Matrix<double> no_column(9, 0);
  Matrix<double> no_x(9, 0);
  EXPECT_TRUE(solve_general_mixed(a.view(), no_column.view(), no_x.view()).info.ok);
}

TEST(MixedSolve, LeavesXOfASingularMatrix) {
  for (const bool finite : {true, false}) {
    Matrix<double> a = test::random_general(20, 9);
    for (std::int64_t i = 0; i < 20; ++i) a(i, 12) = finite ? 0 : test::kNan;
    Matrix<double> x = test::make_matrix<double>(20, 1, [](auto, auto) { return 7; });
    const GeneralSolveResult result =
        solve_general_mixed(a.view(), mixed_right_side(20, 1, 2).view(), x.view(), mixed_on_host());
    EXPECT_FALSE(result.info.ok);
    EXPECT_EQ(finite ? result.info.zero_pivot : result.info.not_finite, 12);
    EXPECT_NE(result.fallback, "");
    for (const double v : x.data) EXPECT_EQ(v, 7);
  }
  // In fp32 alone: 1 + 2⁻⁴⁰ rounds to 1.
  Matrix<double> a(2, 2);
  a(0, 0) = a(0, 1) = a(1, 0) = 1;
  a(1, 1) = 1 + 0x1p-40;
  const GeneralSolveResult result = expect_mixed(a, mixed_right_side(2, 1, 2), "1 + 2^-40");
  EXPECT_EQ(result.fallback, "in fp32 the matrix is singular");
}

TEST(MixedSolve, ColumnsOfAnySizeAndZeros) {
  const std::int64_t n = 50;
  for (const bool by_gmres : {false, true}) {
    const Matrix<double> a =
        by_gmres ? of_one_small_value(n, 1e9) : test::matrix_of_condition(n, 1e3, 9);
    Matrix<double> b = mixed_right_side(n, 11, 2);
    for (std::int64_t i = 0; i < n; ++i) {
      b(i, 3) = 0;
      b(i, 5) *= 1e290;
      b(i, 6) *= 1e-290;
    }
    Matrix<double> x(n, 11);
    const GeneralSolveResult result =
        solve_general_mixed(a.view(), b.view(), x.view(), mixed_on_host());
    EXPECT_EQ(result.fallback, "");
    EXPECT_EQ(result.gmres_iterations > 0, by_gmres);
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(x(i, 3), 0);
    for (const std::int64_t j : {0, 5, 6, 10}) {
      const std::vector<double> column(b.view().column(j), b.view().column(j) + n);
      const std::vector<double> mine(x.view().column(j), x.view().column(j) + n);
      EXPECT_LE(test::wide_errors(a.data, column, mine).forward, result.certificate.forward_error);
    }
  }
}

TEST(MixedSolve, OfComplexNumbers) {
  const auto solve = [](const Matrix<Complex128>& a, const std::string& what) {
    const std::int64_t n = a.rows;
    const Matrix<Complex128> b = test::random_complex(n, 2, 41);
    Matrix<Complex128> x(n, 2);
    GeneralSolveResult result = solve_general_mixed(a.view(), b.view(), x.view(), mixed_on_host());
    const Certificate& c = result.certificate;
    for (const std::int64_t j : {0, 1}) {
      const test::ComplexErrors errors = test::complex_errors(a, b, x, j);
      const double rounding = 3 * static_cast<double>(n + 2) * 0x1p-53;
      EXPECT_LE(errors.forward, c.forward_error) << what;
      EXPECT_LE(errors.componentwise, c.componentwise_backward_error) << what;
      if (!result.fallback.empty()) continue;
      EXPECT_EQ(result.factor_precision, Element::complex64) << what;
      EXPECT_LE(errors.normwise, 4 * 0x1p-52 + rounding) << what;
      EXPECT_LE(c.componentwise_backward_error, std::sqrt(static_cast<double>(n + 16)) * 0x1p-52)
          << what;
      EXPECT_LE(c.forward_error, 1e-6) << what;
    }
    return result;
  };
  for (int digits = 2; digits <= 16; ++digits) {
    const Matrix<Complex128> a =
        test::turned_freely(test::matrix_of_condition(30, std::pow(10.0, digits), 1));
    const std::string what = "condition 1e" + std::to_string(digits);
    const GeneralSolveResult result = solve(a, what);
    if (digits <= 9) {
      EXPECT_EQ(result.fallback, "") << what;
    }
    if (digits >= 10 && digits <= 12) {
      EXPECT_EQ(result.fallback, "") << what;
      EXPECT_GT(result.gmres_iterations, 0) << what;
    }
  }
  for (const test::ComplexKind& kind : test::complex_kinds()) {
    for (const std::int64_t n : {2, 33}) (void)solve(kind.make(n), kind.name + std::to_string(n));
  }
}

// Panels are a choice of speed, for solves in fp64 with factors in fp32, too.
TEST(MixedSolve, InPanelsOfAnyWidth) {
  const Matrix<double> a = of_one_small_value(50, 1e9);
  const Matrix<double> b = mixed_right_side(50, 1, 5);
  for (const std::int64_t panel : {1, 7, 50, 64}) {
    Matrix<double> x(50, 1);
    const GeneralSolveResult result =
        solve_general_mixed(a.view(), b.view(), x.view(), mixed_on_host(panel));
    EXPECT_EQ(result.fallback, "") << panel;
    EXPECT_GT(result.gmres_iterations, 0) << panel;
    EXPECT_LE(test::wide_errors(a.data, b.data, x.data).forward, result.certificate.forward_error);
  }
}

}  // namespace
}  // namespace strata
