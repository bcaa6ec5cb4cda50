// The backward error that solve() certifies, against the formula in long double with the whole
// matrix, on systems where it would be another number without any of its terms.
//
// The residual of a backward stable solution is rounding, so that one in fp64 and one in long
// double need not share a digit. They do where it is exact: in fp32, whose products fp64 holds, and
// where every element of A is a power of two. That certificates of fp64 are never below the truth
// is tested beside 113 bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "strata/cholesky.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/epsilon.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::backward_errors;
using test::kEpsilon;
using test::Matrix;

template <class T>
double worst_of(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& x,
                long double weight_ax = 1, long double weight_b = 1) {
  const std::vector<long double> errors = backward_errors(a, b, x, weight_ax, weight_b);
  return static_cast<double>(*std::max_element(errors.begin(), errors.end()));
}

/// max |b − A·x| / (|A|·|x| + |b|).
template <class T>
double worst_row(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& x) {
  long double worst = 0;
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      long double r = b(i, c), terms = std::abs(static_cast<long double>(b(i, c)));
      for (std::int64_t j = 0; j < a.cols; ++j) {
        const long double term = static_cast<long double>(a(i, j)) * x(j, c);
        r -= term;
        terms += std::abs(term);
      }
      worst = std::max(worst, std::abs(r) / terms);
    }
  }
  return static_cast<double>(worst);
}

CholeskyOptions host_options_of(std::int64_t tile) {
  CholeskyOptions options;
  options.run.devices = "host";
  options.run.device_memory_bytes = 4 << 20;
  options.tile = tile;
  return options;
}

template <class T>
struct Solved {
  Matrix<T> x;
  Certificate certificate;
};

template <class T>
Solved<T> solved(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> x(a.rows, b.cols);
  const SolveResult result = solve(a.view(), b.view(), x.view(), host_options_of(32));
  EXPECT_TRUE(result.certificate.factor.ok);
  EXPECT_EQ(result.certificate.precision, element_of<T>);
  return {std::move(x), result.certificate};
}

Matrix<float> waves(std::int64_t n, std::int64_t columns) {
  return test::make_matrix<float>(
      n, columns, [](auto i, auto j) { return std::sin(static_cast<double>(1 + i * 3 + j * 7)); });
}

/// An error of the residual is at most n + 2 roundings of fp64 of what the certificate divides by.
double resolution(std::int64_t n) { return static_cast<double>(n + 2) * kEpsilon; }

TEST(Certificate, InFp32IsTheFormulaToTheLastDigitsOfFp64) {
  for (const std::int64_t n : {1, 2, 17, 200, 300}) {
    for (const auto& a : {test::random_spd_matrix<float>(n, 42), test::min_matrix<float>(n)}) {
      const Matrix<float> b = waves(n, 5);
      const auto [x, certificate] = solved(a, b);
      const double expected = worst_of(a, b, x);
      EXPECT_NEAR(certificate.backward_error, expected, resolution(n)) << n;
      // Backward stable in fp32, and not better than its rounding: it was fp32 that was solved.
      const double eps = std::numeric_limits<float>::epsilon();
      EXPECT_LE(expected, 10 * static_cast<double>(n) * eps) << n;
      if (n >= 17) {
        EXPECT_GT(expected, 1e-4 * eps) << n;
      }
    }
  }
}

__extension__ using Quad = __float128;

/// ‖b − A·x‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞) of column j, and the largest quotient of rows.
std::pair<double, double> quad_errors(const Matrix<double>& a, const Matrix<double>& b,
                                      const Matrix<double>& x, std::int64_t c) {
  const auto size = [](Quad value) { return value < 0 ? -value : value; };
  Quad residual = 0, norm_a = 0, norm_b = 0, norm_x = 0, of_rows = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    Quad r = b(i, c), row = 0, terms = size(b(i, c));
    for (std::int64_t j = 0; j < a.cols; ++j) {
      const Quad term = static_cast<Quad>(a(i, j)) * x(j, c);
      r -= term;
      terms += size(term);
      row += size(a(i, j));
    }
    residual = std::max(residual, size(r));
    norm_a = std::max(norm_a, row);
    norm_b = std::max(norm_b, size(b(i, c)));
    norm_x = std::max(norm_x, size(x(i, c)));
    of_rows = std::max(of_rows, Quad(size(r) / terms));
  }
  return {static_cast<double>(Quad(residual / (norm_a * norm_x + norm_b))),
          static_cast<double>(of_rows)};
}

