// Bytes and blocks through bounce buffers: every length, by every number of threads, into the right
// place; slots that are filled ahead; what fails on the way.

#include "run/pinned_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "device/device_host.hpp"
#include "store/block_store.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kSlot = std::int64_t{1} << 20;

std::vector<std::byte> repeatable_bytes(std::int64_t count, unsigned seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < bytes.size(); ++k)
    bytes[k] = static_cast<std::byte>((k * 2654435761U + seed) >> 7U);
  return bytes;
}

TEST(PinnedRing, SendsPlainBytesOfAnyLengthThatChangeAtOnce) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = threads});
    for (const std::int64_t count :
         {std::int64_t{0}, std::int64_t{1}, kSmallSlotBytes, kSmallSlotBytes + 1, kSlot / 4 + 3,
          kSlot - 1, kSlot, kSlot + 1, 7 * kSlot + 12345}) {
      const std::vector<std::byte> expected = repeatable_bytes(count, 7);
      const Buffer to = device->allocate(count + 2);
      std::fill_n(to.data(), count + 2, std::byte{0xA5});
      std::vector<std::byte> data = expected;
      ring.send(*queue, to.data() + 1, data);
      std::ranges::fill(data, std::byte{0});
      queue->synchronize();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data() + 1))
          << count << " bytes, " << threads << " threads";
      EXPECT_EQ(to.data()[0], std::byte{0xA5});
      EXPECT_EQ(to.data()[count + 1], std::byte{0xA5});
    }
  }
}

TEST(PinnedRing, ReceivesPlainBytesOfAnyLength) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = threads});
    for (const std::int64_t count :
         {std::int64_t{0}, std::int64_t{1}, kSmallSlotBytes, kSmallSlotBytes + 1, kSlot / 4 + 3,
          kSlot - 1, kSlot, kSlot + 1, 7 * kSlot + 12345}) {
      const std::vector<std::byte> expected = repeatable_bytes(count, 9);
      const Buffer there = device->allocate(count + 1);
      std::copy(expected.begin(), expected.end(), there.data());
      std::vector<std::byte> found(static_cast<std::size_t>(count + 2), std::byte{0xA5});
      ring.receive(*queue, there.data(),
                   std::span(found).subspan(1, static_cast<std::size_t>(count)));
      ring.finish();
      queue->synchronize();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin() + 1))
          << count << " bytes, " << threads << " threads";
      EXPECT_EQ(found.front(), std::byte{0xA5});
      EXPECT_EQ(found.back(), std::byte{0xA5});
    }
    EXPECT_THROW(ring.receive(
                     *queue, nullptr, kSlot + 1, 1, [](std::int64_t, const std::byte*) {},
                     [](const std::exception_ptr&) {}),
                 Error);
  }
}

/// What was put into the queue before is what lands first: a slow queue makes the ring wait.
TEST(PinnedRing, WaitsForTheOldestSlotAndKeepsTheOrderOfTheQueue) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = 2});
  const Buffer to = device->allocate(5 * kSlot);
  for (const unsigned seed : {1U, 2U, 3U}) {
    queue->submit([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    ring.send(*queue, to.data(), repeatable_bytes(5 * kSlot, seed));
  }
  queue->synchronize();
  const std::vector<std::byte> expected = repeatable_bytes(5 * kSlot, 3);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data()));
}

/// Small slots and large ones are filled again each for itself, and the queue keeps the order.
TEST(PinnedRing, CarriesSmallAndLargeInTurnBothWays) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = 2});
  constexpr std::int64_t kSmall = 100;
  constexpr int kRounds = 9;
  const Buffer there = device->allocate(kRounds * (kSmall + 2 * kSlot));
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> found;
  std::int64_t place = 0;
  queue->submit([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  for (unsigned round = 0; round < 2 * kRounds; ++round) {
    sent.push_back(repeatable_bytes(round % 2 == 0 ? kSmall : 2 * kSlot, round));
    ring.send(*queue, there.data() + place, sent.back());
    found.emplace_back(sent.back().size());
    ring.receive(*queue, there.data() + place, found.back());
    place += std::ssize(sent.back());
  }
  ring.finish();
  for (std::size_t k = 0; k < sent.size(); ++k) EXPECT_EQ(sent[k], found[k]) << k;
}

TEST(PinnedRing, FillsASlotByPiecesAndRefusesMoreThanItHolds) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = 3});
  const Buffer to = device->allocate(kSlot + 1);
  const auto fill = [](std::int64_t k, std::byte* slot) {
    std::fill_n(slot + k * 1000, 1000, static_cast<std::byte>(k + 1));
  };
  ring.send(*queue, to.data(), 7000, 7, fill);
  queue->synchronize();
  for (std::int64_t k = 0; k < 7000; ++k)
    ASSERT_EQ(to.data()[k], static_cast<std::byte>(k / 1000 + 1)) << k;
  EXPECT_THROW(ring.send(*queue, to.data(), kSlot + 1, 1, fill), Error);
  // What a piece throws arrives, and the ring goes on.
  const auto broken = [](std::int64_t, std::byte*) { throw Error(ErrorKind::input, "t", "no"); };
  EXPECT_THROW(ring.send(*queue, to.data(), 10, 1, broken), Error);
  ring.send(*queue, to.data(), 1000, 1, fill);
  queue->synchronize();
}

