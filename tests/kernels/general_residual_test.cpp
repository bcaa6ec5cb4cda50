// Residuals of general systems and sums of magnitudes, real and complex, against sums of the parts
// in 113 bits.

#include "kernels/dense/general_residual.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <utility>

#include "base/random.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;
__extension__ using Sum = __float128;

template <class T>
class GeneralResidual : public ::testing::Test {};
using GeneralResidualTypes =
    ::testing::Types<double, float, std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(GeneralResidual, GeneralResidualTypes);

/// Numbers that T holds, in a square around zero.
template <class T, class As>
Matrix<As> numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return test::make_matrix<As>(rows, cols, [=](auto i, auto j) {
    const auto k = static_cast<std::uint64_t>(2 * (i * 4096 + j));
    const double re = 2 * random_uniform(seed, k) - 1;
    const double im = 2 * random_uniform(seed, k + 1) - 1;
    if constexpr (is_complex_v<T>)
      return WideOf<T>(static_cast<T>(WideOf<T>(re, im)));
    else
      return static_cast<double>(static_cast<T>(re));
  });
}

/// b − op(A)·x in row i of column c.
template <class T>
std::pair<Sum, Sum> exact_residual(const Matrix<T>& a, const Matrix<WideOf<T>>& b,
                                   const Matrix<WideOf<T>>& x, bool adjoint, std::int64_t i,
                                   std::int64_t c) {
  Sum re = real_part(b(i, c));
  Sum im = imaginary_part(b(i, c));
  for (std::int64_t j = 0; j < a.rows; ++j) {
    const T element = adjoint ? conjugate(a(j, i)) : a(i, j);
    const Sum u = real_part(element), v = imaginary_part(element);
    const Sum p = real_part(x(j, c)), q = imaginary_part(x(j, c));
    re -= u * p - v * q;
    im -= u * q + v * p;
  }
  return {re, im};
}

template <class W>
double distance(const W& value, const std::pair<Sum, Sum>& exact) {
  return std::hypot(static_cast<double>(exact.first - Sum(real_part(value))),
                    static_cast<double>(exact.second - Sum(imaginary_part(value))));
}

TYPED_TEST(GeneralResidual, IsThatOfTheMatrixOrItsAdjoint) {
  using W = WideOf<TypeParam>;
  // The last order is done by several threads.
  for (const std::int64_t n : {0, 1, 2, 33, 257, 300, 530}) {
    const auto a = numbers<TypeParam, TypeParam>(n, n, 1);
    const auto b = numbers<TypeParam, W>(n, 3, 2);
    const auto x = numbers<TypeParam, W>(n, 3, 3);
    for (const bool adjoint : {false, true}) {
      Matrix<W> r = b;
      general_residual(a.view(), adjoint, x.view(), r.view());
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_LE(distance(r(i, c), exact_residual(a, b, x, adjoint, i, c)),
                    3 * 2 * static_cast<double>(n + 2) * static_cast<double>(n) * 0x1p-53)
              << n << (adjoint ? " adjoint " : " ") << i;
    }
  }
}

/// So it is the same on any number of threads.
TYPED_TEST(GeneralResidual, EachStripHasBitsOfItsOwn) {
  using W = WideOf<TypeParam>;
  constexpr std::int64_t kStrip = 256;
  const std::int64_t n = 1030;
  const auto a = numbers<TypeParam, TypeParam>(n, n, 1);
  const auto x = numbers<TypeParam, W>(n, 2, 3);
  for (const bool adjoint : {false, true}) {
    Matrix<W> whole = numbers<TypeParam, W>(n, 2, 2);
    Matrix<W> strips = whole;
    general_residual(a.view(), adjoint, x.view(), whole.view());
    for (std::int64_t first = 0; first < n; first += kStrip) {
      const std::int64_t count = std::min(kStrip, n - first);
      general_residual<TypeParam>(
          adjoint ? a.view().block(0, first, n, count) : a.view().block(first, 0, count, n),
          adjoint, x.view(), strips.view().block(first, 0, count, 2));
    }
    EXPECT_EQ(whole.data, strips.data) << adjoint;
  }
}

