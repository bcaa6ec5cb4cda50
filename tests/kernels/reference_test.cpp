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
  const PivotStatus status = runner.run(Operation::potrf, a);
  EXPECT_EQ(status.bad_column, -1);
  EXPECT_DOUBLE_EQ(status.log_determinant, 2 * std::log(2 * 3 * 1.25));
  EXPECT_TRUE(same_values(a, rows({{2, -7, -7}, {1, 3, -7}, {3, 2, 1.25}})));
}

TEST_F(ReferenceTest, PotrfOfMinOfOrderFive) {
  auto a = Matrix<double>(5, 5, 0, [](auto i, auto j) { return std::min(i, j) + 1; });
  EXPECT_EQ(runner.run(Operation::potrf, a).log_determinant, 0);
  for (std::int64_t j = 0; j < 5; ++j) {
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(a(i, j), i < j ? i + 1 : 1) << i << "," << j;
  }
}

TEST_F(ReferenceTest, PotrfOfAnIndefiniteMatrix) {
  auto a = rows({{4, 0, 0}, {2, 10, 0}, {6, 9, 12}});  // third pivot 12 − 9 − 4 = −1
  const PivotStatus status = runner.run(Operation::potrf, a);
  EXPECT_EQ(status.bad_column, 2);
  EXPECT_EQ(status.bad_pivot, -1);
}

TEST_F(ReferenceTest, Trsm) {
  // [1 2 3]·Lᵀ = [2, 1 + 6, 3 + 4 + 3.75]
  auto a = rows({{2, 7, 10.75}, {4, 2, 6}});
  runner.run(Operation::trsm, a, {factor()});
  EXPECT_TRUE(same_values(a, rows({{1, 2, 3}, {2, 0, 0}})));
}

TEST_F(ReferenceTest, Syrk) {
  auto c = rows({{10, -7}, {10, 100}});
  runner.run(Operation::syrk, c, {rows({{1, 2}, {3, 4}})});
  EXPECT_TRUE(same_values(c, rows({{5, -7}, {-1, 75}})));
}

TEST_F(ReferenceTest, Gemm) {
  auto c = rows({{0, 100}});
  runner.run(Operation::gemm, c, {rows({{1, 2, 3}}), rows({{1, 1, 1}, {0, 5, 10}})});
  EXPECT_TRUE(same_values(c, rows({{-6, 60}})));
}

TEST_F(ReferenceTest, TrsmLeft) {
  auto x = rows({{2}, {7}, {10.75}});  // L·[1 2 3]ᵀ
  runner.run(Operation::trsm_left, x, {factor()});
  EXPECT_TRUE(same_values(x, rows({{1}, {2}, {3}})));
}

TEST_F(ReferenceTest, TrsmLeftTransposed) {
  auto x = rows({{2 + 2 + 9}, {6 + 6}, {3.75}});  // Lᵀ·[1 2 3]ᵀ
  runner.run(Operation::trsm_left_transposed, x, {factor()});
  EXPECT_TRUE(same_values(x, rows({{1}, {2}, {3}})));
}

TEST_F(ReferenceTest, GemmLeft) {
  auto x = rows({{10}, {20}});
  runner.run(Operation::gemm_left, x, {rows({{1, 2, 3}, {4, 5, 6}}), rows({{1}, {0}, {1}})});
  EXPECT_TRUE(same_values(x, rows({{6}, {10}})));
}

TEST_F(ReferenceTest, GemmLeftTransposed) {
  auto x = rows({{10}, {20}, {30}});
  runner.run(Operation::gemm_left_transposed, x, {rows({{1, 2, 3}, {4, 5, 6}}), rows({{1}, {2}})});
  EXPECT_TRUE(same_values(x, rows({{1}, {8}, {15}})));
}

}  // namespace
}  // namespace strata::testing
