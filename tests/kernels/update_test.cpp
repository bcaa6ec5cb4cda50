// trsm, syrk and gemm of every backend: exact integers, and real numbers against the reference.

#include <array>
#include <thread>

#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class UpdateTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, UpdateTest, ::testing::ValuesIn(every_backend()), name_of);

class UpdateAgainstReferenceTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Tested, UpdateAgainstReferenceTest, ::testing::ValuesIn(tested_backends()),
                         name_of);

struct Extents {
  std::int64_t m, n, k;
};
/// Square ones of every size, and ragged ones.
std::vector<Extents> extents() {
  std::vector<Extents> all;
  for (const std::int64_t n : kSizes) all.push_back({n, n, n});
  for (const auto& e : {Extents{1, 65, 3}, {130, 1, 64}, {17, 63, 1}, {64, 5, 130}, {2, 130, 65}}) {
    all.push_back(e);
  }
  return all;
}

TEST_P(UpdateTest, TrsmIsExactOnIntegers) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [m, n, k] : extents()) {
      const auto l = lower_only(Matrix<T>(n, n, 1, exact_factor));
      const auto x = Matrix<T>(m, n, 2, [](auto i, auto j) { return small_integer(1, i, j); });
      auto a = Matrix<T>(m, n, 2, [&](auto i, auto j) {  // X·Lᵀ
        double sum = 0;
        for (std::int64_t c = 0; c <= j; ++c) {
          sum += static_cast<double>(x(i, c)) * exact_factor(j, c);
        }
        return sum;
      });
      runner.run(Operation::trsm, a, {l});
      EXPECT_TRUE(same_values(a, x)) << m << "x" << n;
    }
  });
}

TEST_P(UpdateTest, SyrkIsExactOnIntegersAndLeavesTheUpperTriangle) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [m, n, k] : extents()) {
      const auto a = Matrix<T>(n, k, 1, [](auto i, auto j) { return small_integer(1, i, j); });
      auto c =
          lower_only(Matrix<T>(n, n, 2, [](auto i, auto j) { return small_integer(2, i, j); }));
      auto expected = c;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = j; i < n; ++i) {
          for (std::int64_t p = 0; p < k; ++p) expected(i, j) -= a(i, p) * a(j, p);
        }
      }
      runner.run(Operation::syrk, c, {a});
      EXPECT_TRUE(same_values(c, expected)) << n << ", k = " << k;
    }
  });
}

TEST_P(UpdateTest, GemmIsExactOnIntegers) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [m, n, k] : extents()) {
      const auto a = Matrix<T>(m, k, 1, [](auto i, auto j) { return small_integer(1, i, j); });
      const auto b = Matrix<T>(n, k, 0, [](auto i, auto j) { return small_integer(2, i, j); });
      auto c = Matrix<T>(m, n, 2, [](auto i, auto j) { return small_integer(3, i, j); });
      auto expected = c;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t p = 0; p < k; ++p) expected(i, j) -= a(i, p) * b(j, p);
        }
      }
      runner.run(Operation::gemm, c, {a, b});
      EXPECT_TRUE(same_values(c, expected)) << m << "x" << n << ", k = " << k;
    }
  });
}

// Large enough for the algorithm of large products of a GPU, with leading dimensions that it takes
// and one that it does not.
TEST_P(UpdateTest, LargeGemmIsExactOnIntegers) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [m, n, k, padding] : {std::array<std::int64_t, 4>{1500, 1410, 20, 0},
                                           {3001, 770, 33, 1},
                                           {1409, 1540, 16, 0}}) {
      const auto a =
          Matrix<T>(m, k, padding, [](auto i, auto j) { return small_integer(1, i, j); });
      const auto b = Matrix<T>(n, k, 0, [](auto i, auto j) { return small_integer(2, i, j); });
      auto c = Matrix<T>(m, n, padding, [](auto i, auto j) { return small_integer(3, i, j); });
      auto expected = c;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t p = 0; p < k; ++p) {
          for (std::int64_t i = 0; i < m; ++i) expected(i, j) -= a(i, p) * b(j, p);
        }
      }
      runner.run(Operation::gemm, c, {a, b});
      EXPECT_TRUE(same_values(c, expected)) << m << "x" << n << ", k = " << k;
    }
  });
}

