// trsm of every backend, from both sides and with both forms of the factor: exact integers, and
// real numbers against the reference.

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class SolveTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, SolveTest, ::testing::ValuesIn(every_backend()), name_of);

class SolveAgainstReferenceTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Tested, SolveAgainstReferenceTest, ::testing::ValuesIn(tested_backends()),
                         name_of);

constexpr std::uint32_t kSolveVariants[] = {0, kTransposeL, kRightSide, kRightSide | kTransposeL};

/// The other extent of X, for a factor of each order.
constexpr std::int64_t kOthers[] = {1, 2, 17, 65, 130};

bool on_the_right(std::uint32_t variant) { return (variant & kRightSide) != 0; }

/// X, with the given value: n is the order of the factor, r the other extent.
template <class T, class F>
Matrix<T> solution(std::uint32_t variant, std::int64_t n, std::int64_t r, F value) {
  return on_the_right(variant) ? Matrix<T>(r, n, 2, value) : Matrix<T>(n, r, 2, value);
}

/// op(L)·X, or X·op(L), for the exact factor.
template <class T>
Matrix<T> product(std::uint32_t variant, const Matrix<T>& x) {
  const std::int64_t n = on_the_right(variant) ? x.cols : x.rows;
  const auto l = [&](std::int64_t i, std::int64_t k) {  // of op(L)
    return (variant & kTransposeL) != 0 ? exact_factor(k, i) : exact_factor(i, k);
  };
  return Matrix<T>(x.rows, x.cols, 2, [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      sum += on_the_right(variant) ? static_cast<double>(x(i, k)) * l(k, j)
                                   : l(i, k) * static_cast<double>(x(k, j));
    }
    return sum;
  });
}

TEST_P(SolveTest, UndoesAProduct) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : kSolveVariants) {
      for (const std::int64_t n : kSizes) {
        for (const std::int64_t r : kOthers) {
          const auto l = lower_only(Matrix<T>(n, n, 1, exact_factor));
          const auto x =
              solution<T>(variant, n, r, [](auto i, auto j) { return small_integer(1, i, j); });
          auto b = product(variant, x);
          runner.run(trsm, b, {l}, variant);
          EXPECT_TRUE(same_values(b, x)) << "variant " << variant << ": " << n << ", " << r;
        }
      }
    }
  });
}

/// Rows and columns sum to less than the diagonal, so that substitution does not let errors grow.
template <class T>
Matrix<T> dominant_factor(std::int64_t n) {
  return lower_only(Matrix<T>(n, n, 0, [n](auto i, auto j) {
    return i == j ? 2 + 0.5 * uniform(4, i, j) : uniform(4, i, j) / static_cast<double>(n);
  }));
}

TEST_P(SolveAgainstReferenceTest, RealNumbersAgree) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    Runner reference(reference_backend());
    for (const std::uint32_t variant : kSolveVariants) {
      for (const std::int64_t n : kSizes) {
        for (const std::int64_t r : {std::int64_t{3}, n, std::int64_t{130}}) {
          const auto l = dominant_factor<T>(n);
          auto here = solution<T>(variant, n, r, [](auto i, auto j) { return uniform(3, i, j); });
          auto there = here;
          runner.run(trsm, here, {l}, variant);
          reference.run(trsm, there, {l}, variant);
          // X·op(L) = B is op(L)ᵀ·Xᵀ = Bᵀ.
          const bool right = on_the_right(variant);
          const bool transposed = ((variant & kTransposeL) != 0) != right;
          for (std::int64_t other = 0; other < (right ? here.rows : here.cols); ++other) {
            expect_near_solutions(l, transposed, [&](std::int64_t i) {
              return right ? std::pair<double, double>(here(other, i), there(other, i))
                           : std::pair<double, double>(here(i, other), there(i, other));
            });
          }
        }
      }
    }
  });
}

TEST_P(SolveTest, ManyCallsGiveTheBitsOfEachAlone) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : kSolveVariants) {
      std::vector<Operands<T>> calls;
      for (const std::int64_t n : kSizes) {
        const std::int64_t r = 1 + n * 7 % 100;
        calls.push_back(
            {solution<T>(variant, n, r, [](auto i, auto j) { return uniform(3, i, j); }),
             dominant_factor<T>(n)});
      }
      const auto before = calls;
      runner.run_all(trsm, calls, variant);
      for (std::size_t c = 0; c < calls.size(); ++c) {
        auto x = before[c][0];
        runner.run(trsm, x, {before[c][1]}, variant);
        EXPECT_TRUE(same_bits(calls[c][0], x)) << "variant " << variant << ", call " << c;
      }
    }
  });
}

TEST_P(SolveTest, RefusesAVariantThatDoesNotExist) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    auto x = Matrix<T>(2, 2, 0, [](auto, auto) { return 1; });
    try {
      runner.run(trsm, x, {x}, 4);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_EQ(error.where(), "trsm");
      EXPECT_NE(std::string(error.what()).find("variant 4"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace strata::testing
