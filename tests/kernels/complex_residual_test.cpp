// What a certificate of a Hermitian system is made of, against sums of parts in long double and in
// twice the digits of doubles.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/dense/host_residual.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/nan.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using C = std::complex<double>;
using test::kNan;
using test::Matrix;

template <class T>
class ComplexResidual : public ::testing::Test {};
using ComplexResidualTypes = ::testing::Types<std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(ComplexResidual, ComplexResidualTypes);

/// Hermitian but for `bend` times something above the diagonal.
template <class T>
Matrix<T> hermitian(std::int64_t n, double bend = 0) {
  return test::make_matrix<T>(n, n, [&](auto i, auto j) {
    const auto lo = static_cast<double>(std::min(i, j));
    const auto hi = static_cast<double>(std::max(i, j));
    const double re = std::sin(1 + hi + 7 * lo);
    const double im = i == j ? 0 : std::cos(2 + 3 * hi + lo);
    return i < j ? C(re + bend * std::cos(hi), -im + bend * std::sin(lo)) : C(re, im);
  });
}

/// The lower triangle alone, with NaNs above it and below its rows.
template <class T>
MatrixView<const T> lower_alone(const Matrix<T>& a, Matrix<T>& padded) {
  padded = Matrix<T>(a.rows + 3, a.cols);
  const auto nan = static_cast<RealOf<T>>(kNan);
  std::fill(padded.data.begin(), padded.data.end(), T(nan, nan));
  for (std::int64_t j = 0; j < a.cols; ++j)
    for (std::int64_t i = j; i < a.rows; ++i) padded(i, j) = a(i, j);
  return {padded.data.data(), a.rows, a.cols, padded.rows};
}

/// Columns of numbers that T holds.
template <class T>
Matrix<C> columns_of(std::int64_t n, std::int64_t m, double shift) {
  return test::make_matrix<C>(n, m, [&](auto i, auto j) {
    const double place = shift + static_cast<double>(5 * i + j);
    return C(static_cast<T>(C(std::sin(place), std::cos(2 * place))));
  });
}

__extension__ using Quad = __float128;

/// b − A·x of the whole of A, in parts; the size of its terms.
struct Rest {
  Quad re = 0, im = 0, size = 0;
};
template <class T>
Rest rest_of(const Matrix<T>& a, const Matrix<C>& b, const Matrix<C>& x, std::int64_t i,
             std::int64_t c) {
  Rest rest{b(i, c).real(), b(i, c).imag(), std::abs(b(i, c))};
  for (std::int64_t j = 0; j < a.cols; ++j) {
    const Quad re = a(i, j).real();
    const Quad im = a(i, j).imag();
    rest.re -= re * x(j, c).real() - im * x(j, c).imag();
    rest.im -= re * x(j, c).imag() + im * x(j, c).real();
    rest.size += std::abs(C(a(i, j))) * std::abs(x(j, c));
  }
  return rest;
}

TYPED_TEST(ComplexResidual, IsThatOfTheWholeMatrix) {
  for (const std::int64_t n : {0, 1, 2, 3, 255, 256, 257, 300, 520}) {
    const auto a = hermitian<TypeParam>(n);
    const auto x = columns_of<TypeParam>(n, 3, 1);
    const auto b = columns_of<TypeParam>(n, 3, 2);
    Matrix<C> r = b;
    Matrix<TypeParam> padded(0, 0);
    symmetric_residual(lower_alone(a, padded), x.view(), r.view());
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t i = 0; i < n; ++i) {
        const Rest rest = rest_of(a, b, x, i, c);
        const double off = std::hypot(static_cast<double>(rest.re - r(i, c).real()),
                                      static_cast<double>(rest.im - r(i, c).imag()));
        ASSERT_LE(off, 3 * static_cast<double>(n + 2) * 0x1p-53 * static_cast<double>(rest.size))
            << n << ": " << i;
      }
    }
  }
}

TYPED_TEST(ComplexResidual, DoesNotReadTheImaginaryPartOfTheDiagonal) {
  for (const std::int64_t n : {1, 5, 300}) {
    const auto a = hermitian<TypeParam>(n);
    auto bent = a;
    for (std::int64_t i = 0; i < n; ++i) bent(i, i) += TypeParam(0, 1);
    const auto x = columns_of<TypeParam>(n, 1, 1);
    Matrix<C> from(n, 1);
    Matrix<C> of_bent(n, 1);
    Matrix<TypeParam> padded(0, 0);
    symmetric_residual(lower_alone(a, padded), x.view(), from.view());
    symmetric_residual(lower_alone(bent, padded), x.view(), of_bent.view());
    EXPECT_EQ(from.data, of_bent.data);
    symmetric_residual_dd(lower_alone(a, padded), x.view(), x.view(), from.view());
    symmetric_residual_dd(lower_alone(bent, padded), x.view(), x.view(), of_bent.view());
    EXPECT_EQ(from.data, of_bent.data);
    Matrix<double> ones = test::make_matrix<double>(n, 1, [](auto, auto) { return 1; });
    Matrix<double> sums(n, 1);
    Matrix<double> sums_of_bent(n, 1);
    symmetric_magnitudes(lower_alone(a, padded), ones.view(), sums.view());
    symmetric_magnitudes(lower_alone(bent, padded), ones.view(), sums_of_bent.view());
    EXPECT_EQ(sums.data, sums_of_bent.data);
  }
}

