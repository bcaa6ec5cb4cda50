// LuFactor on a GPU: pivots and factors of the host's, the same bits in any budget, solves in three
// ways, and certificates of matrices with growth.

#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "base/index.hpp"
#include "kernels/backend/backend.hpp"
#include "scalar/complex.hpp"
#include "strata/lu.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/lu/general_matrices.hpp"

namespace strata {
namespace {

using test::Matrix;

LuOptions on(const std::string& devices, std::int64_t panel) {
  LuOptions options;
  options.run.devices = devices;
  options.panel = panel;
  return options;
}

template <class T>
class LuOnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  }
  static Matrix<T> random(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    return test::make_matrix<T>(rows, cols, [&](auto i, auto j) {
      const double re = test::signed_uniform(seed, i, j);
      if constexpr (is_complex_v<T>)
        return T(static_cast<RealOf<T>>(re),
                 static_cast<RealOf<T>>(test::signed_uniform(seed + 1, i, j)));
      else
        return static_cast<T>(re);
    });
  }
};
using Types = ::testing::Types<double, float, std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(LuOnCuda, Types);

TYPED_TEST(LuOnCuda, HasTheHostsPivotsAndTheSameBitsInAnyBudget) {
  using T = TypeParam;
  constexpr double kUnit = std::numeric_limits<RealOf<T>>::epsilon();
  const std::int64_t n = 700;
  const Matrix<T> a = this->random(n, n, 31);
  const Matrix<T> b = this->random(n, 9, 41);
  for (const std::int64_t panel : {std::int64_t{64}, std::int64_t{300}, n}) {
    const LuFactor host = lu(a.view(), on("host", panel));
    Matrix<T> expected(n, n);
    host.copy_factors(expected.view());
    LuFactor whole = lu(a.view(), on("cuda:0", panel));
    Matrix<T> first(n, n);
    whole.copy_factors(first.view());
    EXPECT_EQ(whole.report().devices, std::vector<std::string>{"cuda:0"});
    if (sizeof(RealOf<T>) == 8) {  // in fp32 rounding may decide between two pivots
      EXPECT_EQ(whole.pivots(), host.pivots()) << panel;
      for (std::size_t i = 0; i < first.data.size(); ++i)
        ASSERT_LE(std::abs(first.data[i] - expected.data[i]), 1e-12 * n) << panel;
    }
    EXPECT_NEAR(whole.info().growth, host.info().growth, 0.1 * host.info().growth);
    for (const std::int64_t panels : {2, 3, 5}) {
      for (const Policy policy : {Policy::sync, Policy::opt}) {
        LuOptions options = on("cuda:0", panel);
        const std::int64_t bytes = static_cast<std::int64_t>(sizeof(T));
        options.run.device_memory_bytes = panels * (n * panel * bytes + 8 * panel + 512) + 65536;
        options.run.policy = policy;
        LuFactor factor = lu(a.view(), options);
        Matrix<T> found(n, n);
        factor.copy_factors(found.view());
        ASSERT_TRUE(test::same_bits(found.data, first.data)) << panel << ' ' << panels;
        EXPECT_EQ(factor.report().traffic.total(), factor.report().planned_traffic.total());
        Matrix<T> x = b;
        const RunReport solve = factor.solve(x.view());
        EXPECT_EQ(solve.traffic.total(), solve.planned_traffic.total());
      }
    }
    for (const int way : {0, 1, 2}) {
      Matrix<T> x = b;
      if (way == 0) (void)whole.solve(x.view());
      if (way == 1) (void)whole.solve_transposed(x.view());
      if (way == 2) (void)whole.solve_adjoint(x.view());
      double size = 0;
      for (const T& value : x.data) size = std::max<double>(size, std::abs(value));
      for (std::int64_t c = 0; c < b.cols; ++c) {
        for (std::int64_t i = 0; i < n; ++i) {
          WideOf<T> r = b(i, c);
          for (std::int64_t j = 0; j < n; ++j) {
            const auto e = static_cast<WideOf<T>>(way == 0 ? a(i, j) : a(j, i));
            r -= (way == 2 ? conjugate(e) : e) * static_cast<WideOf<T>>(x(j, c));
          }
          // HPL's residual below 16, with |A| at most √2·n.
          ASSERT_LE(std::abs(r), 16 * kUnit * n * (1.5 * n * size + 1)) << panel << ' ' << way;
        }
      }
    }
  }
}

double largest_difference(const Matrix<double>& a, const Matrix<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double apart = std::abs(a.data[i] - b.data[i]);
    if (!(apart <= largest)) largest = apart;  // keeps a NaN
  }
  return largest;
}

