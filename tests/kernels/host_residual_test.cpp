// What a certificate is made of, against the formulas in long double: residuals, norms, and each
// term of the backward error where it is the one that matters.

#include "kernels/dense/host_residual.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/nan.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::kNan;
using test::Matrix;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
class HostResidual : public ::testing::Test {};
using HostResidualTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(HostResidual, HostResidualTypes);

/// The lower triangle of a symmetric matrix; above it there are NaNs, and below its rows too.
template <class T>
MatrixView<const T> lower_of(const Matrix<T>& a, Matrix<T>& padded) {
  padded = Matrix<T>(a.rows + 3, a.cols);
  std::fill(padded.data.begin(), padded.data.end(), std::numeric_limits<T>::quiet_NaN());
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) padded(i, j) = a(i, j);
  }
  return {padded.data.data(), a.rows, a.cols, padded.rows};
}

TYPED_TEST(HostResidual, IsThatOfTheWholeMatrixInFp64) {
  // About the block in which floats are widened; of the last order by several threads, 64 columns
  // at a time.
  for (const std::int64_t n : {1, 2, 255, 256, 257, 300, 513}) {
    for (const std::int64_t columns : {0, 1, 3, n == 513 ? 67 : 2}) {
      const auto a = test::random_spd_matrix<TypeParam>(n, 21);
      const auto x = test::make_matrix<double>(n, columns, [](auto i, auto j) {
        return static_cast<TypeParam>(std::sin(static_cast<double>(1 + 5 * i + j)));
      });
      const auto b = test::make_matrix<TypeParam>(
          n, columns, [](auto i, auto j) { return std::cos(static_cast<double>(2 + i + 3 * j)); });
      Matrix<double> r(n, columns);
      for (std::size_t k = 0; k < r.data.size(); ++k) r.data[k] = b.data[k];
      Matrix<TypeParam> padded(0, 0);
      symmetric_residual(lower_of(a, padded), x.view(), r.view());
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t i = 0; i < n; ++i) {
          long double expected = b(i, c);
          long double terms = std::abs(expected);
          for (std::int64_t j = 0; j < n; ++j) {
            const long double term = static_cast<long double>(a(i, j)) * x(j, c);
            expected -= term;
            terms += std::abs(term);
          }
          // Each of n + 1 terms is rounded n + 1 times at most, whatever the order of the sum; by
          // fp64, or a residual of fp32 would be nothing but rounding.
          const auto bound = static_cast<double>(terms) * static_cast<double>(n + 1) * kEpsilon;
          ASSERT_NEAR(r(i, c), static_cast<double>(expected), bound) << n << ": " << i << "," << c;
        }
      }
    }
  }
}

/// Residuals of a solution that is as good as doubles are: all digits of their sums cancel.
TYPED_TEST(HostResidual, InDoubleDoubleHasDigitsBelowRounding) {
  __extension__ using Quad = __float128;
  for (const std::int64_t n : {1, 2, 255, 257, 300, 2100}) {
    const auto a = test::make_matrix<TypeParam>(n, n, [](auto i, auto j) {
      return std::sin(static_cast<double>(1 + std::max(i, j) + 7 * std::min(i, j)));
    });
    const std::int64_t columns = n == 300 ? 6 : 2;  // four at a time
    const auto x = test::make_matrix<double>(
        n, columns, [](auto i, auto j) { return std::cos(static_cast<double>(3 * i + j)); });
    Matrix<double> b(n, columns);
    Matrix<double> r(n, columns);
    std::vector<Quad> expected(b.data.size());
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < n; ++i) {
        Quad sum = 0;
        for (std::int64_t j = 0; j < n; ++j)
          sum += static_cast<Quad>(a(i, j)) * static_cast<Quad>(x(j, c));
        b(i, c) = static_cast<double>(sum);
        expected[static_cast<std::size_t>(i + c * n)] = static_cast<Quad>(b(i, c)) - sum;
      }
    }
    Matrix<TypeParam> padded(0, 0);
    symmetric_residual_dd(lower_of(a, padded), b.view(), x.view(), r.view());
    for (std::size_t k = 0; k < r.data.size(); ++k)
      ASSERT_NEAR(r.data[k], static_cast<double>(expected[k]),
                  static_cast<double>(n * n) * 0x1p-100);
  }
}

Matrix<double> column(const std::vector<double>& values) {
  Matrix<double> m(static_cast<std::int64_t>(values.size()), 1);
  m.data = values;
  return m;
}
double error_of(double norm_a, const Matrix<double>& b, const Matrix<double>& x,
                const Matrix<double>& r) {
  return backward_error(norm_a, b.view(), x.view(), r.view());
}

