// potrf of every backend: exact factors, backward error, and the exact column and value of a bad
// pivot.

#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class PotrfTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, PotrfTest, ::testing::ValuesIn(every_backend()), name_of);

/// Smooth and well conditioned: exp(−|i − j| / 10), a little more on the diagonal.
double smooth(std::int64_t i, std::int64_t j) {
  return std::exp(-0.1 * static_cast<double>(std::abs(i - j))) + (i == j ? 0.1 : 0.0);
}

TEST_P(PotrfTest, FactorOfMinIsAllOnes) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      auto a = lower_only(Matrix<T>(n, n, 0, [](auto i, auto j) { return std::min(i, j) + 1; }));
      const auto ones = lower_only(Matrix<T>(n, n, 0, [](auto, auto) { return 1; }));
      const PivotStatus status = runner.factor(a);
      EXPECT_TRUE(same_values(a, ones)) << n;
      EXPECT_EQ(status.bad_column, -1) << n;
      EXPECT_EQ(status.log_determinant, 0) << n;
    }
  });
}

TEST_P(PotrfTest, PowersOfTwoAreExactAndThePaddingStays) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      auto a = lower_only(Matrix<T>(n, n, 3, exact_spd));
      const auto factor = lower_only(Matrix<T>(n, n, 3, exact_factor));
      const PivotStatus status = runner.factor(a);
      EXPECT_TRUE(same_values(a, factor)) << n;
      double log_determinant = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        log_determinant += 2 * static_cast<double>(j % 3) * std::log(2.0);
      }
      EXPECT_EQ(status.bad_column, -1) << n;
      EXPECT_NEAR(status.log_determinant, log_determinant, 1e-13 * log_determinant) << n;
    }
  });
}

TEST_P(PotrfTest, ReproducesTheMatrix) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      const auto before = lower_only(Matrix<T>(n, n, 0, smooth));
      auto l = before;
      ASSERT_EQ(runner.factor(l).bad_column, -1);
      // |A − L·Lᵀ| ≤ (n + 1)·eps·|L|·|Lᵀ| element by element (Higham, "Accuracy and Stability",
      // theorem 10.3, where eps is half of this one).
      const double eps = std::numeric_limits<T>::epsilon();
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = j; i < n; ++i) {
          double sum = 0;
          double size = 0;
          for (std::int64_t k = 0; k <= j; ++k) {
            const double term = static_cast<double>(l(i, k)) * static_cast<double>(l(j, k));
            sum += term;
            size += std::abs(term);
          }
          const double error = std::abs(static_cast<double>(before(i, j)) - sum);
          ASSERT_LE(error, static_cast<double>(n + 1) * eps * size) << n << ": " << i << "," << j;
        }
      }
    }
  });
}

TEST_P(PotrfTest, NamesEveryBadColumnAndItsPivot) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {7, 130}) {
      for (std::int64_t bad = 0; bad < n; ++bad) {
        for (const double pivot : {0.0, -0.75}) {
          auto a =
              lower_only(Matrix<T>(n, n, 0, [](auto i, auto j) { return std::min(i, j) + 1; }));
          a(bad, bad) -= static_cast<T>(1 - pivot);  // its pivot was 1
          const PivotStatus status = runner.factor(a);
          ASSERT_EQ(status.bad_column, bad) << n;
          ASSERT_EQ(status.bad_pivot, pivot) << n << ": " << bad;
        }
      }
    }
  });
}

TEST_P(PotrfTest, ABadPivotIsRightWithinRounding) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    constexpr std::int64_t n = 130;
    auto l = Matrix<double>(n, n, 0, smooth);
    Runner reference(reference_backend());
    ASSERT_EQ(reference.factor(l).bad_column, -1);
    for (const std::int64_t bad : {0, 1, 15, 16, 62, 63, 64, 65, 127, 128, 129}) {
      auto a = lower_only(Matrix<T>(n, n, 0, smooth));
      a(bad, bad) -= static_cast<T>(l(bad, bad) * l(bad, bad) + 0.25);
      const PivotStatus status = runner.factor(a);
      ASSERT_EQ(status.bad_column, bad);
      EXPECT_NEAR(status.bad_pivot, -0.25, n * std::numeric_limits<T>::epsilon()) << bad;
    }
  });
}

TEST_P(PotrfTest, TheFirstOfSeveralBadColumnsIsNamed) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    const std::vector<std::vector<std::int64_t>> cases{{3, 4, 5}, {0, 129},  {20, 70},
                                                       {63, 64},  {64, 128}, {100, 101, 129}};
    for (const auto& bad : cases) {
      auto a =
          lower_only(Matrix<T>(130, 130, 0, [](auto i, auto j) { return std::min(i, j) + 1; }));
      for (const std::int64_t k : bad) a(k, k) = -5;
      const PivotStatus status = runner.factor(a);
      ASSERT_EQ(status.bad_column, bad[0]);
      EXPECT_EQ(status.bad_pivot, -5 - static_cast<double>(bad[0]));
    }
  });
}

