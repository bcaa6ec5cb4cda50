// BlockTable against counting one block after another, and its arithmetic where nothing fits.

#include "matrix/block_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "strata/error.hpp"

namespace strata {
namespace {

BlockFamily family_of(std::int64_t rows, std::int64_t cols, std::int64_t tile_rows,
                      std::int64_t tile_cols, Shape shape = Shape::rectangle,
                      Precision precision = Precision::fp64) {
  return {.name = "A",
          .rows = rows,
          .cols = cols,
          .tile_rows = tile_rows,
          .tile_cols = tile_cols,
          .shape = shape,
          .precision = precision};
}

/// The blocks of a family by walking over it: what every other answer is compared with.
struct Expected {
  BlockId id;
  BlockExtent extent;
};
std::vector<Expected> walk(int number, const BlockFamily& f) {
  std::vector<Expected> blocks;
  std::int64_t block_col = 0;
  for (std::int64_t col = 0; col < f.cols; col += f.tile_cols, ++block_col) {
    std::int64_t block_row = 0;
    for (std::int64_t row = 0; row < f.rows; row += f.tile_rows, ++block_row) {
      if (f.shape == Shape::lower && row < col) continue;
      BlockExtent x{row, col, 0, 0};
      while (x.rows < f.tile_rows && row + x.rows < f.rows) ++x.rows;
      while (x.cols < f.tile_cols && col + x.cols < f.cols) ++x.cols;
      blocks.push_back({BlockId(number, block_row, block_col), x});
    }
  }
  return blocks;
}

void expect_family(const BlockTable& table, int number, std::int64_t& next_index) {
  const BlockFamily& f = table.family(number);
  const std::vector<Expected> blocks = walk(number, f);
  std::int64_t offset = 0;
  std::int64_t largest = 0;
  for (const Expected& expected : blocks) {
    const BlockId id = expected.id;
    ASSERT_TRUE(table.contains(id)) << table.name(id);
    const BlockExtent x = table.extent(id);
    EXPECT_EQ(x.row, expected.extent.row);
    EXPECT_EQ(x.col, expected.extent.col);
    EXPECT_EQ(x.rows, expected.extent.rows);
    EXPECT_EQ(x.cols, expected.extent.cols);
    const std::int64_t bytes = expected.extent.rows * expected.extent.cols * bytes_of(f.precision);
    EXPECT_EQ(table.bytes(id), bytes);
    EXPECT_EQ(table.index(id), next_index) << table.name(id);
    EXPECT_EQ(table.byte_offset(id), offset) << table.name(id);
    ++next_index;
    offset += bytes;
    largest = std::max(largest, bytes);
  }
  EXPECT_EQ(table.count(number), std::ssize(blocks));
  EXPECT_EQ(table.total_bytes(number), offset);
  EXPECT_EQ(table.capacity_bytes(number), largest);
  std::int64_t inside = 0;
  for (std::int64_t r = 0; r < table.block_rows(number) + 2; ++r) {
    for (std::int64_t c = 0; c < table.block_cols(number) + 2; ++c) {
      inside += table.contains({number, r, c}) ? 1 : 0;
    }
  }
  EXPECT_EQ(inside, std::ssize(blocks));
}

TEST(BlockTable, AgreesWithWalkingOverTheBlocks) {
  for (const std::int64_t tile : {1, 2, 5, 8}) {
    for (const std::int64_t n :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::max<std::int64_t>(tile - 1, 0),
          tile, tile + 1, 2 * tile, 3 * tile + 7, 4 * tile + 1}) {
      BlockTable table;
      table.add(family_of(n, n, tile, tile, Shape::lower, Precision::fp32));
      table.add(family_of(n, 3, tile, 2));
      table.add(family_of(n, n, tile, tile));
      table.add(family_of(2 * n + 1, n, tile, 3, Shape::rectangle, Precision::fp8));
      table.add(family_of(n, n, tile, tile, Shape::lower, Precision::dd));
      table.add(family_of(n, 0, tile, 1));
      std::int64_t next = 0;
      for (int f = 0; f < table.families(); ++f) {
        SCOPED_TRACE(::testing::Message() << "n " << n << " tile " << tile << " family " << f);
        expect_family(table, f, next);
      }
      EXPECT_EQ(table.count(), next);  // so the indices are 0 … count − 1, each once
      EXPECT_FALSE(table.contains({table.families(), 0, 0}));
      EXPECT_FALSE(table.contains(BlockId()));
    }
  }
}

TEST(BlockTable, AddressesPast46341AndPast2To31Elements) {
  BlockTable table;
  constexpr std::int64_t kN = 1'000'003;
  constexpr std::int64_t kTile = 1'024;
  table.add(family_of(kN, kN, kTile, kTile, Shape::lower));
  table.add(family_of(kN, kN, kTile, kTile));
  const std::int64_t tiles = table.block_rows(0);
  EXPECT_EQ(tiles, 977);
  EXPECT_EQ(table.count(0), 977 * 978 / 2);
  // Diagonal tiles are whole: Σ over block columns of the column's height times its width.
  std::int64_t elements = 0;
  for (std::int64_t c = 0; c < tiles; ++c) {
    const std::int64_t width = std::min(kTile, kN - c * kTile);
    const BlockId top(0, c, c);
    ASSERT_EQ(table.byte_offset(top), elements * 8) << c;
    elements += (kN - c * kTile) * width;
    const BlockId bottom(0, tiles - 1, c);
    ASSERT_EQ(table.byte_offset(bottom) + table.bytes(bottom), elements * 8) << c;
  }
  EXPECT_GT(elements, std::int64_t{1} << 31);
  EXPECT_EQ(table.total_bytes(0), elements * 8);
  EXPECT_EQ(table.total_bytes(1), kN * kN * 8);
  const BlockId last(1, tiles - 1, tiles - 1);
  EXPECT_EQ(table.byte_offset(last) + table.bytes(last), kN * kN * 8);
  EXPECT_EQ(table.index(last), table.count() - 1);
}

TEST(BlockTable, TakesABlockOfMoreThan2To31Elements) {
  BlockTable table;
  table.add(family_of(100'000, 100'000, 50'000, 50'000, Shape::lower));
  EXPECT_EQ(table.bytes({0, 1, 1}), 20'000'000'000);
  EXPECT_EQ(table.byte_offset({0, 1, 1}), 40'000'000'000);
  EXPECT_EQ(table.total_bytes(0), 60'000'000'000);
}

TEST(BlockTable, TakesATileFarLargerThanTheMatrix) {
  for (const Shape shape : {Shape::lower, Shape::rectangle}) {
    for (const std::int64_t tile :
         {std::int64_t{1} << 40, std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()}) {
      BlockTable table;
      table.add(family_of(5, 5, tile, tile, shape));
      EXPECT_EQ(table.count(), 1);
      EXPECT_EQ(table.bytes({0, 0, 0}), 200);
      EXPECT_EQ(table.byte_offset({0, 0, 0}), 0);
      EXPECT_EQ(table.total_bytes(0), 200);
      EXPECT_EQ(table.capacity_bytes(0), 200);
    }
  }
}

TEST(BlockTable, RefusesWhatIsNoMatrixAndStaysAsItWas) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<BlockFamily> bad{
      family_of(-1, 1, 1, 1),
      family_of(1, -1, 1, 1),
      family_of(4, 4, 0, 1),
      family_of(4, 4, 1, 0),
      family_of(4, 4, -2, 1),
      family_of(4, 5, 2, 2, Shape::lower),
      family_of(4, 4, 2, 1, Shape::lower),
      family_of(std::int64_t{1} << 31, std::int64_t{1} << 31, 1 << 20, 1 << 20),  // 2^65 bytes
      family_of(kMax, 1, 1 << 20, 1),
      family_of(kMax, 0, 2, 1),
      family_of(std::int64_t{1} << 28, 1, 1, 1),  // more block rows than a BlockId can count
  };
  BlockTable table;
  table.add(family_of(4, 4, 2, 2));
  for (const BlockFamily& family : bad) {
    try {
      table.add(family);
      ADD_FAILURE() << family.rows << " x " << family.cols << " in " << family.tile_rows << " x "
                    << family.tile_cols;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_EQ(std::string(error.what()).rfind("A: ", 0), 0u) << error.what();
    }
  }
  EXPECT_EQ(table.families(), 1);
  EXPECT_EQ(table.count(), 4);
  EXPECT_EQ(table.add(family_of(1, 1, 1, 1)), 1);
  EXPECT_EQ(table.index({1, 0, 0}), 4);
}

TEST(BlockTable, RefusesMoreFamiliesThanABlockIdCanName) {
  BlockTable table;
  for (int f = 0; f < 255; ++f) table.add(family_of(1, 1, 1, 1));
  EXPECT_THROW(table.add(family_of(1, 1, 1, 1)), Error);
  EXPECT_TRUE(table.contains({254, 0, 0}));
}

TEST(BlockId, KeepsItsPartsApartAndIsOrdered) {
  const BlockId id(3, (1 << 28) - 1, 7);
  EXPECT_EQ(id.family(), 3);
  EXPECT_EQ(id.row(), (1 << 28) - 1);
  EXPECT_EQ(id.col(), 7);
  EXPECT_TRUE(id.valid());
  EXPECT_FALSE(BlockId().valid());
  const std::set<BlockId> ids{{1, 0, 0}, {0, 2, 0}, {0, 1, 5}, {0, 1, 5}};
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(*ids.begin(), BlockId(0, 1, 5));
  EXPECT_LT(BlockId(0, 2, 0), BlockId(1, 0, 0));
}

TEST(BlockTable, NamesABlockAsPeopleWriteIt) {
  BlockTable table;
  table.add(family_of(8, 8, 2, 2));
  EXPECT_EQ(table.name({0, 3, 1}), "A(3,1)");
}

}  // namespace
}  // namespace strata
