// Plain bytes through bounce buffers: every length, by every number of threads, into the right
// place.

#include "run/pinned_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "device/device_host.hpp"
#include "strata/error.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kSlot = std::int64_t{1} << 20;

std::vector<std::byte> bytes_of(std::int64_t count, unsigned seed) {
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
      const std::vector<std::byte> expected = bytes_of(count, 7);
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
      const std::vector<std::byte> expected = bytes_of(count, 9);
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
    ring.send(*queue, to.data(), bytes_of(5 * kSlot, seed));
  }
  queue->synchronize();
  const std::vector<std::byte> expected = bytes_of(5 * kSlot, 3);
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
    sent.push_back(bytes_of(round % 2 == 0 ? kSmall : 2 * kSlot, round));
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

}  // namespace
}  // namespace strata::test
