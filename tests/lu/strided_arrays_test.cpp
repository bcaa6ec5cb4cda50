// The public calls on arrays that do not lie by columns: the bits of those that do.

#include <gtest/gtest.h>

#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "strata/array_ref.hpp"
#include "strata/cholesky.hpp"
#include "strata/error.hpp"
#include "strata/lu.hpp"
#include "strata/stripe_lu.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/lu/general_matrices.hpp"

namespace strata {
namespace {

using test::Matrix;
using Complex128 = std::complex<double>;

constexpr std::int64_t kOrder = 37;
constexpr std::int64_t kColumns = 3;

CholeskyOptions definite_on_host() {
  CholeskyOptions options;
  options.run.devices = "host";
  return options;
}
LuOptions general_on_host() {
  LuOptions options;
  options.run.devices = "host";
  return options;
}

/// The same matrix by rows, every other number of memory, from the last row up.
template <class T>
class Strided {
 public:
  explicit Strided(const Matrix<T>& a)
      : rows_(a.rows), cols_(a.cols), data_(static_cast<std::size_t>(2 * a.rows * a.cols)) {
    for (std::int64_t j = 0; j < cols_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i) at(i, j) = a(i, j);
  }
  [[nodiscard]] ArrayRef ref() { return {&at(0, 0), element_of<T>, rows_, cols_, -2 * cols_, 2}; }
  [[nodiscard]] Matrix<T> matrix() {
    Matrix<T> a(rows_, cols_);
    for (std::int64_t j = 0; j < cols_; ++j)
      for (std::int64_t i = 0; i < rows_; ++i) a(i, j) = at(i, j);
    return a;
  }

 private:
  T& at(std::int64_t i, std::int64_t j) {
    return data_[static_cast<std::size_t>(2 * ((rows_ - 1 - i) * cols_ + j))];
  }
  std::int64_t rows_, cols_;
  std::vector<T> data_;
};

template <class T>
T number(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  const auto real = static_cast<float>(test::signed_uniform(seed, i, j));
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(real);
  } else {
    return {real, static_cast<float>(test::signed_uniform(seed + 1, i, j))};
  }
}

template <class T>
T mirrored(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return std::conj(value);
  }
}

template <class T>
Matrix<T> general() {
  Matrix<T> a(kOrder, kOrder);
  for (std::int64_t j = 0; j < kOrder; ++j)
    for (std::int64_t i = 0; i < kOrder; ++i) a(i, j) = number<T>(7, i, j);
  return a;
}

template <class T>
Matrix<T> definite() {
  Matrix<T> a = general<T>();
  for (std::int64_t j = 0; j < kOrder; ++j) {
    for (std::int64_t i = 0; i < j; ++i) a(i, j) = mirrored(a(j, i));
    a(j, j) = T(2.0F * kOrder);
  }
  return a;
}

template <class T>
Matrix<T> right_sides() {
  Matrix<T> b(kOrder, kColumns);
  for (std::int64_t j = 0; j < kColumns; ++j)
    for (std::int64_t i = 0; i < kOrder; ++i) b(i, j) = number<T>(23, i, j);
  return b;
}

template <class T>
class StridedArrays : public ::testing::Test {};
using ArrayElements = ::testing::Types<double, float, Complex128, std::complex<float>>;
TYPED_TEST_SUITE(StridedArrays, ArrayElements);

TYPED_TEST(StridedArrays, OfPositiveDefiniteSystemsHaveTheBitsOfColumns) {
  using T = TypeParam;
  const Matrix<T> a = definite<T>();
  const Matrix<T> b = right_sides<T>();
  Strided<T> strided_a(a);
  Strided<T> strided_b(b);
  Matrix<T> x(kOrder, kColumns);
  Strided<T> strided_x(x);
  const SolveResult result = solve(a.view(), b.view(), x.view(), definite_on_host());
  const SolveResult same =
      solve(strided_a.ref(), strided_b.ref(), strided_x.ref(), definite_on_host());
  EXPECT_TRUE(result.certificate.factor.ok);
  EXPECT_TRUE(test::same_bits(strided_x.matrix().data, x.data));
  EXPECT_EQ(same.certificate.forward_error, result.certificate.forward_error);
  EXPECT_EQ(log_determinant(strided_a.ref(), definite_on_host()).factor.log_determinant,
            log_determinant(a.view(), definite_on_host()).factor.log_determinant);

  CholeskyFactor factor = cholesky(a.view(), definite_on_host());
  CholeskyFactor of_strided = cholesky(strided_a.ref(), definite_on_host());
  Matrix<T> lower(kOrder, kOrder);
  Strided<T> strided_lower(lower);
  factor.copy_lower(lower.view());
  of_strided.copy_lower(strided_lower.ref());
  EXPECT_TRUE(test::same_bits(strided_lower.matrix().data, lower.data));
  Matrix<T> y = b;
  Strided<T> strided_y(b);
  (void)factor.solve(y.view());
  (void)of_strided.solve(strided_y.ref());
  EXPECT_TRUE(test::same_bits(strided_y.matrix().data, y.data));
  (void)factor.solve_lower(y.view());
  (void)of_strided.solve_lower(strided_y.ref());
  EXPECT_TRUE(test::same_bits(strided_y.matrix().data, y.data));
}

