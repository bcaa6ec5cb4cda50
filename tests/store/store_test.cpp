// MemoryStore, its sources, and the fault-injecting store of the tests.

#include <cmath>
#include <limits>
#include <numeric>

#include "store/memory_store.hpp"
#include "tests/store/conformance.hpp"
#include "tests/support/fault_store.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {
namespace {

std::unique_ptr<MemoryStore> make_memory_store(const BlockTable& table,
                                               const std::vector<BlockSource>& sources) {
  std::vector<std::shared_ptr<FamilyMemory>> families;
  for (int f = 0; f < table.families(); ++f) {
    families.push_back(
        std::make_shared<FamilyMemory>(table, f, sources[static_cast<std::size_t>(f)]));
  }
  return std::make_unique<MemoryStore>(table, families);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreConformance,
    ::testing::Values(StoreMaker{"MemoryStore", make_memory_store},
                      StoreMaker{"FaultStoreWithoutFaults",
                                 [](const BlockTable& t, const std::vector<BlockSource>& s) {
                                   return std::make_unique<FaultStore>(make_memory_store(t, s));
                                 }}),
    [](const auto& info) { return info.param.name; });

// ---- MemoryStore

TEST(MemoryStore, MaterializesEveryBlockOnceAndKeepsWhatWasWritten) {
  for (const int threads : {1, 4}) {
    const BlockTable table = conformance_table();
    std::atomic<int> evaluations = 0;
    const auto store =
        make_memory_store(table, {[&](const BlockExtent& x, std::byte* to) {
                                    ++evaluations;
                                    std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols,
                                                static_cast<double>(100 * x.row + x.col));
                                  },
                                  BlockSource()});
    const std::vector<double> own(16, -1.0);
    store->write({0, 2, 1}, reinterpret_cast<const std::byte*>(own.data()));
    store->materialize(0, threads);
    EXPECT_EQ(evaluations, table.count(0) - 1);
    for (const BlockId id : blocks_of(table)) {
      if (id.family() != 0) continue;
      const auto* values = reinterpret_cast<const double*>(store->lend(id));
      const BlockExtent x = table.extent(id);
      const double expected =
          id == BlockId(0, 2, 1) ? -1.0 : static_cast<double>(100 * x.row + x.col);
      for (std::int64_t i = 0; i < x.rows * x.cols; ++i) ASSERT_EQ(values[i], expected);
    }
    std::vector<std::byte> to(4096);
    store->read({0, 0, 0}, to.data());
    store->materialize(0, threads);
    EXPECT_EQ(evaluations, table.count(0) - 1) << "a source was asked again";
    EXPECT_THROW(store->materialize(1, threads), Error) << "there is nothing to read";
  }
}

TEST(MemoryStore, AsksNobodyForBlocksWithoutBytes) {
  BlockTable table;
  table.add({.name = "A",
             .rows = 4,
             .cols = 2,
             .tile_rows = 2,
             .tile_cols = 2,
             .elements = {Element::none, Element::fp64}});
  table.add({.name = "B", .rows = 3, .cols = 3, .element = Element::none});
  const auto store = make_memory_store(table, {[](const BlockExtent& x, std::byte* to) {
                                                 ASSERT_EQ(x.row, 2);
                                                 std::fill_n(reinterpret_cast<double*>(to), 4, 7.0);
                                               },
                                               BlockSource()});
  std::byte untouched{42};
  store->read({0, 0, 0}, &untouched);
  store->read({1, 2, 1}, &untouched);
  store->write({1, 2, 1}, &untouched);
  store->write({1, 2, 1}, nullptr);  // what a container of no bytes gives as its address
  store->write_columns({1, 2, 1}, 0, 1, nullptr);
  store->read({1, 2, 1}, &untouched);
  EXPECT_EQ(untouched, std::byte{42});
  store->materialize(0, 2);
  store->materialize(1, 2);
  EXPECT_EQ(reinterpret_cast<const double*>(store->lend({0, 1, 0}))[3], 7);
}