TEST(Certificate, OfFp64IsNeverBelowTheTruth) {
  test::Thinned thinned(7);
  for (const std::int64_t n : {1, 2, 3, 5, 16, 33, 100, 255}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      if (thinned.skips()) continue;
      const Matrix<double> a = test::random_spd_matrix<double>(n, seed);
      const auto b = test::make_matrix<double>(n, 2, [&](auto i, auto j) {
        // Sums of one sign, and of both.
        const double wave = std::sin(static_cast<double>(1 + i * 3 + j * 7) + 0.1 * seed);
        return j == 0 ? wave : std::abs(wave);
      });
      const auto [x, certificate] = solved(a, b);
      const auto [first, rows_first] = quad_errors(a, b, x, 0);
      const auto [second, rows_second] = quad_errors(a, b, x, 1);
      const double normwise = std::max(first, second);
      EXPECT_GE(certificate.backward_error, normwise) << n << ' ' << seed;
      EXPECT_LE(certificate.backward_error, normwise * (1 + 2 * resolution(n + 10)))
          << n << ' ' << seed;
      const double by_rows = std::max(rows_first, rows_second);
      EXPECT_GE(certificate.componentwise_backward_error, by_rows) << n << ' ' << seed;
      EXPECT_LE(certificate.componentwise_backward_error, by_rows * (1 + 2 * resolution(n + 10)));
    }
  }
}

TEST(Certificate, OfManyColumnsIsNeverBelowTheTruth) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  // Too many products for residuals of twice the digits. Positive sums, which round most.
  const std::int64_t n = 520;
  const std::int64_t columns = 250;
  const Matrix<double> a = test::min_matrix<double>(n);
  const auto b = test::make_matrix<double>(
      n, columns, [](auto i, auto j) { return 1 + std::abs(std::sin(0.1 + i * 3 + j * 7)); });
  const auto [x, certificate] = solved(a, b);
  for (std::int64_t j = 0; j < columns; j += 17) {
    const auto [normwise, by_rows] = quad_errors(a, b, x, j);
    EXPECT_GE(certificate.backward_error, normwise) << j;
    EXPECT_GE(certificate.componentwise_backward_error, by_rows) << j;
  }
  EXPECT_LE(certificate.backward_error, 30 * kEpsilon);
}

TEST(Certificate, WouldBeAnotherNumberWithoutEitherTerm) {
  const std::int64_t n = 100;
  // Diagonally dominant: ‖b‖ is as large as ‖A‖·‖x‖ up to a small factor. It cannot be larger, as
  // b is A·x up to the residual; where it alone counts is tested on backward_error() itself.
  const Matrix<float> dominant = test::random_spd_matrix<float>(n, 7);
  const Matrix<float> b = waves(n, 1);
  const auto [x, balanced] = solved(dominant, b);
  const double expected = worst_of(dominant, b, x);
  EXPECT_NEAR(balanced.backward_error, expected, resolution(n));
  EXPECT_GT(worst_of(dominant, b, x, 1, 0) - expected, 1000 * resolution(n)) << "without b";
  EXPECT_GT(worst_of(dominant, b, x, 0, 1) - expected, 1000 * resolution(n)) << "without A x";
  // min(i, j), whose inverse is large: x is thousands of times b over the norm of A.
  const Matrix<float> steep = test::min_matrix<float>(n);
  const auto [y, large] = solved(steep, b);
  const double of_steep = worst_of(steep, b, y);
  EXPECT_NEAR(large.backward_error, of_steep, resolution(n));
  EXPECT_GT(worst_of(steep, b, y, 0, 1), 1000 * of_steep) << "A x does not dominate";
}

TEST(Certificate, IsOfTheWorstColumn) {
  const std::int64_t n = 60;
  const Matrix<float> a = test::random_spd_matrix<float>(n, 8);
  Matrix<float> b = waves(n, 4);
  // Columns of very different size: norms over all of them would be those of the last.
  for (std::int64_t j = 0; j < b.cols; ++j) {
    for (std::int64_t i = 0; i < n; ++i) b(i, j) = std::ldexp(b(i, j), static_cast<int>(12 * j));
  }
  const auto [x, certificate] = solved(a, b);
  EXPECT_NEAR(certificate.backward_error, worst_of(a, b, x), resolution(n));
}