TYPED_TEST(StridedArrays, OfGeneralSystemsHaveTheBitsOfColumns) {
  using T = TypeParam;
  const Matrix<T> a = general<T>();
  const Matrix<T> b = right_sides<T>();
  Strided<T> strided_a(a);
  Strided<T> strided_b(b);
  Matrix<T> x(kOrder, kColumns);
  Strided<T> strided_x(x);
  const GeneralSolveResult result = solve_general(a.view(), b.view(), x.view(), general_on_host());
  const GeneralSolveResult same =
      solve_general(strided_a.ref(), strided_b.ref(), strided_x.ref(), general_on_host());
  EXPECT_TRUE(result.info.ok);
  EXPECT_TRUE(test::same_bits(strided_x.matrix().data, x.data));
  EXPECT_EQ(same.certificate.forward_error, result.certificate.forward_error);

  LuFactor factor = lu(a.view(), general_on_host());
  LuFactor of_strided = lu(strided_a.ref(), general_on_host());
  Matrix<T> factors(kOrder, kOrder);
  Strided<T> strided_factors(factors);
  factor.copy_factors(factors.view());
  of_strided.copy_factors(strided_factors.ref());
  EXPECT_TRUE(test::same_bits(strided_factors.matrix().data, factors.data));
  Matrix<T> y = b;
  Strided<T> strided_y(b);
  (void)factor.solve(y.view());
  (void)factor.solve_transposed(y.view());
  (void)factor.solve_adjoint(y.view());
  (void)of_strided.solve(strided_y.ref());
  (void)of_strided.solve_transposed(strided_y.ref());
  (void)of_strided.solve_adjoint(strided_y.ref());
  EXPECT_TRUE(test::same_bits(strided_y.matrix().data, y.data));
}

template <class T>
class WideStridedArrays : public ::testing::Test {};
using WideArrayElements = ::testing::Types<double, Complex128>;
TYPED_TEST_SUITE(WideStridedArrays, WideArrayElements);

TYPED_TEST(WideStridedArrays, OfKeptFactorsMixedOnesAndStripesHaveTheBitsOfColumns) {
  using T = TypeParam;
  const Matrix<T> a = general<T>();
  const Matrix<T> b = right_sides<T>();
  Strided<T> strided_a(a);
  Strided<T> strided_b(b);
  Matrix<T> x(kOrder, kColumns);
  Strided<T> strided_x(x);
  const auto expect_same = [&](const char* what) {
    EXPECT_TRUE(test::same_bits(strided_x.matrix().data, x.data)) << what;
  };
  (void)solve_general_mixed(a.view(), b.view(), x.view(), general_on_host());
  (void)solve_general_mixed(strided_a.ref(), strided_b.ref(), strided_x.ref(), general_on_host());
  expect_same("mixed");
  GeneralFactor factor = factor_general(a.view(), Element::fp32, general_on_host());
  GeneralFactor of_strided = factor_general(strided_a.ref(), Element::fp32, general_on_host());
  (void)factor.solve(b.view(), x.view());
  (void)of_strided.solve(strided_b.ref(), strided_x.ref());
  expect_same("kept");
  (void)factor.solve(a.view(), b.view(), x.view());
  (void)of_strided.solve(strided_a.ref(), strided_b.ref(), strided_x.ref());
  expect_same("kept, certified");
  StripeOptions stripes;
  stripes.run.devices = "host";
  (void)solve_by_stripes(a.view(), b.view(), x.view(), stripes);
  (void)solve_by_stripes(strided_a.ref(), strided_b.ref(), strided_x.ref(), stripes);
  expect_same("stripes");
}

