#pragma once
// ResidentRun: a schedule on one device that holds all of its blocks.
//
// Contract: the tasks in order, on one queue, as run_in_order() has it, but that blocks have their
// places in one buffer from the beginning on, nothing is waited for between tasks, and nothing
// goes home unless it is asked for: for factors that are used where they are. On several queues
// steps of the schedule take turns, and a task waits for those on other queues that it depends on:
// whoever wrote its operands last, and, of what it writes, whoever read it since. Blocks are
// packed, each at a multiple of 256 bytes. The device outlives it. Not thread-safe.

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.hpp"
#include "run/pinned_ring.hpp"
#include "run/resident_tasks.hpp"
#include "schedule/task.hpp"
#include "store/memory_store.hpp"
#include "strata/trace.hpp"

namespace strata {

class ResidentRun {
 public:
  /// The bytes that it takes of a device's budget.
  [[nodiscard]] static std::int64_t bytes_of(const BlockTable& blocks);

  /// `device` is number `index` of the backend. Throws Error{memory} if they are not there.
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Backend& backend, int index,
              Device& device, int queues = 1);
  ~ResidentRun();

  /// Blocks of a family ← what is at home, or comes from its source, whose calls several threads
  /// may make at once. Through `ring`, one of this device that outlives what was begun: when run()
  /// is done, or the queue was waited for.
  void upload(int family, MemoryStore& store, PinnedRing& ring);
  /// One block ← `data`, in host memory or in that of the device: begun, and done when run() is.
  /// What the device does not reach goes through `ring`, as above.
  void upload(BlockId id, std::int64_t first_byte, std::span<const std::byte> data,
              PinnedRing& ring);
  /// Numbers of the caller, in host memory, to memory of the device and back: begun; done when
  /// finish() has returned. Through `ring`, as above.
  void send(std::byte* to, std::span<const std::byte> data, PinnedRing& ring);
  void receive(const std::byte* from, std::span<std::byte> data, PinnedRing& ring);
  /// Waits for what was begun; throws what failed.
  void finish(PinnedRing& ring);
  /// All tasks; returns when they are done, and the seconds that the device took for them. Throws
  /// what a kernel throws. `trace` gets a span for each task.
  double run(Trace* trace = nullptr);
  /// Blocks of a family to their home, through `ring`, by several threads that may write different
  /// blocks, or columns of one, at once.
  void download(int family, MemoryStore& store, PinnedRing& ring);

  /// Calls of a kernel behind what was begun before; returns when they have been put into the
  /// queue. `views` are views of blocks, or of other memory of the device: the operands of each
  /// call, one call after the other.
  void call(const Operation& operation, std::span<const BlockView> views,
            std::uint32_t variant = 0);
  void call(const Operation& operation, std::initializer_list<BlockView> views,
            std::uint32_t variant = 0) {
    call(operation, std::span<const BlockView>(views.begin(), views.size()), variant);
  }
  /// Whether the device's kernels reach host or device memory of the caller as it is.
  [[nodiscard]] bool reaches(const void* first, std::int64_t bytes) const {
    return backend_.reaches(index_, first, bytes);
  }
  [[nodiscard]] BlockView view(BlockId id) const;
  /// The first one, on which all but run() takes place.
  [[nodiscard]] Queue& queue() noexcept { return *queues_.front(); }
  [[nodiscard]] int queues() const noexcept { return static_cast<int>(queues_.size()); }

 private:
  [[nodiscard]] std::byte* at(BlockId id) const;
  /// A block, and its bytes behind the first one of its part.
  struct Placed {
    BlockId id;
    std::int64_t offset;
  };
  void download_plainly(std::span<const Placed> blocks, const std::byte* first, std::int64_t bytes,
                        MemoryStore& store);
  /// Calls part(blocks, first, bytes) with blocks of a family that follow each other, from where
  /// the first one lies to the end of the last one: at most `most` bytes of many blocks, or one
  /// block.
  template <class Part>
  void for_parts(int family, std::int64_t most, const Part& part) const;
  /// Throws Error{device} if there is none.
  [[nodiscard]] KernelFunction kernel_of(const Operation& operation,
                                         const Elements& elements) const;
  void prepare();
  /// When each task began and ended, by the device's clock, whose `zero` is the beginning.
  void put_spans(std::span<const std::pair<Event, Event>> times, double zero, Trace& trace) const;
  /// Waits for all queues; throws the first failure.
  void synchronize();

  std::shared_ptr<const Schedule> schedule_;
  const Backend& backend_;
  int index_;
  std::vector<std::int64_t> place_;  // by block, in the order of BlockTable::index
  Buffer memory_;
  std::string name_;  // of the device
  std::vector<std::unique_ptr<Queue>> queues_;
  std::optional<ResidentTasks> tasks_;  // from the first run on
};

}  // namespace strata
