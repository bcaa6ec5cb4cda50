#pragma once
// What holds of every BlockStore, written once.
//
// Contract: a store gives a `StoreMaker`, which makes an empty store over a table, with a source
// for each family (null: none); the suite then runs over it. See block_store.hpp for what is held.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "store/block_store.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"

namespace strata::test {

struct StoreMaker {
  std::string name;
  std::function<std::unique_ptr<BlockStore>(const BlockTable&, const std::vector<BlockSource>&)>
      make;
};

/// Two families with edge blocks of odd sizes: a triangle of doubles and a rectangle of floats.
inline BlockTable conformance_table() {
  BlockTable table;
  table.add(
      {.name = "A", .rows = 19, .cols = 19, .tile_rows = 4, .tile_cols = 4, .shape = Shape::lower});
  table.add({.name = "B",
             .rows = 19,
             .cols = 5,
             .tile_rows = 4,
             .tile_cols = 3,
             .element = Element::fp32});
  return table;
}

inline std::vector<BlockId> blocks_of(const BlockTable& table) {
  std::vector<BlockId> ids;
  for (int f = 0; f < table.families(); ++f) {
    for (std::int64_t c = 0; c < table.block_cols(f); ++c) {
      for (std::int64_t r = 0; r < table.block_rows(f); ++r) {
        if (table.contains({f, r, c})) ids.emplace_back(f, r, c);
      }
    }
  }
  return ids;
}

/// Bytes that tell a block and a version from every other.
inline std::vector<std::byte> pattern(const BlockTable& table, BlockId id, std::uint64_t version) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(table.bytes(id)));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(random_bits(id.bits + version, i));
  }
  return bytes;
}

class StoreConformance : public ::testing::TestWithParam<StoreMaker> {
 protected:
  /// A store whose sources give version 0 of each block.
  std::unique_ptr<BlockStore> with_sources() {
    std::vector<BlockSource> sources;
    for (int f = 0; f < table.families(); ++f) {
      sources.emplace_back([this, f](const BlockExtent& x, std::byte* to) {
        ++evaluations;
        const BlockFamily& family = table.family(f);
        const BlockId id(f, x.row / family.tile_rows, x.col / family.tile_cols);
        const std::vector<std::byte> bytes = pattern(table, id, 0);
        const std::int64_t column = table.bytes(id) / table.extent(id).cols;
        std::memcpy(to, bytes.data() + (x.col - table.extent(id).col) * column,
                    static_cast<std::size_t>(x.cols * column));
      });
    }
    return GetParam().make(table, sources);
  }
  std::unique_ptr<BlockStore> without_sources() {
    return GetParam().make(table, {BlockSource(), BlockSource()});
  }
  /// Reads into memory with guards on both sides: a store writes the block and nothing else.
  std::vector<std::byte> read(BlockStore& store, BlockId id) {
    constexpr std::size_t kGuard = 64;
    const auto bytes = static_cast<std::size_t>(table.bytes(id));
    std::vector<std::byte> memory(bytes + 2 * kGuard, std::byte{0xa5});
    store.read(id, memory.data() + kGuard);
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(memory[i], std::byte{0xa5}) << table.name(id);
      EXPECT_EQ(memory[kGuard + bytes + i], std::byte{0xa5}) << table.name(id);
    }
    return {memory.begin() + kGuard, memory.end() - kGuard};
  }

  BlockTable table = conformance_table();
  std::vector<BlockId> ids = blocks_of(table);
  std::atomic<int> evaluations = 0;
};

TEST_P(StoreConformance, DescribesItsBlocks) {
  const auto store = without_sources();
  ASSERT_EQ(store->blocks().families(), table.families());
  EXPECT_EQ(store->blocks().count(), table.count());
  for (const BlockId id : ids) EXPECT_EQ(store->blocks().bytes(id), table.bytes(id));
}

TEST_P(StoreConformance, ReadsWhatWasWrittenLast) {
  const auto store = without_sources();
  for (const std::uint64_t version : {1, 2}) {
    for (const BlockId id : ids) store->write(id, pattern(table, id, version).data());
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      EXPECT_EQ(read(*store, *id), pattern(table, *id, version)) << table.name(*id);
    }
  }
}