TEST_P(UpdateAgainstReferenceTest, RealNumbersAgree) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    Runner reference(reference_backend());
    const double eps = std::numeric_limits<T>::epsilon();
    for (const Extents& e : extents()) {
      const std::int64_t m = e.m;
      const std::int64_t n = e.n;
      const std::int64_t k = e.k;
      const auto a = Matrix<T>(m, k, 0, [](auto i, auto j) { return uniform(1, i, j); });
      const auto b = Matrix<T>(n, k, 0, [](auto i, auto j) { return uniform(2, i, j); });
      const auto c = Matrix<T>(m, n, 0, [](auto i, auto j) { return uniform(3, i, j); });
      // Rows of L sum to less than its diagonal, so that substitution does not let errors grow.
      const auto l = lower_only(Matrix<T>(n, n, 0, [n](auto i, auto j) {
        return i == j ? 2 + 0.5 * uniform(4, i, j) : uniform(4, i, j) / static_cast<double>(n);
      }));
      const auto square =
          lower_only(Matrix<T>(n, n, 0, [](auto i, auto j) { return uniform(5, i, j); }));
      const auto compare = [&](Operation operation, const Matrix<T>& start,
                               const std::vector<Matrix<T>>& inputs, double bound) {
        auto here = start;
        auto there = start;
        runner.run(operation, here, inputs);
        reference.run(operation, there, inputs);
        for (std::size_t i = 0; i < here.data.size(); ++i) {
          if (std::isnan(there.data[i])) {
            ASSERT_TRUE(std::isnan(here.data[i])) << to_string(operation);
          } else {
            ASSERT_NEAR(here.data[i], there.data[i], bound)
                << to_string(operation) << " " << m << "," << n << "," << k;
          }
        }
      };
      // Each sum has k + 1 terms below 1: two orders of summation differ by (k + 1)²·eps at most.
      const double sums = static_cast<double>((k + 1) * (k + 1)) * eps;
      compare(Operation::gemm, c, {a, b}, sums);
      compare(Operation::syrk, square, {b}, sums);
      compare(Operation::trsm, c, {l}, 8 * eps);
    }
  });
}

TEST_P(UpdateTest, GivesTheSameBitsWhereverTheBlocksLie) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    const auto a = Matrix<T>(130, 65, 0, [](auto i, auto j) { return uniform(1, i, j); });
    const auto b = Matrix<T>(63, 65, 0, [](auto i, auto j) { return uniform(2, i, j); });
    const auto start = Matrix<T>(130, 63, 0, [](auto i, auto j) { return uniform(3, i, j); });
    auto first = start;
    auto second = start;
    runner.run(Operation::gemm, first, {a, b}, 0);
    runner.run(Operation::gemm, second, {a, b}, 1);
    EXPECT_TRUE(same_bits(first, second));
  });
}

TEST_P(UpdateTest, GivesTheSameBitsBesideOtherQueues) {
  dispatch(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    const auto a = Matrix<T>(130, 130, 0, [](auto i, auto j) { return uniform(1, i, j); });
    const auto start = Matrix<T>(130, 130, 0, [](auto i, auto j) { return uniform(3, i, j); });
    std::vector<Matrix<T>> results(4, start);
    {
      std::vector<std::jthread> threads;
      for (auto& result : results) {
        threads.emplace_back([&] {
          Runner runner(*GetParam().backend);
          for (int i = 0; i < 5; ++i) runner.run(Operation::gemm, result, {a, a});
        });
      }
    }
    for (const auto& result : results) EXPECT_TRUE(same_bits(result, results[0]));
    EXPECT_FALSE(same_bits(results[0], start));
  });
}

}  // namespace
}  // namespace strata::testing