/// One block of doubles in columns, which are moved by rows if it is told so. `visit` sees each
/// part that is read: its first byte in the block.
class ColumnStore final : public BlockStore {
 public:
  ColumnStore(std::int64_t rows, std::int64_t cols, bool by_rows) : by_rows_(by_rows) {
    blocks_.add({.name = "A", .rows = rows, .cols = cols, .tile_rows = rows, .tile_cols = cols});
    bytes = repeatable_bytes(blocks_.bytes({0, 0, 0}), 5);
  }

  [[nodiscard]] const BlockTable& blocks() const override { return blocks_; }
  void read(BlockId, std::byte*) override { ADD_FAILURE() << "a whole block"; }
  void write(BlockId, const std::byte*) override { ADD_FAILURE() << "a whole block"; }
  [[nodiscard]] std::int64_t columns_min(BlockId) const override { return 1; }
  void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) override {
    read_range(first * blocks_.column_bytes(id), count * blocks_.column_bytes(id), to);
  }
  void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                     const std::byte* from) override {
    write_range(first * blocks_.column_bytes(id), count * blocks_.column_bytes(id), from);
  }
  [[nodiscard]] bool divides_columns(BlockId) const override { return by_rows_; }
  void read_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                 std::byte* to) override {
    ++parts_of_columns;
    read_range(column * blocks_.column_bytes(id) + first * 8, count * 8, to);
  }
  void write_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                  const std::byte* from) override {
    ++parts_of_columns;
    write_range(column * blocks_.column_bytes(id) + first * 8, count * 8, from);
  }

  std::vector<std::byte> bytes;
  std::function<void(std::int64_t)> visit = [](std::int64_t) {};
  std::atomic<int> parts_of_columns = 0;

 private:
  void read_range(std::int64_t first, std::int64_t count, std::byte* to) {
    visit(first);
    std::copy_n(bytes.begin() + first, count, to);
  }
  void write_range(std::int64_t first, std::int64_t count, const std::byte* from) {
    std::copy_n(from, count, bytes.begin() + first);
  }

  BlockTable blocks_;
  bool by_rows_;
};

TEST(PinnedRing, CarriesColumnsOfAnyLengthWholeOrByRows) {
  test::Thinned thinned(3);
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 28);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    for (const bool by_rows : {false, true}) {
      for (const std::int64_t rows : {1, 1000, 32'769, 65'537, 131'072}) {
        if (thinned.skips()) continue;
        SCOPED_TRACE(testing::Message() << threads << " threads, " << rows << " rows, " << by_rows);
        PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = threads});
        ColumnStore store(rows, 11, by_rows);
        const std::vector<std::byte> expected = store.bytes;
        const std::int64_t column = rows * 8;
        const Buffer there = device->allocate(11 * column);
        ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 2});
        ring.send(*queue, there.data() + 2 * column, store, {{0, 0, 0}, 2, 9});
        queue->synchronize();
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), there.data()));
        std::ranges::fill(store.bytes, std::byte{0});
        std::atomic<int> arrived = 0;
        ring.receive(*queue, there.data(), store, {{0, 0, 0}, 0, 11},
                     [&](const std::exception_ptr& failure) { arrived += failure ? 100 : 1; });
        ring.finish();
        EXPECT_EQ(arrived, 1);
        EXPECT_TRUE(store.bytes == expected);
        EXPECT_EQ(store.parts_of_columns > 0, by_rows && rows > 32'768);
      }
    }
  }
}

/// The threads go on to the next slot while a piece of the first is not done.
TEST(PinnedRing, BeginsTheNextSlotBeforeTheFirstIsFull) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 4, .threads = 3});
  ColumnStore store(kSlot / 8, 6, true);
  const std::vector<std::byte> expected = store.bytes;
  std::mutex mutex;
  std::condition_variable changed;
  bool next_begun = false;
  bool met = false;
  store.visit = [&](std::int64_t first) {
    std::unique_lock lock(mutex);
    if (first == 0) {
      met = changed.wait_for(lock, std::chrono::seconds(5), [&] { return next_begun; });
    } else if (first >= kSlot) {
      next_begun = true;
      changed.notify_all();
    }
  };
  const Buffer there = device->allocate(6 * kSlot);
  ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 6});
  queue->synchronize();
  EXPECT_TRUE(met) << "the second slot waited for the first";
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), there.data()));
}

