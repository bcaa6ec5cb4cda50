#pragma once
// PinnedRing: a few slots of pinned host memory through which blocks travel whose home is not
// pinned, and other bytes of the host, to one device and from it.
//
// Contract:
// * One thread at a time calls `send` and `receive`, the one that issues the device's steps. It
//   runs ahead of the queues by as many slots as there are, and then waits for the oldest.
// * What is in a queue never waits for the ring: a copy to the device is put there when its slot
//   has been filled, and a slot that was copied into is emptied by a thread of the ring once the
//   copy's event is done. So there is nothing that could wait in a circle.
// * While a slot is being filled the next ones are begun. Copies are issued in order, and when
//   `send` returns, all of its own are. Where it throws, nothing is copied from there on. What is
//   expected of the next call is begun too; what goes wrong with that is thrown by that call.
// * Slots are allocated when first needed, and used again once their copy is done, the last of
//   those that are done first: what it holds is in the caches of the host. Where they are larger
//   than kSmallSlotBytes, what has no more than that has small slots of its own, which are
//   allocated together. Page-locking a slot for a large block takes tens of milliseconds on some
//   machines, and a sum of a few numbers is not to wait for that.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "device/device.hpp"
#include "store/block_store.hpp"

namespace strata {

inline constexpr std::int64_t kSmallSlotBytes = std::int64_t{64} << 10;

struct RingShape {
  /// At 50 GB/s a copy of 8 MiB takes 160 µs, and issuing it about ten. A tile of order 2048 is
  /// four of them.
  std::int64_t slot_bytes = std::int64_t{8} << 20;
  int slots = 12;   ///< in each direction: three such tiles
  int threads = 1;  ///< that fill and empty them together
  int node = -1;    ///< of NUMA, on which the slots lie; -1: anywhere
};

/// Columns first … first + count − 1 of a block.
struct BlockColumns {
  BlockId id;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const BlockColumns&) const = default;
};

class PinnedRing {
 public:
  /// Called when columns have come home, with what went wrong.
  using Arrived = std::function<void(std::exception_ptr)>;

  /// `device` outlives the ring. A slot holds the fewest columns of a block that a store moves by
  /// themselves (BlockStore::columns_min): `shape.slot_bytes` says that much or more.
  PinnedRing(Device& device, const RingShape& shape);
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;
  ~PinnedRing();

  [[nodiscard]] const RingShape& shape() const noexcept { return shape_; }

  /// Reads columns from the store and copies them to `to` on the device.
  void send(Queue& queue, std::byte* to, BlockStore& store, const BlockColumns& columns);
  /// What a later call will send, of a block that never changes. It is forgotten by `finish`, or
  /// for what is expected later.
  void expect(BlockStore& store, const BlockColumns& columns);
  /// Copies `bytes` bytes, of which a slot holds as many, to `to` on the device, when several
  /// threads have called fill(0, slot) … fill(pieces − 1, slot). Throws Error{misuse} for more
  /// bytes than that, and what `fill` throws; then nothing is copied.
  void send(Queue& queue, std::byte* to, std::int64_t bytes, std::int64_t pieces,
            const std::function<void(std::int64_t, std::byte*)>& fill);
  /// Copies `data`, which may change as soon as this has returned, to `to` on the device.
  void send(Queue& queue, std::byte* to, std::span<const std::byte> data);
  /// Copies columns from `from` on the device and writes them into the store. `arrived` is called
  /// once, by a thread of the ring; not at all if the ring was abandoned or the queue failed before
  /// all was home.
  void receive(Queue& queue, const std::byte* from, BlockStore& store, const BlockColumns& columns,
               Arrived arrived);
  /// The same for `bytes` bytes, of which a slot holds as many: when they are there, several
  /// threads call take(0, slot) … take(pieces − 1, slot). Throws Error{misuse} for more bytes than
  /// that.
  void receive(Queue& queue, const std::byte* from, std::int64_t bytes, std::int64_t pieces,
               std::function<void(std::int64_t, const std::byte*)> take, Arrived arrived);
  /// Copies from `from` on the device to `to`: they are there when finish() has returned, unless
  /// the ring was abandoned or the queue failed.
  void receive(Queue& queue, const std::byte* from, std::span<std::byte> to);
  /// Blocks until everything that was received is home.
  void finish() noexcept;
  /// From now until `finish` returns nothing is read or written any more.
  void abandon() noexcept { abandoned_.store(true, std::memory_order_release); }

 private:
  class Fillings;
  class Shipment;
  struct Slots;
  struct Slot {
    std::byte* data;
    Slots& of;
    Event copied;
  };
  /// Slots of one size.
  struct Slots {
    std::int64_t bytes = 0;
    int at_once = 1;  ///< that are allocated together
    std::vector<Buffer> memory;
    std::vector<std::byte*> unused;
    std::vector<std::unique_ptr<Slot>> in;
    std::vector<Slot*> empty;   ///< of `in`
    std::deque<Slot*> copying;  ///< of `in`, in the order of their copies
    std::vector<std::unique_ptr<Slot>> out;
    std::deque<Slot*> idle;  ///< of `out`; changed under the mutex
  };
  using Take = std::function<void(const std::byte*)>;
  /// What is on its way home, in several slots.
  struct Delivery {
    Arrived arrived;
    std::exception_ptr failure;
    bool lost = false;  ///< something of it will never be there
  };
  struct Parcel {
    Slot* slot;
    const Queue& queue;
    Take take;
    std::shared_ptr<Delivery> delivery;
    bool last;
  };

  [[nodiscard]] Slots& slots_for(std::int64_t bytes) noexcept;
  [[nodiscard]] std::unique_ptr<Slot> make_slot(Slots& slots);
  /// Whether a slot can be filled now, without waiting for a copy.
  [[nodiscard]] bool has_slot_to_fill(Slots& slots);
  [[nodiscard]] Slot& slot_to_fill(Slots& slots);
  /// What was expected, or a new one.
  [[nodiscard]] std::unique_ptr<Shipment> shipment_of(BlockStore& store,
                                                      const BlockColumns& columns);
  /// Begins slots of what is expected, beside `others` that are being filled.
  void fill_ahead(std::int64_t others);
  [[nodiscard]] Slot& slot_to_receive(std::int64_t bytes);
  [[nodiscard]] bool abandoned() const noexcept {
    return abandoned_.load(std::memory_order_acquire);
  }
  void put_parcel(Queue& queue, const std::byte* from, std::int64_t bytes, Take take,
                  const std::shared_ptr<Delivery>& delivery, bool last);
  void bring_home();
  void deliver(const Parcel& parcel);

  Device& device_;
  RingShape shape_;
  WorkCrew crew_;
  Slots large_, small_;
  std::deque<std::unique_ptr<Shipment>> expected_;
  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Parcel> parcels_;
  int under_way_ = 0;  // parcels that are not home
  bool closed_ = false;
  std::thread home_thread_;
};

/// Until the end of its scope all is home, whatever is thrown: for those who let a ring write to
/// what may then be gone.
class RingGuard {
 public:
  explicit RingGuard(PinnedRing& ring) : ring_(ring) {}
  RingGuard(const RingGuard&) = delete;
  RingGuard& operator=(const RingGuard&) = delete;
  ~RingGuard() { ring_.finish(); }

 private:
  PinnedRing& ring_;
};

}  // namespace strata
