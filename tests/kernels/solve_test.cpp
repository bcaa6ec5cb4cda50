// The four solve operations of every backend, on integers that leave no room for rounding.

#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class SolveTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, SolveTest, ::testing::ValuesIn(every_backend()), name_of);

class SolveAgainstReferenceTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Tested, SolveAgainstReferenceTest, ::testing::ValuesIn(tested_backends()),
                         name_of);

/// Numbers of right-hand sides for blocks of n rows.
const std::int64_t kRightHandSides[] = {1, 2, 17, 65};

TEST_P(SolveTest, TrsmLeftUndoesAProduct) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t r : kRightHandSides) {
        const auto l = lower_only(Matrix<T>(n, n, 1, exact_factor));
        const auto x = Matrix<T>(n, r, 2, [](auto i, auto j) { return small_integer(1, i, j); });
        auto b = Matrix<T>(n, r, 2, [&](auto i, auto j) {  // L·X
          double sum = 0;
          for (std::int64_t k = 0; k <= i; ++k) {
            sum += exact_factor(i, k) * static_cast<double>(x(k, j));
          }
          return sum;
        });
        runner.run(Operation::trsm_left, b, {l});
        EXPECT_TRUE(same_values(b, x)) << n << ", " << r;
      }
    }
  });
}

TEST_P(SolveTest, TrsmLeftTransposedUndoesATransposedProduct) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t r : kRightHandSides) {
        const auto l = lower_only(Matrix<T>(n, n, 1, exact_factor));
        const auto x = Matrix<T>(n, r, 2, [](auto i, auto j) { return small_integer(1, i, j); });
        auto b = Matrix<T>(n, r, 2, [&](auto i, auto j) {  // Lᵀ·X
          double sum = 0;
          for (std::int64_t k = i; k < n; ++k) {
            sum += exact_factor(k, i) * static_cast<double>(x(k, j));
          }
          return sum;
        });
        runner.run(Operation::trsm_left_transposed, b, {l});
        EXPECT_TRUE(same_values(b, x)) << n << ", " << r;
      }
    }
  });
}

TEST_P(SolveTest, GemmLeftSubtractsAProduct) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{64}, n}) {
        for (const std::int64_t r : kRightHandSides) {
          const auto a = Matrix<T>(n, k, 1, [](auto i, auto j) { return small_integer(1, i, j); });
          const auto y = Matrix<T>(k, r, 0, [](auto i, auto j) { return small_integer(2, i, j); });
          auto x = Matrix<T>(n, r, 2, [](auto i, auto j) { return small_integer(3, i, j); });
          auto expected = x;
          for (std::int64_t j = 0; j < r; ++j) {
            for (std::int64_t i = 0; i < n; ++i) {
              for (std::int64_t p = 0; p < k; ++p) expected(i, j) -= a(i, p) * y(p, j);
            }
          }
          runner.run(Operation::gemm_left, x, {a, y});
          EXPECT_TRUE(same_values(x, expected)) << n << ", " << k << ", " << r;
        }
      }
    }
  });
}

TEST_P(SolveTest, GemmLeftTransposedSubtractsATransposedProduct) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{64}, n}) {
        for (const std::int64_t r : kRightHandSides) {
          const auto a = Matrix<T>(k, n, 1, [](auto i, auto j) { return small_integer(1, i, j); });
          const auto y = Matrix<T>(k, r, 0, [](auto i, auto j) { return small_integer(2, i, j); });
          auto x = Matrix<T>(n, r, 2, [](auto i, auto j) { return small_integer(3, i, j); });
          auto expected = x;
          for (std::int64_t j = 0; j < r; ++j) {
            for (std::int64_t i = 0; i < n; ++i) {
              for (std::int64_t p = 0; p < k; ++p) expected(i, j) -= a(p, i) * y(p, j);
            }
          }
          runner.run(Operation::gemm_left_transposed, x, {a, y});
          EXPECT_TRUE(same_values(x, expected)) << n << ", " << k << ", " << r;
        }
      }
    }
  });
}

TEST_P(SolveAgainstReferenceTest, RealNumbersAgree) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    Runner reference(reference_backend());
    const double eps = std::numeric_limits<T>::epsilon();
    for (const std::int64_t n : kSizes) {
      const auto l = lower_only(Matrix<T>(n, n, 0, [n](auto i, auto j) {
        return i == j ? 2 + 0.5 * uniform(1, i, j) : uniform(1, i, j) / static_cast<double>(n);
      }));
      const auto start = Matrix<T>(n, 3, 0, [](auto i, auto j) { return uniform(2, i, j); });
      for (const Operation operation : {Operation::trsm_left, Operation::trsm_left_transposed}) {
        auto here = start;
        auto there = start;
        runner.run(operation, here, {l});
        reference.run(operation, there, {l});
        for (std::size_t i = 0; i < here.data.size(); ++i) {
          ASSERT_NEAR(here.data[i], there.data[i], 8 * eps) << to_string(operation) << " " << n;
        }
      }
    }
  });
}

}  // namespace
}  // namespace strata::testing
