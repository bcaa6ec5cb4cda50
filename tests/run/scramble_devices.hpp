#pragma once
// What runs of random schedules share: their devices, and what counts of their results.

#include "run/device_set.hpp"
#include "tests/schedule/scramble.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {

/// What counts when all is done: temporary blocks do not.
inline Bytes results_of(BlockStore& store) {
  Bytes all = contents_of(store);
  store.blocks().for_each(kTemporary, [&](BlockId id) {
    all[static_cast<std::size_t>(store.blocks().index(id))].clear();
  });
  return all;
}

/// Devices of which every third copies as GPUs do, and whose events the others do not know.
inline DeviceSet mixed_devices(const Backend& host, const Backend& emulated, int count) {
  std::vector<DevicePlace> places;
  for (int d = 0; d < count; ++d) places.push_back({d % 3 == 1 ? &emulated : &host, d});
  RunOptions options;
  options.device_memory_bytes = 1 << 20;
  options.compute_queues = 3;
  return {places, options};
}

}  // namespace strata::test