TEST(MixedArrays, ColumnsFromTheLastToTheFirstAreThoseOfTheMatrix) {
  const Matrix<double> a = general<double>();
  const Matrix<double> b = right_sides<double>();
  Matrix<double> turned(kOrder, kOrder);
  for (std::int64_t j = 0; j < kOrder; ++j)
    for (std::int64_t i = 0; i < kOrder; ++i) turned(i, j) = a(i, kOrder - 1 - j);
  const ConstArrayRef backward{&turned(0, kOrder - 1), Element::fp64, kOrder, kOrder, 1, -kOrder};
  Matrix<double> x(kOrder, kColumns);
  Matrix<double> y(kOrder, kColumns);
  (void)solve_general(a.view(), b.view(), x.view(), general_on_host());
  (void)solve_general(backward, b.view(), y.view(), general_on_host());
  EXPECT_TRUE(test::same_bits(x.data, y.data));
}

TEST(MixedArrays, RightHandSidesAreWidenedToTheMatrix) {
  const Matrix<Complex128> a = definite<Complex128>();
  const Matrix<float> b = right_sides<float>();
  Matrix<Complex128> wide(kOrder, kColumns);
  for (std::size_t i = 0; i < b.data.size(); ++i) wide.data[i] = b.data[i];
  Matrix<Complex128> x(kOrder, kColumns);
  Matrix<Complex128> y(kOrder, kColumns);
  (void)solve(a.view(), b.view(), x.view(), definite_on_host());
  (void)solve(a.view(), wide.view(), y.view(), definite_on_host());
  EXPECT_TRUE(test::same_bits(x.data, y.data));
  (void)solve_general(a.view(), b.view(), x.view(), general_on_host());
  (void)solve_general(a.view(), wide.view(), y.view(), general_on_host());
  EXPECT_TRUE(test::same_bits(x.data, y.data));
}

TEST(MixedArrays, APositiveDefiniteMatrixInFp32HasSolutionsInFp64) {
  const Matrix<float> a = definite<float>();
  const Matrix<float> b = right_sides<float>();
  Matrix<double> wide(kOrder, kOrder);
  for (std::size_t i = 0; i < a.data.size(); ++i) wide.data[i] = a.data[i];
  Matrix<double> x(kOrder, kColumns);
  Matrix<double> y(kOrder, kColumns);
  (void)solve(a.view(), b.view(), x.view(), definite_on_host());
  (void)solve(wide.view(), b.view(), y.view(), definite_on_host());
  EXPECT_TRUE(test::same_bits(x.data, y.data));
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse);
    return error.what();
  }
  return "not refused";
}

TEST(MixedArrays, ThatDoNotFitEachOtherAreRefused) {
  const Matrix<double> a = general<double>();
  const Matrix<Complex128> b = right_sides<Complex128>();
  Matrix<Complex128> x(kOrder, kColumns);
  Matrix<double> real_x(kOrder, kColumns);
  EXPECT_EQ(refusal([&] { (void)solve_general(a.view(), b.view(), x.view(), general_on_host()); }),
            "a matrix of fp64 does not have solutions of complex128");
  EXPECT_EQ(
      refusal([&] { (void)solve_general(a.view(), b.view(), real_x.view(), general_on_host()); }),
      "complex128 where fp64 is needed");
  const Matrix<float> narrow = general<float>();
  const Matrix<float> narrow_b = right_sides<float>();
  EXPECT_EQ(refusal([&] {
              (void)solve_general(narrow.view(), narrow_b.view(), real_x.view(), general_on_host());
            }),
            "a matrix of fp32 is not factored in fp64");
  Matrix<float> narrow_x(kOrder, kColumns);
  EXPECT_EQ(refusal([&] {
              (void)solve_general_mixed(narrow.view(), narrow_b.view(), narrow_x.view(),
                                        general_on_host());
            }),
            "a system of fp32 and fp32 is not solved by narrower factors");
  const std::vector<std::int32_t> integers(4);
  EXPECT_EQ(refusal([&] { (void)lu(ConstArrayRef(integers.data(), 2, 2, 2), general_on_host()); }),
            "an array of int32 is none of fp64, fp32, complex128 or complex64");
  GeneralFactor factor = factor_general(a.view(), Element::fp64, general_on_host());
  EXPECT_EQ(refusal([&] { (void)factor.solve(narrow_b.view(), narrow_x.view()); }),
            "fp32 where fp64 is needed");
}

}  // namespace
}  // namespace strata
