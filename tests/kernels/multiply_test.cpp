// trmm of every backend: exact integers, and real numbers against the reference.

#include "kernels/dense/trmm.hpp"
#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class MultiplyTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, MultiplyTest, ::testing::ValuesIn(every_backend()), name_of);

class MultiplyAgainstReferenceTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Tested, MultiplyAgainstReferenceTest,
                         ::testing::ValuesIn(tested_backends()), name_of);

constexpr std::int64_t kColumns[] = {1, 2, 17, 65, 130};

template <class T>
Matrix<T> real_factor(std::int64_t n) {
  return lower_only(Matrix<T>(n, n, 1, [](auto i, auto j) { return uniform(4, i, j); }));
}

TEST_P(MultiplyTest, IsExactOnIntegersAndReadsTheLowerTriangleOnly) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t cols : kColumns) {
        const auto l =
            lower_only(Matrix<T>(n, n, 1, [](auto i, auto j) { return small_integer(2, i, j); }));
        Matrix<T> x(n, cols, 2, [](auto i, auto j) { return small_integer(1, i, j); });
        const Matrix<T> expected(n, cols, 2, [&](auto i, auto j) {
          double sum = 0;
          for (std::int64_t k = 0; k <= i; ++k)
            sum -= static_cast<double>(l(i, k)) * static_cast<double>(x(k, j));
          return sum;
        });
        const Matrix<T> transposed(n, cols, 2, [&](auto i, auto j) {
          double sum = 0;
          for (std::int64_t k = i; k < n; ++k)
            sum -= static_cast<double>(l(k, i)) * static_cast<double>(x(k, j));
          return sum;
        });
        Matrix<T> of_transpose = x;
        runner.run(trmm, x, {l});
        EXPECT_TRUE(same_values(x, expected)) << n << ", " << cols;
        runner.run(trmm, of_transpose, {l}, kTransposeL);
        EXPECT_TRUE(same_values(of_transpose, transposed)) << n << ", " << cols;
      }
    }
  });
}

TEST_P(MultiplyAgainstReferenceTest, RealNumbersAgree) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    Runner reference(reference_backend());
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t cols : {std::int64_t{3}, n}) {
        const auto l = real_factor<T>(n);
        Matrix<T> here(n, cols, 2, [](auto i, auto j) { return uniform(3, i, j); });
        Matrix<T> there = here;
        const std::uint32_t variant = cols == 3 ? 0 : kTransposeL;
        runner.run(trmm, here, {l}, variant);
        reference.run(trmm, there, {l}, variant);
        // Two sums of at most n products below 1, each rounded n times.
        const double bound = static_cast<double>(2 * n) * static_cast<double>(n) *
                             std::numeric_limits<T>::epsilon() / 2;
        for (std::int64_t j = 0; j < cols; ++j) {
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_NEAR(here(i, j), there(i, j), bound) << n << ", " << cols;
        }
      }
    }
  });
}

TEST_P(MultiplyTest, ManyCallsGiveTheBitsOfEachAlone) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    std::vector<Operands<T>> calls;
    for (const std::int64_t n : kSizes) {
      calls.push_back(
          {Matrix<T>(n, 1 + n * 7 % 100, 2, [](auto i, auto j) { return uniform(3, i, j); }),
           real_factor<T>(n)});
    }
    const auto before = calls;
    runner.run_all(trmm, calls);
    for (std::size_t c = 0; c < calls.size(); ++c) {
      auto x = before[c][0];
      runner.run(trmm, x, {before[c][1]});
      EXPECT_TRUE(same_bits(calls[c][0], x)) << "call " << c;
    }
  });
}

TEST_P(MultiplyTest, HasNoOtherVariants) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    auto x = Matrix<T>(2, 2, 0, [](auto, auto) { return 1; });
    EXPECT_THROW(runner.run(trmm, x, {x}, 2), Error);
  });
}

TEST(MultiplyReference, ByHand) {
  Runner runner(reference_backend());
  const Matrix<double> l(2, 2, 0, [](auto i, auto j) { return i == 0 ? 2.0 : 3.0 + double(j); });
  Matrix<double> x(2, 1, 0, [](auto i, auto) { return 5.0 - 6.0 * double(i); });  // [5; −1]
  runner.run(trmm, x, {l});  // −[2·5; 3·5 − 4]
  EXPECT_EQ(x(0, 0), -10);
  EXPECT_EQ(x(1, 0), -11);
  runner.run(trmm, x, {l}, kTransposeL);  // −[2·(−10) + 3·(−11); 4·(−11)]
  EXPECT_EQ(x(0, 0), 53);
  EXPECT_EQ(x(1, 0), 44);
}

}  // namespace
}  // namespace strata::testing
