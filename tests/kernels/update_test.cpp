// syrk and gemm of every backend: exact integers, and real numbers against the reference.

#include <array>
#include <string>
#include <thread>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/campaign.hpp"

namespace strata::testing {
namespace {

class UpdateTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, UpdateTest, ::testing::ValuesIn(every_backend()), name_of);

class UpdateAgainstReferenceTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Tested, UpdateAgainstReferenceTest, ::testing::ValuesIn(tested_backends()),
                         name_of);

struct ProductExtents {
  std::int64_t m, n, k;
};
/// Square ones of every size, and ragged ones.
std::vector<ProductExtents> product_extents() {
  std::vector<ProductExtents> all;
  for (const std::int64_t n : kSizes) all.push_back({n, n, n});
  for (const auto& e : {ProductExtents{1, 65, 3},
                        {130, 1, 64},
                        {17, 63, 1},
                        {64, 5, 130},
                        {2, 130, 65},
                        {65, 17, 64},
                        {130, 2, 1}}) {
    all.push_back(e);
  }
  return all;
}

TEST_P(UpdateTest, SyrkIsExactOnIntegersAndLeavesTheUpperTriangle) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [m, n, k] : product_extents()) {
      const auto a = Matrix<T>(n, k, 1, [](auto i, auto j) { return small_integer(1, i, j); });
      auto c =
          lower_only(Matrix<T>(n, n, 2, [](auto i, auto j) { return small_integer(2, i, j); }));
      auto expected = c;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = j; i < n; ++i) {
          for (std::int64_t p = 0; p < k; ++p) expected(i, j) -= a(i, p) * a(j, p);
        }
      }
      runner.run(syrk, c, {a});
      EXPECT_TRUE(same_values(c, expected)) << n << ", k = " << k;
    }
  });
}

constexpr std::uint32_t kGemmVariants[] = {0, kTransposeA, kTransposeB, kTransposeA | kTransposeB};

/// Operands C, A and B of a product of the given extents.
template <class T, class F>
Operands<T> operands_of_gemm(const ProductExtents& e, std::uint32_t variant, F value) {
  const auto matrix = [&](std::uint64_t seed, std::int64_t rows, std::int64_t cols,
                          std::int64_t padding) {
    return Matrix<T>(rows, cols, padding, [&](auto i, auto j) { return value(seed, i, j); });
  };
  return {matrix(3, e.m, e.n, 2),
          (variant & kTransposeA) != 0 ? matrix(1, e.k, e.m, 1) : matrix(1, e.m, e.k, 1),
          (variant & kTransposeB) != 0 ? matrix(2, e.n, e.k, 0) : matrix(2, e.k, e.n, 0)};
}

TEST_P(UpdateTest, GemmIsExactOnIntegers) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : kGemmVariants) {
      for (const ProductExtents& e : product_extents()) {
        auto operands = operands_of_gemm<T>(e, variant, small_integer);
        Matrix<T>& c = operands[0];
        const Matrix<T>& a = operands[1];
        const Matrix<T>& b = operands[2];
        auto expected = c;
        for (std::int64_t j = 0; j < e.n; ++j) {
          for (std::int64_t i = 0; i < e.m; ++i) {
            for (std::int64_t p = 0; p < e.k; ++p) {
              expected(i, j) -= ((variant & kTransposeA) != 0 ? a(p, i) : a(i, p)) *
                                ((variant & kTransposeB) != 0 ? b(j, p) : b(p, j));
            }
          }
        }
        runner.run(gemm, c, {a, b}, variant);
        EXPECT_TRUE(same_values(c, expected))
            << "variant " << variant << ": " << e.m << "x" << e.n << ", k = " << e.k;
      }
    }
  });
}

TEST_P(UpdateTest, ManyCallsGiveTheBitsOfEachAlone) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    const auto compare = [&](const Operation& operation, std::vector<Operands<T>> calls,
                             std::uint32_t variant) {
      auto alone = calls;
      runner.run_all(operation, calls, variant);
      for (std::size_t c = 0; c < calls.size(); ++c) {
        std::vector<Operands<T>> one{alone[c]};
        runner.run_all(operation, one, variant);
        EXPECT_TRUE(same_bits(calls[c][0], one[0][0])) << operation.name << " " << c;
        EXPECT_FALSE(same_bits(calls[c][0], alone[c][0])) << operation.name << " " << c;
      }
    };
    for (const std::uint32_t variant : kGemmVariants) {
      std::vector<Operands<T>> calls;
      for (const ProductExtents& e : product_extents())
        calls.push_back(operands_of_gemm<T>(e, variant, uniform));
      compare(gemm, calls, variant);
    }
    std::vector<Operands<T>> calls;
    for (const auto& [m, n, k] : product_extents()) {
      calls.push_back({Matrix<T>(n, n, 1, [](auto i, auto j) { return uniform(5, i, j); }),
                       Matrix<T>(n, k, 0, [](auto i, auto j) { return uniform(2, i, j); })});
    }
    compare(syrk, calls, 0);
  });
}