/// Steps have 512 columns here, exchanges and solves go ahead of products, and products with 16,384
/// rows and more are made with the transposed rows of U.
TEST(LuOnCudaWide, HasTheHostsPivotsInOneBlockAndInPanelsOfAnyBudget) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  const std::int64_t n = 17'500;
  const Matrix<double> a = test::random_general(n, 37);
  const LuFactor host = lu(a.view(), on("host", 256));
  Matrix<double> expected(n, n);
  host.copy_factors(expected.view());
  Matrix<double> found(n, n);
  const double limit = 1e-13 * static_cast<double>(n) * host.info().growth;
  for (const std::int64_t panel : {n, std::int64_t{1024}}) {
    const LuFactor whole = lu(a.view(), on("cuda:0", panel));
    EXPECT_EQ(whole.pivots(), host.pivots()) << panel;
    whole.copy_factors(found.view());
    EXPECT_LE(largest_difference(found, expected), limit) << panel;
  }
  Matrix<double> mine = a;
  LuOptions options = on("cuda:0", 1024);
  options.run.device_memory_bytes = 6 * (n * 1024 * 8 + 8 * 1024 + 512) + 65536;
  const LuFactor factor = lu_overwriting(mine.view(), options);
  EXPECT_GT(factor.report().traffic.total(), 3 * n * n * 8);
  factor.copy_factors(expected.view());
  EXPECT_TRUE(test::same_bits(found.data, expected.data)) << "panels of 1024 in a budget";
}

/// Steps and updates of this order have products of fp16 parts.
TEST(LuOnCudaMixed, SolvesByHalvesAsFp64Does) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  const std::int64_t n = 3000;
  const Matrix<double> a = test::random_general(n, 43);
  const Matrix<double> b = test::make_matrix<double>(
      n, 2, [](auto i, auto j) { return test::signed_uniform(47, i, j); });
  Matrix<double> expected(n, 2);
  const GeneralSolveResult full =
      solve_general(a.view(), b.view(), expected.view(), on("cuda:0", 0));
  for (const std::int64_t panels : {0, 3}) {
    LuOptions options = on("cuda:0", 1024);
    options.run.device_memory_bytes =
        panels == 0 ? 0 : panels * (n * 1024 * 4 + 8 * 1024 + 512) + 65536;
    Matrix<double> x(n, 2);
    const GeneralSolveResult mixed = solve_general_mixed(a.view(), b.view(), x.view(), options);
    EXPECT_EQ(mixed.fallback, "");
    EXPECT_EQ(mixed.factor_precision, Element::fp32);
    double size = 0;
    for (const double value : expected.data) size = std::max(size, std::abs(value));
    EXPECT_LE(largest_difference(x, expected),
              (full.certificate.forward_error + mixed.certificate.forward_error) * size);
    EXPECT_LE(mixed.certificate.forward_error, solution_error_wanted(Element::fp64));
  }
  // The factors are others than those of fp32, and the same in any budget.
  const auto narrow =
      test::make_matrix<float>(n, n, [&](auto i, auto j) { return static_cast<float>(a(i, j)); });
  const auto factors = [&](bool halves, std::int64_t panels) {
    LuOptions options = on("cuda:0", 1024);
    options.halves = halves;
    options.run.device_memory_bytes =
        panels == 0 ? 0 : panels * (n * 1024 * 4 + 8 * 1024 + 512) + 65536;
    Matrix<float> found(n, n);
    lu(narrow.view(), options).copy_factors(found.view());
    return found;
  };
  const Matrix<float> of_halves = factors(true, 0);
  EXPECT_FALSE(test::same_bits(factors(false, 0).data, of_halves.data));
  EXPECT_TRUE(test::same_bits(factors(true, 3).data, of_halves.data));
}

class LuKindsOnCuda : public ::testing::TestWithParam<test::GeneralKind> {};

TEST_P(LuKindsOnCuda, AreSolvedWithACertificateThatHolds) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  for (const std::int64_t n : {33, 130, 260}) {
    const Matrix<double> a = GetParam().make(n);
    const std::int64_t order = a.rows;
    // x of small integers: b is exact where the elements of A are short.
    Matrix<double> b(order, 1);
    for (std::int64_t j = 0; j < order; ++j)
      for (std::int64_t i = 0; i < order; ++i) b(i, 0) += a(i, j) * static_cast<double>(1 + j % 3);
    Matrix<double> x(order, 1);
    const GeneralSolveResult host = solve_general(a.view(), b.view(), x.view(), on("host", 64));
    Matrix<double> y(order, 1);
    const GeneralSolveResult gpu = solve_general(a.view(), b.view(), y.view(), on("cuda:0", 64));
    EXPECT_EQ(gpu.info.ok, host.info.ok) << n;
    if (!gpu.info.ok || !host.info.ok) continue;
    const double both = host.certificate.forward_error + gpu.certificate.forward_error;
    double difference = 0;
    double size = 0;
    for (std::int64_t i = 0; i < order; ++i) {
      difference = std::max(difference, std::abs(x(i, 0) - y(i, 0)));
      size = std::max(size, std::abs(x(i, 0)));
    }
    EXPECT_LE(difference, both * size * (1 + 1e-9)) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, LuKindsOnCuda, ::testing::ValuesIn(test::general_kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace strata