TEST(MemoryStore, MaterializesALargeBlockInPiecesThatMakeTheWhole) {
  constexpr std::int64_t n = 1700;  // 22 MiB, and its columns cut nothing evenly
  for (const Shape shape : {Shape::rectangle, Shape::lower}) {
    BlockTable table;
    (void)table.add(
        {.name = "A", .rows = n, .cols = n, .tile_rows = n, .tile_cols = n, .shape = shape});
    std::vector<double> values(static_cast<std::size_t>(n * n));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k + 1);
    const bool lower = shape == Shape::lower;
    const auto store = make_memory_store(table, {source_of_view(values.data(), n, lower)});
    store->materialize(0, 3);
    const auto* out = reinterpret_cast<const double*>(store->lend({0, 0, 0}));
    std::int64_t wrong = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        const double expected = lower && i < j ? 0.0 : static_cast<double>(i + j * n + 1);
        wrong += out[i + j * n] == expected ? 0 : 1;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(MemoryStore, MaterializePassesOnAFailureAndStops) {
  for (const int threads : {1, 4}) {
    const BlockTable table = conformance_table();
    const auto store = make_memory_store(table, {[](const BlockExtent& x, std::byte*) {
                                                   if (x.row == 12 && x.col == 4) {
                                                     fail(ErrorKind::input, "test", "bad block");
                                                   }
                                                 },
                                                 BlockSource()});
    try {
      store->materialize(0, threads);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_STREQ(error.what(), "bad block");
    }
  }
}

TEST(MemoryStore, AFamilyWithoutMemoryHasNoPlace) {
  const BlockTable table = conformance_table();
  MemoryStore store(table, {std::make_shared<FamilyMemory>(table, 0), nullptr});
  std::vector<std::byte> memory(4096);
  EXPECT_NO_THROW(store.write({0, 0, 0}, memory.data()));
  EXPECT_THROW(store.write({1, 0, 0}, memory.data()), Error);
  EXPECT_THROW(store.read({1, 0, 0}, memory.data()), Error);
  EXPECT_THROW((void)store.lend({1, 0, 0}), Error);
  EXPECT_THROW((void)store.lend_for_writing({1, 0, 0}), Error);
  EXPECT_THROW(store.commit({1, 0, 0}), Error);
}

TEST(MemoryStore, SharesAFamilyWithAnotherStore) {
  BlockTable one;
  one.add(
      {.name = "L", .rows = 6, .cols = 6, .tile_rows = 4, .tile_cols = 4, .shape = Shape::lower});
  BlockTable two;
  two.add({.name = "X", .rows = 9, .cols = 1, .tile_rows = 2, .tile_cols = 1});
  two.add(one.family(0));
  const auto shared = std::make_shared<FamilyMemory>(one, 0);
  MemoryStore first(one, {shared});
  MemoryStore second(two, {std::make_shared<FamilyMemory>(two, 0), shared});
  for (const BlockId id : blocks_of(one)) first.write(id, pattern(one, id, 1).data());
  std::vector<std::byte> to(4096);
  for (const BlockId id : blocks_of(one)) {
    second.read({1, id.row(), id.col()}, to.data());
    EXPECT_EQ(
        std::memcmp(to.data(), pattern(one, id, 1).data(), static_cast<std::size_t>(one.bytes(id))),
        0);
  }
}

TEST(FamilyMemory, ResetAsksTheSourceAgain) {
  const BlockTable table = conformance_table();
  const auto family = std::make_shared<FamilyMemory>(table, 0);
  MemoryStore store(table, {family, nullptr});
  const std::vector<double> sevens(16, 7.0);
  store.write({0, 0, 0}, reinterpret_cast<const std::byte*>(sevens.data()));
  family->reset([](const BlockExtent& x, std::byte* to) {
    std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 9.0);
  });
  std::vector<double> to(16);
  store.read({0, 0, 0}, reinterpret_cast<std::byte*>(to.data()));
  EXPECT_EQ(to, std::vector<double>(16, 9.0));
}

