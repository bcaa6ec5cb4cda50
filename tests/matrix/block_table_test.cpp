// BlockTable against counting one block after another, and its arithmetic where nothing fits.

#include "matrix/block_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "strata/error.hpp"

namespace strata {
namespace {

BlockFamily family_of(std::int64_t rows, std::int64_t cols, std::int64_t tile_rows,
                      std::int64_t tile_cols, Shape shape = Shape::rectangle,
                      Element element = Element::fp64) {
  return {.name = "A",
          .rows = rows,
          .cols = cols,
          .tile_rows = tile_rows,
          .tile_cols = tile_cols,
          .shape = shape,
          .element = element};
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
    const std::int64_t bytes = expected.extent.rows * expected.extent.cols * bytes_of(f.element);
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
      table.add(family_of(n, n, tile, tile, Shape::lower, Element::fp32));
      table.add(family_of(n, 3, tile, 2));
      table.add(family_of(n, n, tile, tile));
      table.add(family_of(2 * n + 1, n, tile, 3, Shape::rectangle, Element::fp8));
      table.add(family_of(n, n, tile, tile, Shape::lower, Element::dd));
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

// ---- families whose blocks follow no formula

/// A list of blocks, with the element of each.
struct Listed {
  std::vector<BlockExtent> extents;
  std::vector<Element> elements;
};

/// Blocks of awkward shapes, empty ones among them, and far apart in their matrix.
Listed listed_of(std::int64_t count) {
  constexpr Element kMany[] = {Element::fp64, Element::fp16, Element::complex128, Element::fp8};
  Listed listed;
  for (std::int64_t i = 0; i < count; ++i) {
    listed.extents.push_back({i * i, 7 * i, (5 * i + 3) % 11, (3 * i + 1) % 7});
    listed.elements.push_back(kMany[static_cast<std::size_t>(i % 4)]);
  }
  return listed;
}

void expect_listed(const BlockTable& table, int number, const Listed& listed,
                   std::int64_t first_index) {
  const auto count = std::ssize(listed.extents);
  EXPECT_EQ(table.count(number), count);
  EXPECT_EQ(table.block_rows(number), count);
  EXPECT_EQ(table.block_cols(number), 1);
  std::int64_t offset = 0;
  std::int64_t largest = 0;
  std::vector<BlockId> expected;
  for (std::int64_t i = 0; i < count; ++i) {
    const BlockId id(number, i, 0);
    const BlockExtent& x = listed.extents[static_cast<std::size_t>(i)];
    const Element element = listed.elements[static_cast<std::size_t>(i)];
    const std::int64_t bytes = x.rows * x.cols * bytes_of(element);
    expected.push_back(id);
    EXPECT_TRUE(table.contains(id)) << i;
    EXPECT_EQ(table.extent(id), x) << i;
    EXPECT_EQ(table.element(id), element) << i;
    EXPECT_EQ(table.bytes(id), bytes) << i;
    EXPECT_EQ(table.column_bytes(id), x.rows * bytes_of(element)) << i;
    EXPECT_EQ(table.index(id), first_index + i);
    EXPECT_EQ(table.byte_offset(id), offset) << i;
    offset += bytes;
    largest = std::max(largest, bytes);
  }
  EXPECT_EQ(table.total_bytes(number), offset);
  EXPECT_EQ(table.capacity_bytes(number), largest);
  EXPECT_FALSE(table.contains({number, count, 0}));
  EXPECT_FALSE(table.contains({number, 0, 1}));
  std::vector<BlockId> visited;
  table.for_each(number, [&](BlockId id) { visited.push_back(id); });
  EXPECT_EQ(visited, expected);
}

TEST(BlockTable, ListsBlocksOfAnyExtents) {
  for (const std::int64_t count : {1, 2, 3, 40}) {
    const Listed listed = listed_of(count);
    Listed of_one = listed;
    std::fill(of_one.elements.begin(), of_one.elements.end(), Element::dd);
    BlockTable table;
    table.add(family_of(5, 5, 2, 2, Shape::lower));  // 6 blocks come before
    // A listed family reads only the list of its geometry.
    BlockFamily family = family_of(-3, 9, 0, -1, Shape::lower, Element::dd);
    family.listed = of_one.extents;
    EXPECT_EQ(table.add(family), 1);
    family.listed = listed.extents;
    family.elements = listed.elements;
    EXPECT_EQ(table.add(family), 2);
    table.add(family_of(3, 3, 2, 2));
    expect_listed(table, 1, of_one, 6);
    expect_listed(table, 2, listed, 6 + count);
    EXPECT_EQ(table.index({3, 0, 0}), 6 + 2 * count);
    EXPECT_EQ(table.count(), 6 + 2 * count + 4);
    EXPECT_EQ(table.name({2, count - 1, 0}), "A(" + std::to_string(count - 1) + ",0)");
  }
}

TEST(BlockTable, GivesEachBlockAnElementOfItsOwn) {
  constexpr Element kMany[] = {Element::fp64, Element::fp32, Element::fp8, Element::dd,
                               Element::bf16};
  for (const Shape shape : {Shape::lower, Shape::rectangle}) {
    for (const std::int64_t n : {1, 4, 9, 12}) {
      BlockFamily family = family_of(n, n, 4, 4, shape);
      const std::vector<Expected> blocks = walk(1, family);
      for (std::size_t i = 0; i < blocks.size(); ++i) family.elements.push_back(kMany[i * i % 5]);
      BlockTable table;
      table.add(family_of(n, n, 3, 3));
      EXPECT_EQ(table.add(family), 1);
      std::int64_t offset = 0;
      std::int64_t largest = 0;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const BlockId id = blocks[i].id;
        const BlockExtent& x = blocks[i].extent;
        const std::int64_t element_bytes = bytes_of(kMany[i * i % 5]);
        EXPECT_EQ(table.extent(id), x) << table.name(id);
        EXPECT_EQ(table.element(id), kMany[i * i % 5]) << table.name(id);
        EXPECT_EQ(table.bytes(id), x.rows * x.cols * element_bytes) << table.name(id);
        EXPECT_EQ(table.column_bytes(id), x.rows * element_bytes) << table.name(id);
        EXPECT_EQ(table.byte_offset(id), offset) << table.name(id);
        EXPECT_EQ(table.index(id), table.count(0) + static_cast<std::int64_t>(i));
        offset += table.bytes(id);
        largest = std::max(largest, table.bytes(id));
      }
      EXPECT_EQ(table.total_bytes(1), offset);
      EXPECT_EQ(table.capacity_bytes(1), largest) << "the largest need not be the first";
    }
  }
}

TEST(BlockTable, HoldsBlocksWithoutBytes) {
  // As in a precision map: tiles far from the diagonal are zero, and all tiles of one column are.
  BlockFamily family = family_of(11, 11, 3, 3, Shape::lower);
  family.elements = {Element::fp64,   Element::fp16, Element::none, Element::none,  // column 0
                     Element::none,   Element::none, Element::none,                 // column 1
                     Element::fp16x2, Element::none, Element::fp8};
  BlockTable table;
  table.add(family);
  const std::vector<std::int64_t> sizes{72, 18, 0, 0, 0, 0, 0, 36, 0, 4};
  std::int64_t offset = 0;
  std::size_t i = 0;
  table.for_each(0, [&](BlockId id) {
    EXPECT_EQ(table.bytes(id), sizes[i]) << table.name(id);
    EXPECT_EQ(table.byte_offset(id), offset) << table.name(id);
    EXPECT_EQ(table.index(id), static_cast<std::int64_t>(i)) << table.name(id);
    EXPECT_EQ(table.column_bytes(id) * table.extent(id).cols, sizes[i]) << table.name(id);
    EXPECT_TRUE(table.contains(id)) << table.name(id);
    offset += sizes[i++];
  });
  EXPECT_EQ(i, sizes.size());
  EXPECT_EQ(table.total_bytes(0), 130);
  EXPECT_EQ(table.capacity_bytes(0), 72);

  // A family of nothing else, by the formula and by the list of offsets, before another one.
  for (const bool mapped : {false, true}) {
    BlockFamily nothing = family_of(7, 5, 2, 2, Shape::rectangle, Element::none);
    if (mapped) nothing.elements.assign(12, Element::none);
    BlockTable two;
    two.add(nothing);
    two.add(family_of(4, 4, 2, 2));
    EXPECT_EQ(two.count(0), 12);
    EXPECT_EQ(two.total_bytes(0), 0);
    EXPECT_EQ(two.capacity_bytes(0), 0);
    EXPECT_EQ(two.byte_offset({0, 3, 2}), 0);
    EXPECT_EQ(two.bytes({0, 3, 2}), 0);
    EXPECT_EQ(two.index({1, 0, 0}), 12);
    EXPECT_EQ(two.byte_offset({1, 1, 1}), 96);
  }
  // 2^62 elements would be too many of any other element.
  constexpr std::int64_t kLong = std::int64_t{1} << 31;
  EXPECT_EQ(table.add(family_of(kLong, kLong, kLong, kLong, Shape::lower, Element::none)), 1);
  EXPECT_EQ(table.total_bytes(1), 0);
}

TEST(BlockTable, RefusesListsAndMapsThatAreNoneAndStaysAsItWas) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto listed = [](std::vector<BlockExtent> extents, std::size_t elements = 0) {
    BlockFamily family = family_of(0, 0, 1, 1);
    family.listed = std::move(extents);
    family.elements.resize(elements);
    return family;
  };
  const auto mapped = [](BlockFamily family, std::size_t elements) {
    family.elements.resize(elements, Element::fp32);
    return family;
  };
  BlockFamily large = family_of(std::int64_t{1} << 30, std::int64_t{1} << 30, 1 << 29, 1 << 29);
  large.elements.assign(4, Element::dd);  // 2^64 bytes, where fp8 would be 2^60
  large.element = Element::fp8;
  const std::vector<BlockFamily> bad{
      listed({{0, 0, -1, 2}}),
      listed({{0, 0, 2, 2}, {0, 0, 2, -1}}),
      listed({{0, 0, std::int64_t{1} << 31, std::int64_t{1} << 29}}),  // 2^63 bytes
      listed({{0, 0, kMax, kMax}}),
      listed({{0, 0, std::int64_t{1} << 29, std::int64_t{1} << 29},  // 2^61 bytes each
              {0, 0, std::int64_t{1} << 29, std::int64_t{1} << 29}}),
      listed({{0, 0, 2, 2}, {0, 0, 2, 2}}, 1),
      listed({{0, 0, 2, 2}, {0, 0, 2, 2}}, 3),
      mapped(family_of(5, 5, 2, 2, Shape::lower), 5),
      mapped(family_of(5, 5, 2, 2, Shape::lower), 9),
      mapped(family_of(5, 5, 2, 2), 6),
      mapped(family_of(0, 0, 2, 2), 1),
      large,
  };
  BlockTable table;
  table.add(family_of(4, 4, 2, 2));
  for (std::size_t i = 0; i < bad.size(); ++i) {
    try {
      table.add(bad[i]);
      ADD_FAILURE() << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse) << i;
      EXPECT_EQ(std::string(error.what()).rfind("A", 0), 0u) << error.what();
    }
    EXPECT_EQ(table.families(), 1) << i;
    EXPECT_EQ(table.count(), 4) << i;
  }
  EXPECT_EQ(table.add(listed({{0, 0, 2, 3}})), 1);
  EXPECT_EQ(table.index({1, 0, 0}), 4);
  EXPECT_EQ(table.bytes({1, 0, 0}), 48);
}

TEST(BlockTable, AddressesListedBlocksPast2To31Bytes) {
  constexpr std::int64_t kLong = std::int64_t{1} << 33;
  BlockFamily family = family_of(0, 0, 1, 1);
  family.listed = {{0, 0, kLong, 3}, {kLong, 0, 1, kLong}, {0, 5, 0, 0}, {7, 7, 1, 1}};
  BlockTable table;
  table.add(family);
  EXPECT_EQ(table.byte_offset({0, 1, 0}), 24 * kLong);
  EXPECT_EQ(table.byte_offset({0, 3, 0}), 32 * kLong);
  EXPECT_EQ(table.bytes({0, 2, 0}), 0);
  EXPECT_EQ(table.total_bytes(0), 32 * kLong + 8);
  EXPECT_EQ(table.capacity_bytes(0), 24 * kLong);
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
