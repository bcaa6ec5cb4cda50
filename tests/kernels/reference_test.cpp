// Reference kernels on data that can be checked by hand.

#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

/// From rows as they are read.
Matrix<double> rows(std::vector<std::vector<double>> values) {
  return {static_cast<std::int64_t>(values.size()), static_cast<std::int64_t>(values[0].size()), 0,
          [&](auto i, auto j) {
            return values[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
          }};
}

const Matrix<double>& factor() {  // of [4 2 6; 2 10 9; 6 9 14.25]
  static const Matrix<double> l = rows({{2, 0, 0}, {1, 3, 0}, {3, 2, 1.25}});
  return l;
}

class ReferenceTest : public ::testing::Test {
 protected:
  Runner runner{reference_backend()};
};

TEST_F(ReferenceTest, Potrf) {
  auto a = rows({{4, -7, -7}, {2, 10, -7}, {6, 9, 14.5625}});
  const PivotStatus status = runner.factor(a);
  EXPECT_EQ(status.bad_column, -1);
  EXPECT_DOUBLE_EQ(status.log_determinant, 2 * std::log(2 * 3 * 1.25));
  EXPECT_TRUE(same_values(a, rows({{2, -7, -7}, {1, 3, -7}, {3, 2, 1.25}})));
}

TEST_F(ReferenceTest, PotrfOfMinOfOrderFive) {
  auto a = Matrix<double>(5, 5, 0, [](auto i, auto j) { return std::min(i, j) + 1; });
  EXPECT_EQ(runner.factor(a).log_determinant, 0);
  for (std::int64_t j = 0; j < 5; ++j) {
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(a(i, j), i < j ? i + 1 : 1) << i << "," << j;
  }
}

TEST_F(ReferenceTest, PotrfOfAnIndefiniteMatrix) {
  auto a = rows({{4, 0, 0}, {2, 10, 0}, {6, 9, 12}});  // third pivot 12 − 9 − 4 = −1
  const PivotStatus status = runner.factor(a);
  EXPECT_EQ(status.bad_column, 2);
  EXPECT_EQ(status.bad_pivot, -1);
}

TEST_F(ReferenceTest, TrsmOnTheRightWithTheTranspose) {
  // [1 2 3]·Lᵀ = [2, 1 + 6, 3 + 4 + 3.75]
  auto a = rows({{2, 7, 10.75}, {4, 2, 6}});
  runner.run(trsm, a, {factor()}, kRightSide | kTransposeL);
  EXPECT_TRUE(same_values(a, rows({{1, 2, 3}, {2, 0, 0}})));
}

TEST_F(ReferenceTest, TrsmOnTheRight) {
  // [1 2 3]·L = [2 + 2 + 9, 6 + 6, 3.75]
  auto a = rows({{13, 12, 3.75}, {4, 0, 0}});
  runner.run(trsm, a, {factor()}, kRightSide);
  EXPECT_TRUE(same_values(a, rows({{1, 2, 3}, {2, 0, 0}})));
}

TEST_F(ReferenceTest, Syrk) {
  auto c = rows({{10, -7}, {10, 100}});
  runner.run(syrk, c, {rows({{1, 2}, {3, 4}})});
  EXPECT_TRUE(same_values(c, rows({{5, -7}, {-1, 75}})));
}

TEST_F(ReferenceTest, TrsmOnTheLeft) {
  auto x = rows({{2}, {7}, {10.75}});  // L·[1 2 3]ᵀ
  runner.run(trsm, x, {factor()});
  EXPECT_TRUE(same_values(x, rows({{1}, {2}, {3}})));
}

TEST_F(ReferenceTest, TrsmOnTheLeftWithTheTranspose) {
  auto x = rows({{2 + 2 + 9}, {6 + 6}, {3.75}});  // Lᵀ·[1 2 3]ᵀ
  runner.run(trsm, x, {factor()}, kTransposeL);
  EXPECT_TRUE(same_values(x, rows({{1}, {2}, {3}})));
}

// [1 2 3; 4 5 6]·[1 4; 0 5; 1 6] = [4 32; 10 77], subtracted from [10 20; 30 40].
TEST_F(ReferenceTest, GemmInEveryTransposition) {
  const auto a = rows({{1, 2, 3}, {4, 5, 6}});
  const auto a_transposed = rows({{1, 4}, {2, 5}, {3, 6}});
  const auto b = rows({{1, 4}, {0, 5}, {1, 6}});
  const auto b_transposed = rows({{1, 0, 1}, {4, 5, 6}});
  const auto expected = rows({{6, -12}, {20, -37}});
  for (const std::uint32_t variant : {0U, kTransposeA, kTransposeB, kTransposeA | kTransposeB}) {
    auto c = rows({{10, 20}, {30, 40}});
    runner.run(gemm, c,
               {(variant & kTransposeA) != 0 ? a_transposed : a,
                (variant & kTransposeB) != 0 ? b_transposed : b},
               variant);
    EXPECT_TRUE(same_values(c, expected)) << variant;
  }
}

TEST_F(ReferenceTest, GemmOfARowWithRows) {
  auto c = rows({{0, 100}});
  runner.run(gemm, c, {rows({{1, 2, 3}}), rows({{1, 1, 1}, {0, 5, 10}})}, kTransposeB);
  EXPECT_TRUE(same_values(c, rows({{-6, 60}})));
}

TEST_F(ReferenceTest, GemmOfAColumn) {
  auto x = rows({{10}, {20}});
  runner.run(gemm, x, {rows({{1, 2, 3}, {4, 5, 6}}), rows({{1}, {0}, {1}})});
  EXPECT_TRUE(same_values(x, rows({{6}, {10}})));
  auto y = rows({{10}, {20}, {30}});
  runner.run(gemm, y, {rows({{1, 2, 3}, {4, 5, 6}}), rows({{1}, {2}})}, kTransposeA);
  EXPECT_TRUE(same_values(y, rows({{1}, {8}, {15}})));
}

TEST_F(ReferenceTest, TwoCallsOfOneTask) {
  std::vector<Operands<double>> calls{{rows({{10}}), rows({{2}}), rows({{3}})},
                                      {rows({{5, 6}}), rows({{1}}), rows({{2, 3}})}};
  runner.run_all(gemm, calls);
  EXPECT_TRUE(same_values(calls[0][0], rows({{4}})));
  EXPECT_TRUE(same_values(calls[1][0], rows({{3, 3}})));
}

}  // namespace
}  // namespace strata::testing