TYPED_TEST(ComplexResidual, InDoubleDoubleHasDigitsBelowRounding) {
  for (const std::int64_t n : {1, 2, 257, 2100}) {
    if (test::kSanitized && n == 2100 && std::is_same_v<TypeParam, C>) continue;
    const auto a = hermitian<TypeParam>(n);
    const auto x = columns_of<C>(n, 1, 3);
    Matrix<C> b(n, 1);
    for (std::int64_t i = 0; i < n; ++i) {  // as near to A·x as doubles are
      const Rest rest = rest_of(a, Matrix<C>(n, 1), x, i, 0);
      b(i, 0) = {static_cast<double>(-rest.re), static_cast<double>(-rest.im)};
    }
    Matrix<C> r(n, 1);
    Matrix<TypeParam> padded(0, 0);
    symmetric_residual_dd(lower_alone(a, padded), b.view(), x.view(), r.view());
    for (std::int64_t i = 0; i < n; ++i) {
      const Rest rest = rest_of(a, b, x, i, 0);
      const auto bound = static_cast<double>(2 * n * n) * 0x1p-100;
      ASSERT_NEAR(r(i, 0).real(), static_cast<double>(rest.re), bound) << n << ": " << i;
      ASSERT_NEAR(r(i, 0).imag(), static_cast<double>(rest.im), bound) << n << ": " << i;
    }
  }
}

TYPED_TEST(ComplexResidual, TakesOffWhatIsNotHermitian) {
  for (const std::int64_t n : {1, 2, 65, 130, 520}) {  // the last one by several threads
    const auto a = hermitian<TypeParam>(n, 1e-3);
    const auto x = columns_of<TypeParam>(n, 2, 1);
    const auto b = columns_of<TypeParam>(n, 2, 2);
    Matrix<C> r = b;
    symmetric_residual<TypeParam>(a.view(), x.view(), r.view());
    subtract_asymmetry<TypeParam>(a.view(), x.view(), r.view());
    for (std::int64_t i = 0; i < n; ++i) {
      const Rest rest = rest_of(a, b, x, i, 1);
      ASSERT_NEAR(r(i, 1).real(), static_cast<double>(rest.re), 1e-12) << n << ": " << i;
      ASSERT_NEAR(r(i, 1).imag(), static_cast<double>(rest.im), 1e-12) << n << ": " << i;
    }
  }
}

TYPED_TEST(ComplexResidual, MeasuresWhatIsNotHermitianByItsLargerNorm) {
  auto a = hermitian<TypeParam>(4);
  const std::vector<double> scale{1, 2, 3, 4};
  EXPECT_EQ(scaled_asymmetry<TypeParam>(a.view(), scale), 0);
  a(0, 2) += TypeParam(0, 0.5F);
  a(1, 2) -= TypeParam(0.25F, 0);
  // Rows: 0.5·1·3 and 0.25·2·3; the column of both: 3.
  EXPECT_NEAR(scaled_asymmetry<TypeParam>(a.view(), scale), 3, 1e-6);
}

TYPED_TEST(ComplexResidual, MagnitudesAreThoseOfBothTriangles) {
  for (const std::int64_t n : {0, 1, 77, 300}) {
    const auto a = hermitian<TypeParam>(n);
    const auto x = test::make_matrix<double>(
        n, 2, [](auto i, auto j) { return std::abs(std::sin(static_cast<double>(i + 3 * j))); });
    Matrix<TypeParam> padded(0, 0);
    Matrix<double> y(n, 2);
    symmetric_magnitudes(lower_alone(a, padded), x.view(), y.view());
    for (std::int64_t i = 0; i < n; ++i) {
      long double expected = 0;
      for (std::int64_t j = 0; j < n; ++j)
        expected += std::hypot(static_cast<long double>(a(i, j).real()),
                               static_cast<long double>(a(i, j).imag())) *
                    x(j, 1);
      ASSERT_NEAR(y(i, 1), static_cast<double>(expected),
                  static_cast<double>(expected) * static_cast<double>(n + 2) * 0x1p-52);
    }
  }
}

TEST(ComplexErrors, AreMagnitudes) {
  const auto column = [](std::vector<C> values) {
    Matrix<C> m(static_cast<std::int64_t>(values.size()), 1);
    m.data = std::move(values);
    return m;
  };
  Matrix<double> terms(2, 1);
  terms.data = {10, 100};
  EXPECT_DOUBLE_EQ(componentwise_backward_error(column({{3, 4}, {6, -8}}).view(), terms.view()),
                   0.5);
  EXPECT_TRUE(
      std::isnan(componentwise_backward_error(column({{0, kNan}, {0, 0}}).view(), terms.view())));
  const auto b = column({{0, 2}, {0, 0}});
  const auto x = column({{3, 4}, {0, 0}});
  const auto r = column({{0, 0}, {0, 6}});
  EXPECT_DOUBLE_EQ(backward_error(2, b.view(), x.view(), r.view()), 0.5);
  EXPECT_TRUE(std::isnan(backward_error(2, b.view(), x.view(), column({{kNan, 0}, {}}).view())));
}

}  // namespace
}  // namespace strata
