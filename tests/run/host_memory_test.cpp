// Host memory of a run: what is pinned, who pins it and when.

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "base/bytes.hpp"
#include "run/host_pinner.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/pinned_backend.hpp"

namespace strata::test {
namespace {

// ---- PinnedRanges

TEST(PinnedRanges, SaysHowFarARangeReaches) {
  std::vector<std::byte> memory(1000);
  std::byte* m = memory.data();
  PinnedRanges ranges;
  const auto expect = [&](std::int64_t at, std::int64_t bytes, bool pinned, std::int64_t far) {
    const PinnedRanges::Answer answer = ranges.at(m + at, bytes);
    EXPECT_EQ(answer.pinned, pinned) << at;
    EXPECT_EQ(answer.bytes, far) << at;
  };
  expect(0, 1000, false, 1000);
  ranges.add(m + 100, 200);
  ranges.add(m + 300, 50);  // touches the one before
  ranges.add(m + 600, 1);
  expect(0, 1000, false, 100);
  expect(0, 60, false, 60);
  expect(99, 1, false, 1);
  expect(100, 1000, true, 200);
  expect(299, 1000, true, 1);
  expect(300, 1000, true, 50);
  expect(349, 5, true, 1);
  expect(350, 1000, false, 250);
  expect(600, 2, true, 1);
  expect(601, 399, false, 399);
  ranges.remove(m + 100);
  expect(100, 1000, false, 200);
  expect(310, 10, true, 10);
}

// ---- HostPinner

DeviceSet devices_at(const Backend& backend, const std::vector<int>& indices) {
  RunOptions options;
  options.device_memory_bytes = 1 << 20;
  return {backend, indices, options};
}

class Pinner : public ::testing::Test {
 protected:
  Pinner() : backend(faults), devices(devices_at(backend, {0, 1})) {
    BlockTable blocks;
    (void)blocks.add({.name = "A", .rows = 40, .cols = kBytes / 320});
    memory = std::make_unique<FamilyMemory>(blocks, 0);
    data = memory->data();
    bytes = blocks.total_bytes(0);
  }

