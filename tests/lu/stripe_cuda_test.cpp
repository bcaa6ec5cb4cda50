// LU by stripes on a GPU: solutions with certificates that hold, whatever pivots are searched, and
// the same bits in any budget.

#include <gtest/gtest.h>

#include <complex>
#include <string>

#include <fmt/core.h>

#include "kernels/backend/backend.hpp"
#include "scalar/complex.hpp"
#include "strata/stripe_lu.hpp"
#include "tests/io/scratch.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/lu/stripe_cases.hpp"
#include "tests/support/storage_options.hpp"

namespace strata {
namespace {

using test::Matrix;

template <class T>
class StripesOnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  }
};
using StripeTypes = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(StripesOnCuda, StripeTypes);

template <class T>
Matrix<T> uniform_stripes(std::int64_t rows, std::int64_t cols, std::uint64_t seed,
                          double diagonal) {
  return test::make_matrix<T>(rows, cols, [=](auto i, auto j) -> T {
    const T own = i == j ? T(diagonal) : T(0);
    if constexpr (is_complex_v<T>)
      return own + test::complex_uniform(seed, i, j);
    else
      return own + test::signed_uniform(seed, i, j);
  });
}

TYPED_TEST(StripesOnCuda, SolveAsTheHostDoesWithTheSameBitsInAnyBudget) {
  using T = TypeParam;
  const std::int64_t n = 500;
  for (const char* pivoting :
       {"none", "local:5", "local:64", "local:1000", "pairwise:16", "pairwise"}) {
    const bool searches = std::string(pivoting) != "none";
    const Matrix<T> a = uniform_stripes<T>(n, n, 3, searches ? 0 : 40);
    const Matrix<T> b = uniform_stripes<T>(n, 3, 5, 0);
    for (const char* order : {"zigzag", "meta-zigzag:2"}) {
      SCOPED_TRACE(fmt::format("{} {}", pivoting, order));
      StripeOptions stripes = test::stripes_of(130, 0, order);
      set_pivoting(pivoting, stripes);
      stripes.run.devices = "host:1";
      Matrix<T> expected(n, 3);
      const StripeSolveResult on_host =
          solve_by_stripes(a.view(), b.view(), expected.view(), stripes);
      ASSERT_EQ(on_host.refusal, "");
      Matrix<T> first(0, 0);
      for (const double share : {0.0, 0.7, 0.4}) {
        const test::Scratch folder;
        StripeOptions there = stripes;
        there.run.devices = "cuda:0";
        if (share > 0)
          there.run.device_memory_bytes =
              static_cast<std::int64_t>(share * static_cast<double>(n * n) * sizeof(T));
        if (share == 0.4) there.run = test::in_folders(there.run, folder, 2);
        Matrix<T> x(n, 3);
        const StripeSolveResult result = solve_by_stripes(a.view(), b.view(), x.view(), there);
        ASSERT_EQ(result.refusal, "");
        EXPECT_EQ(result.factor.devices, std::vector<std::string>{"cuda:0"});
        EXPECT_EQ(result.factor.traffic, result.factor.planned_traffic);
        EXPECT_EQ(result.solve.traffic, result.solve.planned_traffic);
        EXPECT_NEAR(result.info.growth, on_host.info.growth, 0.01 * on_host.info.growth);
        EXPECT_NEAR(result.largest_multiplier, on_host.largest_multiplier,
                    0.01 * on_host.largest_multiplier);
        const double off = result.certificate.forward_error + on_host.certificate.forward_error;
        double largest = 0;
        for (const T& value : expected.data) largest = std::max(largest, std::abs(value));
        for (std::size_t i = 0; i < x.data.size(); ++i)
          ASSERT_LE(std::abs(x.data[i] - expected.data[i]), off * largest) << i;
        if (first.rows == 0) first = x;
        EXPECT_TRUE(test::same_bits(x.data, first.data)) << share;
      }
    }
  }
}

TYPED_TEST(StripesOnCuda, RefuseWhatTheirPivotsCannotDo) {
  using T = TypeParam;
  const std::int64_t n = 96;
  const Matrix<T> a =
      test::make_matrix<T>(n, n, [=](auto i, auto j) { return T(j == (i + n / 2) % n ? 1 : 0); });
  const Matrix<T> b = uniform_stripes<T>(n, 1, 5, 0);
  StripeOptions stripes = test::stripes_of(24, 8);
  stripes.run.devices = "cuda:0";
  Matrix<T> x(n, 1);
  EXPECT_NE(solve_by_stripes(a.view(), b.view(), x.view(), stripes).refusal, "");
  set_pivoting("pairwise", stripes);
  EXPECT_EQ(solve_by_stripes(a.view(), b.view(), x.view(), stripes).refusal, "");
  for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(x(i, 0), b((i + n / 2) % n, 0));
}

}  // namespace
}  // namespace strata