TEST_P(StoreConformance, ReadsTheSourceUntilItIsWritten) {
  const auto store = with_sources();
  for (const BlockId id : ids) EXPECT_EQ(read(*store, id), pattern(table, id, 0));
  for (std::size_t i = 0; i < ids.size(); i += 2) {
    store->write(ids[i], pattern(table, ids[i], 1).data());
  }
  const int evaluated = evaluations;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(read(*store, ids[i]), pattern(table, ids[i], i % 2 == 0 ? 1 : 0)) << i;
  }
  EXPECT_EQ(evaluations - evaluated, static_cast<int>(ids.size() / 2));
}

TEST_P(StoreConformance, ColumnsMakeTheBlock) {
  for (const std::int64_t steps : {1, 2}) {
    const auto store = with_sources();
    for (const BlockId id : ids) {
      const std::int64_t columns = table.extent(id).cols;
      const std::int64_t column = table.bytes(id) / columns;
      const std::int64_t least = store->columns_min(id);
      ASSERT_GE(least, 1) << table.name(id);
      ASSERT_LE(least, columns) << table.name(id);
      const std::int64_t step = std::min(steps * least, columns);
      const auto read_all = [&] {
        std::vector<std::byte> bytes(static_cast<std::size_t>(table.bytes(id)));
        for (std::int64_t j = 0; j < columns; j += step) {
          store->read_columns(id, j, std::min(step, columns - j), bytes.data() + j * column);
        }
        return bytes;
      };
      EXPECT_EQ(read_all(), pattern(table, id, 0)) << table.name(id) << " from its source";
      const std::vector<std::byte> next = pattern(table, id, 1);
      for (std::int64_t j = 0; j < columns; j += step) {
        store->write_columns(id, j, std::min(step, columns - j), next.data() + j * column);
        if (step == columns) continue;
        EXPECT_EQ(read(*store, id), pattern(table, id, 0)) << table.name(id) << " is not whole yet";
        EXPECT_EQ(store->lend(id), nullptr) << table.name(id) << " is not whole yet";
      }
      store->commit(id);
      EXPECT_EQ(read_all(), next) << table.name(id);
      EXPECT_EQ(read(*store, id), next) << table.name(id);
      std::vector<std::byte> to(4096);
      if (least == columns && columns > 1) {
        EXPECT_THROW(store->read_columns(id, 0, 1, to.data()), Error);
        EXPECT_THROW(store->write_columns(id, 1, columns - 1, to.data()), Error);
        EXPECT_EQ(read(*store, id), next) << table.name(id) << " after a refusal";
      }
    }
  }
}

TEST_P(StoreConformance, ABlockThatIsNowhereIsAStorageErrorThatNamesIt) {
  const auto store = without_sources();
  store->write(ids[1], pattern(table, ids[1], 1).data());
  std::vector<std::byte> to(4096);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 1) continue;
    try {
      store->read(ids[i], to.data());
      ADD_FAILURE() << table.name(ids[i]);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage);
      EXPECT_NE(std::string(error.what()).find(table.name(ids[i])), std::string::npos);
    }
  }
  EXPECT_EQ(read(*store, ids[1]), pattern(table, ids[1], 1));
}

TEST_P(StoreConformance, ABlockOutsideTheTableIsAStorageError) {
  const auto store = with_sources();
  std::vector<std::byte> memory(4096);
  for (const BlockId id :
       {BlockId(0, 0, 1), BlockId(0, 5, 0), BlockId(1, 0, 2), BlockId(2, 0, 0), BlockId()}) {
    EXPECT_THROW(store->read(id, memory.data()), Error);
    EXPECT_THROW(store->write(id, memory.data()), Error);
  }
}