TEST_P(PotrfTest, ANanOnTheDiagonalIsNamed) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {7, 130}) {
      for (std::int64_t bad = 0; bad < n; ++bad) {
        auto a = lower_only(Matrix<T>(n, n, 0, smooth));
        a(bad, bad) = std::numeric_limits<T>::quiet_NaN();
        const PivotStatus status = runner.factor(a);
        ASSERT_EQ(status.bad_column, bad) << n;
        ASSERT_TRUE(std::isnan(status.bad_pivot)) << n << ": " << bad;
      }
    }
  });
}

TEST_P(PotrfTest, ANanBelowTheDiagonalIsNamedByItsRow) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {7, 130}) {
      for (std::int64_t row = 1; row < n; ++row) {
        auto a = lower_only(Matrix<T>(n, n, 0, smooth));
        a(row, row * 7 % row) = std::numeric_limits<T>::quiet_NaN();
        a(row, row / 2) = std::numeric_limits<T>::quiet_NaN();
        const PivotStatus status = runner.factor(a);
        ASSERT_EQ(status.bad_column, row) << n;
        ASSERT_TRUE(std::isnan(status.bad_pivot)) << n << ": " << row;
      }
    }
  });
}

TEST_P(PotrfTest, AnInfinitePivotIsBad) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t bad : {0, 5, 63, 64, 129}) {
      auto a = lower_only(Matrix<T>(130, 130, 0, smooth));
      a(bad, bad) = std::numeric_limits<T>::infinity();
      const PivotStatus status = runner.factor(a);
      ASSERT_EQ(status.bad_column, bad);
      EXPECT_EQ(status.bad_pivot, std::numeric_limits<double>::infinity());
    }
  });
}

TEST_P(PotrfTest, AFailureLeavesTheUpperTriangleAndThePadding) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    auto a = Matrix<T>(130, 130, 2, [](auto i, auto j) { return i < j ? -777 : smooth(i, j); });
    a(70, 70) = -1;
    ASSERT_EQ(runner.factor(a).bad_column, 70);
    for (std::int64_t j = 0; j < 130; ++j) {
      for (std::int64_t i = 0; i < j; ++i) ASSERT_EQ(a(i, j), -777) << i << "," << j;
      ASSERT_TRUE(std::isnan(a(130, j)) && std::isnan(a(131, j))) << j;
    }
  });
}

TEST_P(PotrfTest, GivesTheSameBitsWhereverTheBlockLies) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    auto first = Matrix<T>(130, 130, 0, smooth);
    auto second = first;
    const PivotStatus once = runner.factor(first, nullptr, 0);
    const PivotStatus twice = runner.factor(second, nullptr, 1);
    EXPECT_TRUE(same_bits(first, second));
    EXPECT_EQ(once.log_determinant, twice.log_determinant);
  });
}

// On a GPU the small blocks of a task go together: those of two kernels, in more than one launch.
TEST_P(PotrfTest, ManyCallsGiveTheBitsAndStatusesOfEachAlone) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> blocks;
    for (std::int64_t b = 0; b < 230; ++b) {
      const std::int64_t n = b % 50 == 49 ? 130 : 1 + b * 37 % 64;
      blocks.push_back(lower_only(Matrix<T>(n, n, b % 3, smooth)));
      if (b % 7 == 3) blocks.back()(n / 2, n / 2) = T(-1) - static_cast<T>(b);
    }
    auto alone = blocks;
    const std::vector<PivotStatus> statuses = runner.factor_all(blocks);
    ASSERT_EQ(statuses.size(), blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const PivotStatus status = runner.factor(alone[b]);
      EXPECT_TRUE(same_bits(blocks[b], alone[b])) << b;
      EXPECT_EQ(statuses[b].bad_column, status.bad_column) << b;
      EXPECT_EQ(statuses[b].bad_pivot, status.bad_pivot) << b;
      EXPECT_EQ(statuses[b].log_determinant, status.log_determinant) << b;
      const auto bad = static_cast<double>(blocks[b].rows / 2);
      EXPECT_EQ(status.bad_column, b % 7 == 3 ? bad : -1.0) << b;
    }
  });
}

TEST_P(PotrfTest, NoCallsAtAll) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> blocks;
    EXPECT_TRUE(runner.factor_all(blocks).empty());
  });
}

}  // namespace
}  // namespace strata::testing