TYPED_TEST(GeneralResidual, InDoubleDoubleKeepsDigitsThatCancel) {
  using W = WideOf<TypeParam>;
  for (const std::int64_t n : {1, 2, 33, 300}) {
    const auto a = numbers<TypeParam, TypeParam>(n, n, 4);
    const auto x = numbers<TypeParam, W>(n, 2, 5);
    // b is A·x rounded, so that the residual is what rounding left.
    const auto b = test::make_matrix<W>(n, 2, [&](auto i, auto c) {
      const auto [re, im] = exact_residual(a, Matrix<W>(n, 2), x, false, i, c);
      if constexpr (is_complex_v<W>)
        return W(-static_cast<double>(re), -static_cast<double>(im));
      else
        return -static_cast<double>(re);
    });
    Matrix<W> r(n, 2);
    Matrix<W> of_turned(n, 2);
    // And of the transpose of the transpose, a part of the columns after the other.
    Matrix<TypeParam> turned(n, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) turned(j, i) = a(i, j);
    std::vector<LongSums<W>> sums(2, LongSums<W>(n));
    for (std::size_t c = 0; c < 2; ++c)
      for (std::int64_t i = 0; i < n; ++i) sums[c].set(i, b(i, static_cast<std::int64_t>(c)));
    std::vector<LongSums<W>> others = sums;
    const std::int64_t half = n / 2;
    for (const auto& [first, count] : {std::pair{std::int64_t{0}, half}, {half, n - half}}) {
      subtract_dd(std::as_const(a).view().block(0, first, n, count),
                  std::as_const(x).view().block(first, 0, count, 2), std::span(sums));
      subtract_transposed_dd(std::as_const(turned).view().block(0, first, n, count),
                             std::as_const(x).view(), first, std::span(others));
    }
    for (std::size_t c = 0; c < 2; ++c) {
      for (std::int64_t i = 0; i < n; ++i) {
        r(i, static_cast<std::int64_t>(c)) = sums[c].rounded(i);
        of_turned(i, static_cast<std::int64_t>(c)) = others[c].rounded(i);
      }
    }
    for (const Matrix<W>& found : {r, of_turned})
      for (std::int64_t c = 0; c < 2; ++c)
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_LE(distance(found(i, c), exact_residual(a, b, x, false, i, c)),
                    std::abs(found(i, c)) * 0x1p-52 + static_cast<double>(n * n + 4) * 0x1p-101)
              << n << ' ' << i;
  }
}

TYPED_TEST(GeneralResidual, MagnitudesAreSumsOfAbsoluteValues) {
  for (const std::int64_t n : {0, 1, 2, 33, 300}) {
    const auto a = numbers<TypeParam, TypeParam>(n, n, 6);
    const auto x = test::make_matrix<double>(n, 2, [](auto i, auto c) {
      return random_uniform(7, static_cast<std::uint64_t>(i + 5000 * c));
    });
    Matrix<double> y(n, 2);
    add_magnitudes(std::as_const(a).view(), std::as_const(x).view(), y.view());
    Matrix<TypeParam> turned(n, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) turned(j, i) = a(i, j);
    Matrix<double> other(n, 2);
    add_magnitudes_transposed(std::as_const(turned).view(), std::as_const(x).view(), other.view());
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(y(i, c), other(i, c), 1e-12 * (1 + y(i, c)));
    for (std::int64_t c = 0; c < 2; ++c) {
      for (std::int64_t i = 0; i < n; ++i) {
        long double sum = 0;
        for (std::int64_t j = 0; j < n; ++j)
          sum += std::hypot(static_cast<long double>(real_part(a(i, j))),
                            static_cast<long double>(imaginary_part(a(i, j)))) *
                 static_cast<long double>(x(j, c));
        ASSERT_NEAR(y(i, c), static_cast<double>(sum),
                    static_cast<double>(sum) * static_cast<double>(n + 4) * 0x1p-53)
            << n << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace strata