TEST_P(UpdateTest, RefusesAVariantThatDoesNotExist) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    const auto refused = [](const Operation& operation, std::uint32_t variant) {
      Runner runner(*GetParam().backend);
      auto c = Matrix<T>(2, 2, 0, [](auto, auto) { return 1; });
      const std::vector<Matrix<T>> inputs(static_cast<std::size_t>(operation.operands - 1), c);
      try {
        runner.run(operation, c, inputs, variant);
        ADD_FAILURE() << operation.name << " " << variant;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::device);
        EXPECT_EQ(error.where(), operation.name);
        EXPECT_NE(std::string(error.what()).find(std::to_string(variant)), std::string::npos);
      }
    };
    refused(gemm, 4);
    refused(syrk, 1);
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
      if (test::kSanitized && padding == 0) continue;
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
      runner.run(gemm, c, {a, b}, kTransposeB);
      EXPECT_TRUE(same_values(c, expected)) << m << "x" << n << ", k = " << k;
    }
  });
}

TEST_P(UpdateAgainstReferenceTest, RealNumbersAgree) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    Runner reference(reference_backend());
    const double eps = std::numeric_limits<T>::epsilon();
    const auto compare = [&](const Operation& operation, const Operands<T>& operands,
                             std::uint32_t variant, const ProductExtents& e) {
      std::vector<Operands<T>> here{operands};
      std::vector<Operands<T>> there{operands};
      runner.run_all(operation, here, variant);
      reference.run_all(operation, there, variant);
      // Each sum has k + 1 terms below 1: two orders of summation differ by (k + 1)²·eps at most.
      const double bound = static_cast<double>((e.k + 1) * (e.k + 1)) * eps;
      for (std::size_t i = 0; i < here[0][0].data.size(); ++i) {
        const T expected = there[0][0].data[i];
        const T value = here[0][0].data[i];
        ASSERT_EQ(std::isnan(value), std::isnan(expected)) << operation.name;
        if (std::isnan(expected)) continue;
        ASSERT_NEAR(value, expected, bound)
            << operation.name << " " << variant << ": " << e.m << "," << e.n << "," << e.k;
      }
    };
    for (const ProductExtents& e : product_extents()) {
      for (const std::uint32_t variant : kGemmVariants)
        compare(gemm, operands_of_gemm<T>(e, variant, uniform), variant, e);
      const auto square =
          lower_only(Matrix<T>(e.n, e.n, 0, [](auto i, auto j) { return uniform(5, i, j); }));
      const auto b = Matrix<T>(e.n, e.k, 0, [](auto i, auto j) { return uniform(2, i, j); });
      compare(syrk, {square, b}, 0, e);
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
    runner.run(gemm, first, {a, b}, kTransposeB, 0);
    runner.run(gemm, second, {a, b}, kTransposeB, 1);
    EXPECT_TRUE(same_bits(first, second));
  });
}

TEST_P(UpdateTest, GivesTheSameBitsBesideOtherQueues) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    const auto a = Matrix<T>(130, 130, 0, [](auto i, auto j) { return uniform(1, i, j); });
    const auto start = Matrix<T>(130, 130, 0, [](auto i, auto j) { return uniform(3, i, j); });
    std::vector<Matrix<T>> results(4, start);
    {
      std::vector<std::jthread> threads;
      for (auto& result : results) {
        threads.emplace_back([&] {
          Runner runner(*GetParam().backend);
          for (int i = 0; i < 5; ++i) runner.run(gemm, result, {a, a}, kTransposeB);
        });
      }
    }
    for (const auto& result : results) EXPECT_TRUE(same_bits(result, results[0]));
    EXPECT_FALSE(same_bits(results[0], start));
  });
}

}  // namespace
}  // namespace strata::testing
