// Products with general matrices against sums that are exact, and in many digits.

#include "kernels/dense/general_residual.hpp"

#include "tests/kernels/block_harness.hpp"

namespace strata::testing {
namespace {

template <class T>
class GeneralResidual : public ::testing::Test {};
using Floats = ::testing::Types<double, float>;
TYPED_TEST_SUITE(GeneralResidual, Floats);

template <class T>
MatrixView<T> view(Matrix<T>& m) {
  return {m.data.data(), m.rows, m.cols, m.ld};
}
template <class T>
MatrixView<const T> constant(const Matrix<T>& m) {
  return {m.data.data(), m.rows, m.cols, m.ld};
}

constexpr std::int64_t kOrders[] = {1, 2, 5, 255, 256, 257, 300};

TYPED_TEST(GeneralResidual, IsExactOfIntegers) {
  for (const std::int64_t n : kOrders) {
    const Matrix<TypeParam> a(n, n, 2, [](auto i, auto j) { return small_integer(1, i, j); });
    const Matrix<double> x(n, 3, 1, [](auto i, auto j) { return small_integer(2, i, j); });
    const Matrix<double> b(n, 3, 4, [](auto i, auto j) { return small_integer(3, i, j); });
    for (const bool transposed : {false, true}) {
      Matrix<double> r = b;
      Matrix<double> expected = b;
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            expected(i, c) -= static_cast<double>(transposed ? a(j, i) : a(i, j)) * x(j, c);
      general_residual(constant(a), transposed, constant(x), view(r));
      EXPECT_TRUE(same_values(r, expected)) << n << (transposed ? " transposed" : "");
      if (transposed) continue;
      Matrix<double> wide(n, 3, 4);
      general_residual_dd(constant(a), constant(b), constant(x), view(wide));
      EXPECT_TRUE(same_values(wide, expected)) << n;
    }
    Matrix<double> sums(n, 3, 1);
    Matrix<double> expected = sums;
    const Matrix<double> sizes(n, 3, 1, [&](auto i, auto j) { return std::abs(x(i, j)); });
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t i = 0; i < n; ++i) {
        expected(i, c) = 0;
        for (std::int64_t j = 0; j < n; ++j)
          expected(i, c) += std::abs(static_cast<double>(a(i, j))) * sizes(j, c);
      }
    }
    general_magnitudes(constant(a), constant(sizes), view(sums));
    EXPECT_TRUE(same_values(sums, expected)) << n;
  }
}

// b − A·x that cancels but for the last digits.
TYPED_TEST(GeneralResidual, InDoubleDoubleKeepsWhatCancels) {
  for (const std::int64_t n : kOrders) {
    const Matrix<TypeParam> a(n, n, 0, [](auto i, auto j) { return uniform(4, i, j); });
    const Matrix<double> x(n, 2, 0, [](auto i, auto j) { return uniform(5, i, j); });
    std::vector<Many> exact;
    Matrix<double> b(n, 2);
    for (std::int64_t c = 0; c < 2; ++c) {
      for (std::int64_t i = 0; i < n; ++i) {
        Many sum = 0;
        for (std::int64_t j = 0; j < n; ++j)
          sum += Many(static_cast<double>(a(i, j))) * Many(x(j, c));
        b(i, c) = static_cast<double>(sum);
        exact.push_back(Many(b(i, c)) - sum);
      }
    }
    Matrix<double> r(n, 2);
    general_residual_dd(constant(a), constant(b), constant(x), view(r));
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(r(i, c), static_cast<double>(exact[static_cast<std::size_t>(i + c * n)]),
                    static_cast<double>(n * n) * 0x1p-100);
  }
}

}  // namespace
}  // namespace strata::testing