TEST(FamilyMemory, IsOfWholePagesAndRefusesWhatTheSystemRefuses) {
  const BlockTable table = conformance_table();
  const FamilyMemory family(table, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(family.data()) % 4096, 0U);
  BlockTable huge;
  huge.add({.name = "H",
            .rows = 1LL << 29,
            .cols = 1LL << 29,
            .tile_rows = 1LL << 29,
            .tile_cols = 1LL << 29});
#ifndef STRATA_SANITIZED  // they abort instead
  try {
    const FamilyMemory refused(huge, 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("2097152 TiB"), std::string::npos) << error.what();
  }
#endif
}

// ---- sources

template <class T>
void expect_packed_view(bool lower) {
  constexpr std::int64_t kN = 11;
  constexpr std::int64_t kLd = 14;
  std::vector<T> a(kLd * kN, std::numeric_limits<T>::quiet_NaN());
  for (std::int64_t j = 0; j < kN; ++j) {
    for (std::int64_t i = lower ? j : 0; i < kN; ++i) {
      a[static_cast<std::size_t>(i + j * kLd)] = static_cast<T>(100 * i + j + 1);
    }
  }
  BlockTable table;
  table.add({.name = "A",
             .rows = kN,
             .cols = kN,
             .tile_rows = 4,
             .tile_cols = 4,
             .shape = lower ? Shape::lower : Shape::rectangle,
             .element = element_of<T>});
  const BlockSource source = source_of_view(static_cast<const T*>(a.data()), kLd, lower);
  for (const BlockId id : blocks_of(table)) {
    const BlockExtent x = table.extent(id);
    std::vector<T> block(static_cast<std::size_t>(x.rows * x.cols), T(-5));
    source(x, reinterpret_cast<std::byte*>(block.data()));
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const bool above = lower && x.row + i < x.col + j;
        // A NaN from above the diagonal would not be equal to anything.
        EXPECT_EQ(block[static_cast<std::size_t>(i + j * x.rows)],
                  above ? T(0) : static_cast<T>(100 * (x.row + i) + x.col + j + 1))
            << table.name(id) << ' ' << i << ' ' << j;
      }
    }
  }
}

TEST(SourceOfView, PacksAndDoesNotReadAboveTheDiagonal) {
  expect_packed_view<double>(true);
  expect_packed_view<float>(true);
  expect_packed_view<double>(false);
  expect_packed_view<float>(false);
}

// ---- FaultStore keeps its own contract

TEST(FaultStore, DoesTheWrongsItWasToldAndNoOther) {
  const BlockTable table = conformance_table();
  Faults faults;
  faults.read_fails = {2};
  faults.short_read = {3};
  faults.bit_flip = {4};
  faults.write_fails = {2};
  FaultStore store(make_memory_store(table, {BlockSource(), BlockSource()}), faults);
  const BlockId id(0, 2, 1);
  const std::vector<std::byte> one = pattern(table, id, 1);
  const std::vector<std::byte> two = pattern(table, id, 2);
  store.write(id, one.data());
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of([&] { store.write(id, two.data()); }), "injected: write 2 of A(2,1)");
  std::vector<std::byte> to(one.size());
  store.read(id, to.data());
  EXPECT_EQ(to, one) << "a failed write must leave the old value";
  std::fill(to.begin(), to.end(), std::byte{0});
  EXPECT_EQ(message_of([&] { store.read(id, to.data()); }), "injected: read 2 of A(2,1)");
  EXPECT_EQ(to, std::vector<std::byte>(one.size()));
  EXPECT_EQ(message_of([&] { store.read(id, to.data()); }), "injected: short read 3 of A(2,1)");
  EXPECT_EQ(std::memcmp(to.data(), one.data(), one.size() / 2), 0);
  EXPECT_EQ(to.back(), std::byte{0});
  store.read(id, to.data());
  to.back() ^= std::byte{0x80};
  EXPECT_EQ(to, one) << "one bit and no more";
  store.heal();
  store.read(id, to.data());
  EXPECT_EQ(to, one);
  EXPECT_EQ(store.reads(), 5);
  EXPECT_EQ(store.writes(), 2);
}

}  // namespace
}  // namespace strata::test
