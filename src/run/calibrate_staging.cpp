// What calibrate() measures of the host on the way of blocks that are not page-locked.
//
// Method: a ring that is idle takes in a block that just fits into its bounce buffers, so that
// filling never waits for a copy. Rings have their own threads for each device, and each is taken
// to be as fast beside the others.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/elapsed_time.hpp"
#include "run/calibrate_devices.hpp"
#include "run/host_pinner.hpp"
#include "store/memory_store.hpp"

namespace strata {
namespace {

constexpr std::int64_t kColumnBytes = 8192;

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return std::max(*middle, 1e-9);
}

/// One block of at most `bytes` bytes, in columns.
BlockTable table_of_block(std::int64_t bytes) {
  const std::int64_t size = bytes_of(Element::fp64);
  const std::int64_t rows = std::clamp<std::int64_t>(bytes / size, 1, kColumnBytes / size);
  const std::int64_t cols = std::max<std::int64_t>(bytes / (rows * size), 1);
  BlockTable blocks;
  blocks.add({.name = "A", .rows = rows, .cols = cols, .tile_rows = rows, .tile_cols = cols});
  return blocks;
}

}  // namespace

LinkRate measure_staging(DeviceSet& devices, Queue& queue) {
  PinnedRing& ring = devices.ring(0, 0);
  const RingShape& shape = ring.shape();
  const std::int64_t most =
      std::min(shape.slots * shape.slot_bytes, devices.device(0).budget_bytes() / 2);
  const BlockTable blocks = table_of_block(most);
  const BlockId id(0, 0, 0);
  const auto home = std::make_shared<FamilyMemory>(blocks, 0);
  std::memset(home->data(), 1, static_cast<std::size_t>(blocks.bytes(id)));
  MemoryStore store(blocks, {home});
  store.commit(id);
  const Buffer memory = devices.device(0).allocate(blocks.bytes(id));
  const auto time = [&](std::int64_t columns, int repeats) {
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      ring.send(queue, memory.data(), store, {id, 0, columns});
      times.push_back(seconds_since(start));
      queue.synchronize();
    }
    return median(std::move(times));
  };
  const std::int64_t columns = blocks.extent(id).cols;
  (void)time(columns, 2);  // the buffers are made, the threads are there
  const double latency = time(1, 21);
  const double whole = time(columns, 9);
  const auto bytes = static_cast<double>(blocks.bytes(id));
  const double buffers = std::ceil(bytes / static_cast<double>(shape.slot_bytes));
  // At most half of the time is latency: a block may be small.
  return {bytes / std::max(whole - buffers * latency, whole / 2), latency};
}

double measure_pinning(DeviceSet& devices) {
  const BlockTable blocks = table_of_block(kPinningPieceBytes);
  const FamilyMemory memory(blocks, 0);
  const HostPinner pinner(devices, memory.data(), blocks.total_bytes(0), HostPinning::automatic);
  const auto bytes = static_cast<double>(pinner.pinned_bytes());
  return bytes > 0 ? bytes / std::max(pinner.seconds(), 1e-9) : 0;
}

}  // namespace strata
