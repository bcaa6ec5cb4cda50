// trsm from the left with few columns: large and ragged factors, and on a GPU, whose kernel for
// them this is for, the bits of a column, pivots without a reciprocal, and numbers that are none.

#include <bit>

#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class SolveColumnsTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Tested, SolveColumnsTest, ::testing::ValuesIn(tested_backends()), name_of);

std::vector<KernelParameter> on_gpus() {
  if (cuda_backend() == nullptr) return {};
  return {{cuda_backend(), Element::fp64}, {cuda_backend(), Element::fp32}};
}
class SolveColumnsOnGpuTest : public KernelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SolveColumnsOnGpuTest);
INSTANTIATE_TEST_SUITE_P(Gpu, SolveColumnsOnGpuTest, ::testing::ValuesIn(on_gpus()), name_of);

constexpr std::uint32_t kColumnVariants[] = {0, kTransposeL};
constexpr std::int64_t kSolvedColumns[] = {1, 2, 4, 5, 7, 32, 33, 64, 65};

/// The products of exact_factor, or its transpose, with small integers, by sums along the columns:
/// all rows of a column of the factor are alike.
template <class T>
Matrix<T> exact_product(std::uint32_t variant, const Matrix<T>& x) {
  Matrix<T> b = x;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.rows; ++n) {
      const std::int64_t i = variant == kTransposeL ? x.rows - 1 - n : n;
      const double factor = exact_factor(i, i);
      sum += variant == kTransposeL ? x(i, j) : factor * x(i, j);
      b(i, j) = static_cast<T>(variant == kTransposeL ? factor * sum : sum);
    }
  }
  return b;
}

template <class T>
Matrix<T> integers(std::int64_t rows, std::int64_t cols) {
  return Matrix<T>(rows, cols, 3, [](auto i, auto j) { return small_integer(1, i, j); });
}

/// No sum of a row or column of it is far from 1, so that errors do not grow; elements of every
/// size.
template <class T>
Matrix<T> factor_of(std::int64_t n, std::int64_t padding) {
  return lower_only(Matrix<T>(n, n, padding, [n](auto i, auto j) {
    return i == j ? 2 + 0.5 * uniform(4, i, j) : 2 * uniform(4, i, j) / static_cast<double>(n);
  }));
}

TEST_P(SolveColumnsTest, UndoProductsOfEveryOrder) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {1, 2, 9, 63, 64, 65, 127, 200, 1000, 2047}) {
      const auto l = lower_only(Matrix<T>(n, n, n % 3, exact_factor));
      for (const std::uint32_t variant : kColumnVariants) {
        for (const std::int64_t cols : kSolvedColumns) {
          if (n > 1000 && cols != 1 && cols != 33) continue;
          const auto x = integers<T>(n, cols);
          auto b = exact_product(variant, x);
          runner.run(trsm, b, {l}, variant);
          EXPECT_TRUE(same_values(b, x)) << "variant " << variant << ": " << n << ", " << cols;
        }
      }
    }
  });
}

TEST_P(SolveColumnsTest, AgreeWithReference) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    Runner reference(reference_backend());
    for (const std::int64_t n : {65, 130, 511}) {
      const auto l = factor_of<T>(n, 1);
      for (const std::uint32_t variant : kColumnVariants) {
        for (const std::int64_t cols : {1, 2, 7, 32, 33}) {
          auto here = Matrix<T>(n, cols, 0, [](auto i, auto j) { return uniform(3, i, j); });
          auto there = here;
          runner.run(trsm, here, {l}, variant);
          reference.run(trsm, there, {l}, variant);
          for (std::int64_t j = 0; j < cols; ++j) {
            expect_near_solutions(l, variant == kTransposeL, [&](std::int64_t i) {
              return std::pair<double, double>(here(i, j), there(i, j));
            });
          }
        }
      }
    }
  });
}

TEST_P(SolveColumnsTest, NothingToSolve) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : kColumnVariants) {
      const auto l = factor_of<T>(5, 2);
      Matrix<T> none(5, 0);
      runner.run(trsm, none, {l}, variant);
      Matrix<T> low(0, 3, 1);
      runner.run(trsm, low, {Matrix<T>(0, 0, 1)}, variant);
      EXPECT_TRUE(same_bits(low, Matrix<T>(0, 3, 1)));
    }
  });
}

/// Columns first … first + cols of x.
template <class T>
Matrix<T> columns_of(const Matrix<T>& x, std::int64_t first, std::int64_t cols) {
  return Matrix<T>(x.rows, cols, 1, [&](auto i, auto j) { return x(i, first + j); });
}

TEST_P(SolveColumnsOnGpuTest, BitsOfAColumnAreItsOwn) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {65, 777}) {
      const auto l = factor_of<T>(n, 1);
      for (const std::uint32_t variant : kColumnVariants) {
        const Matrix<T> b(n, 64, 0, [](auto i, auto j) { return uniform(3, i, j); });
        auto all = b;
        runner.run(trsm, all, {l}, variant);
        for (int again = 0; again < 3; ++again) {
          auto x = b;
          runner.run(trsm, x, {l}, variant, again);
          EXPECT_TRUE(same_bits(x, all)) << "run " << again;
        }
        for (const std::int64_t cols : {1, 2, 3, 4, 5, 8, 9, 33}) {
          for (const std::int64_t first : {0, 13, 31}) {
            auto some = columns_of(b, first, cols);
            runner.run(trsm, some, {l}, variant);
            EXPECT_TRUE(same_bits(some, columns_of(all, first, cols)))
                << "variant " << variant << ": " << n << ", " << cols << " from " << first;
          }
        }
      }
    }
  });
}

TEST_P(SolveColumnsOnGpuTest, PivotsWithoutAReciprocal) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    // A tiny row of op(L) is one of B too, and changes nothing in X; its pivot has no reciprocal.
    const int tiny = sizeof(T) == 8 ? -1060 : -140;
    const std::int64_t n = 130;
    for (const std::uint32_t variant : kColumnVariants) {
      for (const std::int64_t row : {0, 40, 100, 129}) {
        const auto scaled = [&](std::int64_t i, double value) {
          return i == row ? std::ldexp(value, tiny) : value;
        };
        const auto l = lower_only(Matrix<T>(n, n, 0, [&](auto i, auto j) {
          return scaled(variant == kTransposeL ? j : i, exact_factor(i, j));
        }));
        const auto x = integers<T>(n, 5);
        const auto product = exact_product(variant, x);
        Matrix<T> b(n, 5, 3, [&](auto i, auto j) { return scaled(i, product(i, j)); });
        runner.run(trsm, b, {l}, variant);
        EXPECT_TRUE(same_values(b, x)) << "variant " << variant << ", row " << row;
      }
    }
  });
}

TEST_P(SolveColumnsOnGpuTest, EveryNaNReachesItsColumnAlone) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    const std::int64_t n = 200;
    const auto l = lower_only(Matrix<T>(n, n, 0, exact_factor));
    for (const std::uint32_t variant : kColumnVariants) {
      const auto x = integers<T>(n, 6);
      auto b = exact_product(variant, x);
      b(70, 3) = std::bit_cast<T>(~Bits{0});  // what a message that was not sent looks like
      runner.run(trsm, b, {l}, variant);
      for (std::int64_t j = 0; j < 6; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
          const bool behind = variant == kTransposeL ? i <= 70 : i >= 70;
          if (j == 3 && behind) {
            EXPECT_TRUE(std::isnan(b(i, j))) << i;
          } else {
            EXPECT_EQ(b(i, j), x(i, j)) << i << ", " << j;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace strata::testing