  static constexpr std::int64_t kBytes = 320 * 4001;
  static constexpr std::int64_t kPiece = 64 << 10;
  FaultBackend faults;
  PinnedBackend backend;
  DeviceSet devices;
  std::unique_ptr<FamilyMemory> memory;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

TEST_F(Pinner, PinsEverythingInPiecesAndLetsGo) {
  ASSERT_EQ(bytes, kBytes);
  std::iota(reinterpret_cast<unsigned char*>(data), reinterpret_cast<unsigned char*>(data) + bytes,
            static_cast<unsigned char>(3));
  const std::vector<std::byte> before(data, data + bytes);
  for (const HostPinning how :
       {HostPinning::ahead, HostPinning::background, HostPinning::automatic}) {
    HostPinner pinner(devices, data, bytes, how, kPiece);
    EXPECT_TRUE(how != HostPinning::ahead || pinner.pinned_bytes() == bytes) << "not ahead";
    pinner.wait();
    EXPECT_EQ(pinner.pinned_bytes(), bytes);
    EXPECT_EQ(backend.ledger().pinned_bytes, bytes);
    EXPECT_GT(pinner.seconds(), 0);
    for (std::int64_t at = 0; at < bytes;) {
      const PinnedRanges::Answer answer = devices.pinned().at(data + at, bytes - at);
      ASSERT_TRUE(answer.pinned) << at;
      ASSERT_LE(answer.bytes, kPiece);
      at += answer.bytes;
    }
    EXPECT_TRUE(std::equal(before.begin(), before.end(), data)) << "the contents";
  }
  EXPECT_EQ(backend.ledger().pinned_bytes, 0);
  EXPECT_FALSE(devices.pinned().at(data, bytes).pinned);
}

TEST_F(Pinner, PinsSeveralRangesAndNothingBetweenThem) {
  constexpr std::int64_t kPage = 4096;
  const std::vector<HostRange> ranges{
      {data, kPage}, {data + 3 * kPage, 2 * kPiece}, {data, 0}, {data + 100 * kPage, kPage}};
  for (const HostPinning how : {HostPinning::ahead, HostPinning::background}) {
    HostPinner pinner(devices, ranges, how, kPiece);
    pinner.wait();
    EXPECT_EQ(pinner.pinned_bytes(), 2 * kPage + 2 * kPiece);
    EXPECT_EQ(backend.ledger().pinned_bytes, pinner.pinned_bytes());
    EXPECT_TRUE(devices.pinned().at(data, 1).pinned);
    EXPECT_FALSE(devices.pinned().at(data + kPage, 1).pinned);
    EXPECT_TRUE(devices.pinned().at(data + 3 * kPage + 2 * kPiece - 1, 1).pinned);
    EXPECT_FALSE(devices.pinned().at(data + 3 * kPage + 2 * kPiece, 1).pinned);
    EXPECT_TRUE(devices.pinned().at(data + 100 * kPage, 1).pinned);
  }
  EXPECT_EQ(backend.ledger().pinned_bytes, 0);
}

TEST_F(Pinner, AutomaticIsAheadWhereOnePieceIsAll) {
  const HostPinner pinner(devices, data, 4096, HostPinning::automatic, kPiece);
  EXPECT_EQ(pinner.pinned_bytes(), 4096);
}

TEST_F(Pinner, NeverAndOnCpuDevicesItDoesNothing) {
  const HostPinner never(devices, data, bytes, HostPinning::never, kPiece);
  EXPECT_EQ(never.pinned_bytes(), 0);
  EXPECT_EQ(backend.ledger().pinned_bytes, 0);
  DeviceSet host = devices_at(host_backend(), {0});
  const HostPinner nothing(host, data, bytes, HostPinning::ahead, kPiece);
  EXPECT_EQ(nothing.pinned_bytes(), 0);
  EXPECT_EQ(nothing.seconds(), 0);
}

TEST_F(Pinner, ARefusalAheadIsAnErrorAndInTheBackgroundTheRestStaysPageable) {
  faults.set({.refused_pin = 3});
  try {
    const HostPinner pinner(devices, data, bytes, HostPinning::ahead, kPiece);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_STREQ(error.what(), "injected: allocation 3 refused");
  }
  EXPECT_EQ(faults.buffers(), 0) << "what was pinned before is let go of";
  EXPECT_FALSE(devices.pinned().at(data, bytes).pinned);
  faults.set({.refused_pin = 3});
  HostPinner pinner(devices, data, bytes, HostPinning::background, kPiece);
  pinner.wait();
  EXPECT_GT(pinner.pinned_bytes(), 0);
  EXPECT_LE(pinner.pinned_bytes(), 2 * kPiece);
  EXPECT_FALSE(devices.pinned().at(data + 2 * kPiece, 1).pinned);
}

TEST_F(Pinner, IsStoppedInTheMiddle) {
  for (int i = 0; i < 50; ++i) {
    const HostPinner pinner(devices, data, bytes, HostPinning::background, 4096);
  }
  EXPECT_EQ(faults.buffers(), 0);
  EXPECT_FALSE(devices.pinned().at(data, bytes).pinned);
}

TEST(HostPinningNames, AreParsed) {
  EXPECT_EQ(parse_host_pinning("auto"), HostPinning::automatic);
  EXPECT_EQ(parse_host_pinning("ahead"), HostPinning::ahead);
  EXPECT_EQ(parse_host_pinning("background"), HostPinning::background);
  EXPECT_EQ(parse_host_pinning("never"), HostPinning::never);
  EXPECT_THROW((void)parse_host_pinning("now"), Error);
}

}  // namespace
}  // namespace strata::test