/// Nothing is copied of a slot that cannot be filled, nor of those behind it; the slots are used
/// again.
TEST(PinnedRing, CopiesNothingFromWhereAReadFails) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 2, .threads = threads});
    ColumnStore store(kSlot / 8, 9, true);
    const Buffer there = device->allocate(9 * kSlot);
    for (std::int64_t bad = 0; bad < 9; bad += test::kSanitized ? 4 : 1) {
      std::fill_n(there.data(), 9 * kSlot, std::byte{0xA5});
      store.visit = [bad](std::int64_t first) {
        if (first == bad * kSlot + kSlot / 2) fail(ErrorKind::storage, "test", "bad {}", bad);
      };
      EXPECT_THROW(ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 9}), Error);
      queue->synchronize();
      EXPECT_TRUE(std::all_of(there.data() + bad * kSlot, there.data() + 9 * kSlot,
                              [](std::byte b) { return b == std::byte{0xA5}; }))
          << "something was copied, slot " << bad << ", " << threads << " threads";
      store.visit = [](std::int64_t) {};
      ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 9});
      queue->synchronize();
      EXPECT_TRUE(std::equal(store.bytes.begin(), store.bytes.end(), there.data()));
    }
  }
}

TEST(PinnedRing, ReadsNoMoreThanWhatIsBegunOnceItIsAbandoned) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 27);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 4, .threads = threads});
    ColumnStore store(kSlot / 8, 40, true);
    std::atomic<int> read = 0;
    store.visit = [&](std::int64_t first) {
      ++read;
      if (first == 10 * kSlot) ring.abandon();
    };
    const Buffer there = device->allocate(40 * kSlot);
    ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 40});
    EXPECT_LT(read, 15 * 4) << threads << " threads";
    ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 40});
    EXPECT_LT(read, 15 * 4) << "read after it was abandoned";
    queue->synchronize();
    ring.finish();
    store.visit = [](std::int64_t) {};
    ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 40});
    queue->synchronize();
    EXPECT_TRUE(std::equal(store.bytes.begin(), store.bytes.end(), there.data()));
  }
}

/// What is expected is read beside what comes before, comes to its own place, and takes no slot
/// that others need; what is not asked for is forgotten.
TEST(PinnedRing, SendsWhatWasExpectedAndWhatWasNot) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 27);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    for (const int slots : {1, 2, 3, 12}) {
      if (test::kSanitized && (threads == 1) != (slots == 2)) continue;
      SCOPED_TRACE(testing::Message() << threads << " threads, " << slots << " slots");
      PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = slots, .threads = threads});
      ColumnStore store(kSlot / 8, 24, true);
      const Buffer there = device->allocate(24 * kSlot);
      const auto part = [](std::int64_t k) { return BlockColumns{{0, 0, 0}, 4 * k, 4}; };
      for (const bool in_turn : {true, false}) {
        std::fill_n(there.data(), 24 * kSlot, std::byte{0});
        for (std::int64_t k = 0; k < 6; ++k) {
          if (k < 5) ring.expect(store, part(in_turn ? k + 1 : (k * 5 + 2) % 6));
          ring.send(*queue, there.data() + 4 * k * kSlot, store, part(k));
        }
        queue->synchronize();
        ring.finish();
        EXPECT_TRUE(std::equal(store.bytes.begin(), store.bytes.end(), there.data()));
      }
    }
  }
}

TEST(PinnedRing, WhatGoesWrongWithTheExpectedIsThrownInItsTurn) {
  const std::unique_ptr<Device> device = make_host_device(0, std::int64_t{1} << 26);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  for (const int threads : {1, 4}) {
    PinnedRing ring(*device, {.slot_bytes = kSlot, .slots = 6, .threads = threads});
    ColumnStore store(kSlot / 8, 8, true);
    std::atomic<int> read = 0;
    store.visit = [&](std::int64_t first) {
      ++read;
      if (first == 4 * kSlot) fail(ErrorKind::storage, "test", "bad");
    };
    const Buffer there = device->allocate(8 * kSlot);
    std::fill_n(there.data(), 8 * kSlot, std::byte{0xA5});
    ring.expect(store, {{0, 0, 0}, 4, 4});
    ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 4});
    EXPECT_THROW(ring.send(*queue, there.data() + 4 * kSlot, store, {{0, 0, 0}, 4, 4}), Error);
    queue->synchronize();
    EXPECT_TRUE(std::equal(there.data(), there.data() + 4 * kSlot, store.bytes.begin()));
    EXPECT_EQ(std::count(there.data() + 4 * kSlot, there.data() + 8 * kSlot, std::byte{0xA5}),
              4 * kSlot);
    // The expected block is not asked for: nothing is read of it once the ring is at rest.
    ring.expect(store, {{0, 0, 0}, 4, 4});
    ring.send(*queue, there.data(), store, {{0, 0, 0}, 0, 4});
    ring.finish();
    const int then = read;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(read, then);
    queue->synchronize();
  }
}

}  // namespace
}  // namespace strata::test