TEST_P(StoreConformance, AFailingSourceIsPassedOnAndHurtsNoOtherBlock) {
  const auto store = GetParam().make(table, {[](const BlockExtent& x, std::byte*) {
                                               if (x.row == 8) throw std::runtime_error("torn");
                                             },
                                             BlockSource()});
  store->write({0, 3, 0}, pattern(table, {0, 3, 0}, 1).data());
  std::vector<std::byte> to(4096);
  EXPECT_THROW(store->read({0, 2, 1}, to.data()), std::runtime_error);
  EXPECT_NO_THROW(store->read({0, 1, 1}, to.data()));
  EXPECT_EQ(read(*store, {0, 3, 0}), pattern(table, {0, 3, 0}, 1));
  store->write({0, 2, 1}, pattern(table, {0, 2, 1}, 1).data());
  EXPECT_EQ(read(*store, {0, 2, 1}), pattern(table, {0, 2, 1}, 1));
}

TEST_P(StoreConformance, ThreadsReadAndWriteDifferentBlocksAtOnce) {
  const auto store = with_sources();
  constexpr std::size_t kThreads = 4;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> to(4096);
        const auto expect = [&](BlockId id, std::uint64_t version) {
          const std::vector<std::byte> bytes = pattern(table, id, version);
          store->read(id, to.data());
          if (std::memcmp(to.data(), bytes.data(), bytes.size()) != 0) ++wrong;
        };
        for (std::uint64_t version = 0; version < 20; ++version) {
          for (std::size_t i = t; i < ids.size(); i += kThreads) {
            expect(ids[i], version);
            store->write(ids[i], pattern(table, ids[i], version + 1).data());
            expect(ids[i], version + 1);
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(StoreConformance, WhatIsLentHoldsTheBlockAsItWasLastWritten) {
  const auto store = with_sources();
  for (const BlockId id : ids) {
    EXPECT_EQ(store->lend(id), nullptr) << table.name(id) << " was never written";
    for (const std::uint64_t version : {1, 2}) {
      const std::vector<std::byte> bytes = pattern(table, id, version);
      store->write(id, bytes.data());
      const std::byte* memory = store->lend(id);
      if (memory == nullptr) continue;  // not in memory: nothing is promised
      EXPECT_EQ(std::memcmp(memory, bytes.data(), bytes.size()), 0) << table.name(id);
    }
  }
  // A neighbour that is written leaves what was lent alone.
  for (const BlockId id : ids) {
    const std::byte* memory = store->lend(id);
    if (memory == nullptr) continue;
    const std::vector<std::byte> bytes = pattern(table, id, 2);
    EXPECT_EQ(std::memcmp(memory, bytes.data(), bytes.size()), 0) << table.name(id);
  }
}

TEST_P(StoreConformance, WhatIsWrittenIntoLentMemoryCountsOnceItIsCommitted) {
  const auto store = with_sources();
  for (const BlockId id : ids) {
    std::byte* memory = store->lend_for_writing(id);
    if (memory == nullptr) continue;  // not in memory: nothing is promised
    const std::vector<std::byte> bytes = pattern(table, id, 3);
    EXPECT_EQ(read(*store, id), pattern(table, id, 0));
    std::memcpy(memory, bytes.data(), bytes.size());
    EXPECT_EQ(read(*store, id), pattern(table, id, 0)) << "before commit";
    EXPECT_EQ(store->lend(id), nullptr) << "before commit";
    EXPECT_EQ(store->lend_for_writing(id), memory);
    store->commit(id);
    EXPECT_EQ(read(*store, id), bytes);
    ASSERT_EQ(store->lend(id), memory);
    EXPECT_EQ(std::memcmp(memory, bytes.data(), bytes.size()), 0);
    store->write(id, pattern(table, id, 4).data());
    ASSERT_NE(store->lend(id), nullptr);
    EXPECT_EQ(std::memcmp(store->lend(id), pattern(table, id, 4).data(), bytes.size()), 0);
    // Once more, over a block that was written.
    EXPECT_EQ(store->lend_for_writing(id), memory) << "always the same";
    std::memcpy(memory, bytes.data(), bytes.size());
    store->commit(id);
    EXPECT_EQ(read(*store, id), bytes);
  }
}

}  // namespace strata::test
