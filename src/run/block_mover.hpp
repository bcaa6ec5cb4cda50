#pragma once
// BlockMover: how blocks travel between a store and the devices of one run.
//
// Contract:
// * Where queues run host code they read and write the store themselves. Other devices copy:
//   straight from and to a home that is pinned, else through the ring of the device. What was never
//   written comes through the ring from its source.
// * `load` and `store` are called by the thread that issues the steps of the device, in the plan's
//   order and after what they wait for has been issued: that is how a load finds its block at home.
//   They wait, on the host, until what the ring still carries home of the block has arrived.
// * A block that cannot be read while a queue has failed is no failure of its own: most likely it
//   is what that queue did not store. Its slot keeps what was there, and the run ends anyway.
// * Traffic is what the plan says; what the host copies within its memory is not counted.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "run/device_set.hpp"
#include "store/block_store.hpp"

namespace strata {

class BlockMover {
 public:
  using Failed = std::function<void(std::exception_ptr)>;
  using Failing = std::function<bool()>;

  /// `failed` is told when a block could not be written home, by any thread; `failing` tells
  /// whether something in the run has failed.
  BlockMover(DeviceSet& devices, BlockStore& store, const PlanLayout& layout, Failed failed,
             Failing failing);
  BlockMover(const BlockMover&) = delete;
  BlockMover& operator=(const BlockMover&) = delete;

  /// Tells that a device will load a block: what never changes may be read before that.
  void expect(int device, BlockId id);
  void load(Queue& queue, int device, BlockId id, std::byte* to);
  /// `last`: no later step writes the block.
  void store(Queue& queue, int device, BlockId id, const std::byte* from, bool last = false);
  /// The copies of a store of a device are done: the block counts as written, if it did not take
  /// the ring. What did counts as written when it is home.
  void stored(int device, BlockId id);
  /// Waits until what the ring still carries home of a block has arrived, or the run is over.
  void await_home(BlockId id);

  /// Wakes all waiting threads, and the rings stop to read and write.
  void abandon() noexcept;
  /// Blocks until everything is home.
  void finish() noexcept;

 private:
  /// State of a block that is written back through the ring.
  struct Coming {
    int parts = 0;        // that are not there yet
    bool copied = false;  // its copies are done
  };

  /// Copies columns of a block that lie in one pinned range, or sends them through the ring.
  template <class Direct, class Ringed>
  void cut_by_pinning(BlockId id, const std::byte* home, Direct direct, Ringed ringed) const;
  void read_home(BlockId id, std::byte* to);
  /// The memory in which the block rests, if it was written; null: it comes by `read`.
  [[nodiscard]] const std::byte* home_of(BlockId id);
  [[nodiscard]] bool is_home(BlockId id) const;
  void expect_home(BlockId id, int parts);
  void note_home(BlockId id, std::exception_ptr failure);

  BlockStore& store_;
  const PinnedRanges& pinned_;
  std::vector<PinnedRing*> rings_;         // by device; null where queues run host code
  std::vector<std::atomic<bool>> stored_;  // by copies of this run, by index
  Failed failed_;
  Failing failing_;
  std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  std::map<BlockId, Coming> coming_home_;
  bool abandoned_ = false;
};

}  // namespace strata
