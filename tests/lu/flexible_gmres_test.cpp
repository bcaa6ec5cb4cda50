// flexible_gmres: what it says of a residual is true of the y that it hands back, whatever the
// preconditioner does.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "base/index.hpp"
#include "lu/flexible_gmres.hpp"
#include "tests/lu/complex_matrices.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Matrix;

template <class W>
DenseBlockOf<W> product(const Matrix<W>& a, MatrixView<const W> v) {
  DenseBlockOf<W> out(v.rows, v.cols);
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t k = 0; k < v.rows; ++k)
      for (std::int64_t i = 0; i < v.rows; ++i) out.column(j)[i] += a(i, k) * v(k, j);
  return out;
}

template <class W>
DenseBlockOf<W> copy(MatrixView<const W> v) {
  DenseBlockOf<W> out(v.rows, v.cols);
  for (std::int64_t j = 0; j < v.cols; ++j) std::copy_n(v.column(j), v.rows, out.column(j));
  return out;
}

/// ‖v − S·y‖₂/‖v‖₂ of a column.
template <class W>
double left_of(const Matrix<W>& s, MatrixView<const W> v, const DenseBlockOf<W>& y,
               std::int64_t j) {
  const DenseBlockOf<W> sy = product(s, y.view());
  double left = 0;
  double all = 0;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    left += std::norm(v(i, j) - sy.column(j)[i]);
    all += std::norm(v(i, j));
  }
  return std::sqrt(left / all);
}

template <class W>
Matrix<W> system_of(std::int64_t n) {
  return test::make_matrix<W>(n, n, [](auto i, auto j) {
    const Complex128 z = test::complex_uniform(5, i, j);
    if constexpr (std::is_same_v<W, double>) return z.real() + (i == j ? 3 : 0);
    if constexpr (!std::is_same_v<W, double>) return z + (i == j ? 3.0 : 0.0);
  });
}

template <class W>
class FlexibleGmresTest : public ::testing::Test {};
using Numbers = ::testing::Types<double, Complex128>;
TYPED_TEST_SUITE(FlexibleGmresTest, Numbers);

TYPED_TEST(FlexibleGmresTest, SaysWhatIsLeftWhateverThePreconditionerDoes) {
  using W = TypeParam;
  for (const std::int64_t n : {1, 2, 13, 40}) {
    const Matrix<W> s = system_of<W>(n);
    const Matrix<W> any =
        test::make_matrix<W>(n, 3, [](auto i, auto j) { return W(test::signed_uniform(9, i, j)); });
    const DenseBlockOf<W> v = copy<W>(any.view());
    int calls = 0;
    const GmresOperators<W> noisy{[&](MatrixView<const W> y) { return product(s, y); },
                                  [&](MatrixView<const W> r) {  // never the same map twice
                                    DenseBlockOf<W> z = copy(r);
                                    ++calls;
                                    for (std::int64_t j = 0; j < r.cols; ++j)
                                      for (std::int64_t i = 0; i < n; ++i)
                                        z.column(j)[i] *=
                                            1 + 0.5 * test::signed_uniform(7 + calls, i, j);
                                    return z;
                                  }};
    for (const int most : {1, 5, 60}) {
      const GmresSolution<W> solution = flexible_gmres<W>(noisy, v.view(), 1e-9, most);
      for (std::int64_t j = 0; j < 3; ++j) {
        const double left = left_of(s, v.view(), solution.y, j);
        EXPECT_NEAR(solution.reduction[at(j)], left, 1e-13) << n << ' ' << most;
        if (most == 60) {
          EXPECT_LE(left, 1.1e-9) << n;
        }
      }
      EXPECT_LE(solution.iterations, 3 * most);
    }
  }
}

TYPED_TEST(FlexibleGmresTest, EndsWhereNothingIsLeftOrNothingIsFinite) {
  using W = TypeParam;
  const std::int64_t n = 10;
  const Matrix<W> s = system_of<W>(n);
  DenseBlockOf<W> v(n, 3);  // zeros; a number that is none; a vector
  v.column(1)[4] = std::numeric_limits<double>::quiet_NaN();
  v.column(2)[0] = 1e100;
  const GmresOperators<W> plain{[&](MatrixView<const W> y) { return product(s, y); },
                                [](MatrixView<const W> r) { return copy(r); }};
  const GmresSolution<W> solution = flexible_gmres<W>(plain, std::as_const(v).view(), 1e-10, 30);
  EXPECT_EQ(solution.reduction[0], 0);
  EXPECT_EQ(norm_inf(n, solution.y.column(0)), 0);
  EXPECT_TRUE(std::isnan(solution.reduction[1]));
  EXPECT_LE(left_of(s, std::as_const(v).view(), solution.y, 2), 1.1e-10);
  EXPECT_LE(solution.iterations, n + 1);
  // The whole space is spanned, and a basis of all of it is no more extended.
  const GmresSolution<W> exact = flexible_gmres<W>(plain, std::as_const(v).view(), 0, 30);
  EXPECT_LE(left_of(s, std::as_const(v).view(), exact.y, 2), 1e-13);
  EXPECT_LE(exact.iterations, n + 2);
  const GmresOperators<W> broken{[](MatrixView<const W> y) {
                                   DenseBlockOf<W> none(y.rows, y.cols);
                                   for (std::int64_t j = 0; j < y.cols; ++j)
                                     none.column(j)[0] = std::numeric_limits<double>::infinity();
                                   return none;
                                 },
                                 plain.precondition};
  const GmresSolution<W> failed = flexible_gmres<W>(broken, std::as_const(v).view(), 1e-10, 30);
  EXPECT_TRUE(std::isnan(failed.reduction[2]));
  EXPECT_EQ(norm_inf(n, failed.y.column(2)), 0);
}

}  // namespace
}  // namespace strata