TEST(Certificate, IsOfTheRefinedSolutionWhereOneIsReturned) {
  // Rows whose elements are below the least normal float, 2^-126, beside others: products of the
  // factor's elements lose most of their digits there, and a step of refinement is worth it. Norms
  // do not see these rows. Residuals are fp64's, to which they are numbers like any others.
  const std::int64_t n = 40;
  Matrix<float> a = test::random_spd_matrix<float>(n, 9);
  Matrix<float> b = waves(n, 3);
  for (std::int64_t i = 0; i < n; ++i) {
    const int row = i < n / 2 ? -71 : 0;
    for (std::int64_t j = 0; j < n; ++j)
      a(i, j) = (i < n / 2) == (j < n / 2) ? std::ldexp(a(i, j), 2 * row) : 0;
    for (std::int64_t c = 0; c < b.cols; ++c) b(i, c) = std::ldexp(b(i, c), 2 * row + 40);
  }
  const auto [x, certificate] = solved(a, b);
  EXPECT_EQ(certificate.refinement_steps, 1);
  EXPECT_NEAR(certificate.backward_error, worst_of(a, b, x), resolution(n));
  const double expected = worst_row(a, b, x);
  EXPECT_NEAR(certificate.componentwise_backward_error, expected, resolution(n));
  // The same matrix and solution, but the factor alone.
  CholeskyFactor factor = cholesky(a.view(), host_options_of(32));
  Matrix<float> unrefined = b;
  (void)factor.solve(unrefined.view());
  EXPECT_LT(10 * expected, worst_row(a, b, unrefined)) << "the step was not worth it";
}

TEST(Certificate, InFp64IsTheFormulaWhereTheResidualIsExact) {
  // Odd powers of two: no element of the factor is exact, so neither is x, but each a·x is, and so
  // is b − a·x, as both are within a factor of two (Sterbenz).
  const std::int64_t n = 33;
  for (const int grade : {0, 2}) {
    Matrix<double> a(n, n);
    for (std::int64_t i = 0; i < n; ++i)
      a(i, i) = std::ldexp(1.0, 1 + grade * static_cast<int>(i % 21));
    const auto b = test::make_matrix<double>(n, 7, [](auto i, auto j) {
      return 1 + random_uniform(3, static_cast<std::uint64_t>(7 * i + j));
    });
    const auto [x, certificate] = solved(a, b);
    const double expected = worst_of(a, b, x);
    EXPECT_GT(expected, 0) << "nothing was rounded";
    // Rounded: the product and the sum below, and the quotient; and what is added for sums of rows.
    EXPECT_GE(certificate.backward_error, expected * (1 - 3 * kEpsilon)) << grade;
    EXPECT_LE(certificate.backward_error, expected * (1 + resolution(n + 10))) << grade;
    EXPECT_GT(worst_of(a, b, x, 0, 1), 1.5 * expected) << "without A x";
    if (grade == 0) {
      EXPECT_GT(worst_of(a, b, x, 1, 0), 1.5 * expected) << "without b";
    }
  }
}

TEST(Certificate, OfAnOverflowIsNan) {
  // x = 1e300 / 1e-300 does not fit; the matrix is positive definite all the same.
  Matrix<double> a =
      test::make_matrix<double>(3, 3, [](auto i, auto j) { return i == j ? 1.0 : 0; });
  a(0, 0) = 1e-300;
  const auto b = test::make_matrix<double>(3, 2, [](auto, auto j) { return j == 0 ? 1e300 : 1.0; });
  const auto [x, certificate] = solved(a, b);
  EXPECT_FALSE(std::isfinite(x(0, 0)));
  EXPECT_TRUE(std::isnan(certificate.backward_error)) << certificate.backward_error;
}

TEST(Certificate, InFp32RefusesShapesAndNamesPivotsAsInFp64) {
  Matrix<float> a = test::min_matrix<float>(20);
  Matrix<float> x(20, 1);
  EXPECT_THROW((void)solve(std::as_const(a).view(), Matrix<float>(19, 1).view(), x.view()), Error);
  a(11, 11) -= 3;
  const Matrix<float> b = waves(20, 1);
  const SolveResult result = solve(std::as_const(a).view(), b.view(), x.view(), host_options_of(8));
  EXPECT_FALSE(result.certificate.factor.ok);
  EXPECT_EQ(result.certificate.factor.first_bad_pivot, 11);
  EXPECT_EQ(x(3, 0), 0) << "x was touched";
}

}  // namespace
}  // namespace strata
