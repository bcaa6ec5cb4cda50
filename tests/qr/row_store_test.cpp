// RowStore: rows of a column are moved as columns are, and a matrix that is only read says so.

#include "qr/row_store.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "strata/error.hpp"
#include "tests/qr/tall_matrices.hpp"

namespace strata::test {
namespace {

TEST(RowStore, MovesRowsOfAColumnAsItMovesColumns) {
  const RowProblem problem{.m = 1000, .n = 7};
  const BlockTable blocks = row_pass(problem).blocks;
  const BlockId id(rows::kMatrix, 0, 0);
  const std::int64_t height = blocks.extent(id).rows;
  const std::vector<std::shared_ptr<FamilyMemory>> none(
      static_cast<std::size_t>(rows::kMaxima + 1));
  const Tall v = random_tall(1000, 7, 3);
  Tall w = random_tall(1000, 7, 4);
  RowStore<double> source(blocks, {.from = {.view = v.view()}}, none);
  RowStore<double> target(blocks, {.from = {.view = w.view()}, .to = w.view()}, none);
  ASSERT_TRUE(source.divides_columns(id));
  EXPECT_TRUE(source.is_constant(id));
  EXPECT_FALSE(target.is_constant(id));
  for (std::int64_t j = 0; j < 7; ++j) {
    for (const auto& [first, count] : {std::pair{std::int64_t{0}, std::int64_t{1}},
                                       {std::int64_t{1}, height - 9},
                                       {height - 8, std::int64_t{8}}}) {
      std::vector<double> part(static_cast<std::size_t>(count));
      source.read_rows(id, j, first, count, reinterpret_cast<std::byte*>(part.data()));
      target.write_rows(id, j, first, count, reinterpret_cast<const std::byte*>(part.data()));
    }
    for (std::int64_t i = 0; i < height; ++i) ASSERT_EQ(w.view()(i, j), v.view()(i, j)) << i;
  }
  EXPECT_THROW(source.write_rows(id, 0, 0, 1, nullptr), Error);
}

}  // namespace
}  // namespace strata::test