TYPED_TEST(HostResidual, MagnitudesAreThoseOfBothTriangles) {
  for (const std::int64_t n : {0, 1, 2, 77, 300, 2100}) {
    const auto a = test::make_matrix<TypeParam>(
        n, n, [](auto i, auto j) { return std::cos(static_cast<double>(i * j) + 0.1); });
    const std::int64_t m = n == 77 ? 19 : 2;  // more than are taken at once
    const auto x = test::make_matrix<double>(
        n, m, [](auto i, auto j) { return std::abs(std::sin(static_cast<double>(i + 3 * j))); });
    Matrix<TypeParam> padded(0, 0);
    Matrix<double> y(n, m);
    symmetric_magnitudes(lower_of(a, padded), x.view(), y.view());
    for (std::int64_t i = 0; i<n; i += n> 100 ? 97 : 1) {
      for (std::int64_t c = 0; c < m; ++c) {
        long double expected = 0;
        for (std::int64_t j = 0; j < n; ++j)
          expected += std::abs(static_cast<long double>(a(i, j))) * x(j, c);
        ASSERT_NEAR(y(i, c), static_cast<double>(expected),
                    static_cast<double>(expected) * static_cast<double>(n) * kEpsilon)
            << n << ": " << i << "," << c;
      }
    }
  }
}

TEST(ComponentwiseBackwardError, IsTheLargestQuotient) {
  const Matrix<double> r = column({0, 1e-3, -4, 0});
  const Matrix<double> terms = column({0, 1e-2, 100, 5});
  EXPECT_DOUBLE_EQ(componentwise_backward_error(r.view(), terms.view()), 0.1);
  EXPECT_EQ(componentwise_backward_error(column({1}).view(), column({0}).view()),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(
      std::isnan(componentwise_backward_error(column({1, kNan}).view(), column({1, 1}).view())));
}

TEST(BackwardError, HasEachOfItsTerms) {
  struct Case {
    const char* what;
    double norm_a;
    std::vector<double> b, x, r;
    long double expected;
  };
  // The largest element is negative, and neither the first nor the last; numbers that floats hold.
  const Case cases[] = {
      {"b alone", 0, {1, -4096, 2}, {3, -7, 5}, {1, -3, 2}, 3.0L / 4096},
      {"b before A x", 0.5, {1, -4096, 2}, {0.25, -0.5, 0}, {1, -3, 2}, 3.0L / (0.25L + 4096)},
      {"A x alone", 512, {0, 0, 0}, {1, -64, 3}, {0.5, -0.75, 0}, 0.75L / (512.0L * 64)},
      {"A x before b", 512, {0.5, -2, 1}, {1, -64, 3}, {0.5, -0.75, 0}, 0.75L / (512.0L * 64 + 2)},
      {"A small, x large", 0.125, {0, -1, 0}, {0, -4096, 0}, {0, -1, 0}, 1.0L / (512 + 1)},
      {"A large, x small", 4096, {0, -1, 0}, {0, -0.125, 0}, {0, -1, 0}, 1.0L / (512 + 1)},
      {"equal terms", 8, {0, 16, 3}, {1, 2, 1}, {0, 4, 1}, 4.0L / (16 + 16)}};
  for (const Case& c : cases) {
    const double error = error_of(c.norm_a, column(c.b), column(c.x), column(c.r));
    // A product, a sum and a quotient: rounded three times.
    const auto expected = static_cast<double>(c.expected);
    EXPECT_NEAR(error, expected, 3 * kEpsilon * expected) << c.what;
  }
}

TEST(BackwardError, IsTheWorstColumns) {
  // Column by column the errors are 1/4096, 3/8 and 1/16; norms over all columns would mix them.
  Matrix<double> b(2, 3), x(2, 3), r(2, 3);
  b(0, 0) = 4096, r(1, 0) = 1;
  b(1, 1) = 6, x(0, 1) = 1, r(0, 1) = -3;
  b(0, 2) = 12, x(1, 2) = -2, r(1, 2) = 1;
  EXPECT_EQ(error_of(2, b, x, r), 0.375);
}

TEST(BackwardError, OfNothingIsZeroAndOfANanIsOne) {
  const auto one = column({1, 1, 1});
  const auto zero = column({0, 0, 0});
  EXPECT_EQ(error_of(1, zero, zero, column({0, 0, 0})), 0);
  EXPECT_EQ(error_of(1, Matrix<double>(0, 2), Matrix<double>(0, 2), Matrix<double>(0, 2)), 0);
  EXPECT_EQ(error_of(0, zero, zero, column({0, 1, 0})), kInfinity);
  EXPECT_TRUE(std::isnan(error_of(kNan, one, one, column({1, 1, 1}))));
  // Wherever it is, and whatever comes after it.
  for (std::int64_t column = 0; column < 3; ++column) {
    for (std::int64_t row = 0; row < 3; ++row) {
      const auto ones = [](auto, auto) { return 1.0; };
      auto b = test::make_matrix<double>(3, 3, ones);
      auto x = b;
      auto r = test::make_matrix<double>(3, 3, ones);
      EXPECT_EQ(error_of(1, b, x, r), 0.5);
      r(row, column) = kNan;
      EXPECT_TRUE(std::isnan(error_of(1, b, x, r))) << row << "," << column;
      r(row, column) = 1;
      x(row, column) = kNan;
      EXPECT_TRUE(std::isnan(error_of(1, b, x, r))) << row << "," << column;
      x(row, column) = 1;
      b(row, column) = kNan;
      EXPECT_TRUE(std::isnan(error_of(1, b, x, r))) << row << "," << column;
    }
  }
}

}  // namespace
}  // namespace strata
