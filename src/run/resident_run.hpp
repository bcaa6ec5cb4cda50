#pragma once
// ResidentRun: a schedule on devices that hold all of its blocks.
//
// Contract: the tasks in order, on one queue, as run_in_order() has it, but that blocks have their
// places in one buffer from the beginning on, nothing is waited for between tasks, and nothing
// goes home unless it is asked for: for factors that are used where they are. On several queues
// steps of the schedule take turns, of those of one device, and a task waits for those on other
// queues that it depends on: whoever wrote its operands last, and, of what it writes, whoever read
// it since. On several devices of one backend each holds the blocks that its tasks use, and what
// another one has made of them is copied to it, on a queue of its own; a task may be one that
// several of them carry out together (kernels/shared_call.hpp). Tasks that are urgent follow each
// other on a queue of high priority, so that what waits for them does not wait for others, too.
// Blocks are packed, each at a multiple of 256 bytes. The devices outlive it. Not thread-safe.

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
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
  /// The bytes that it takes of the budget of a device that holds all blocks, and of each device's.
  [[nodiscard]] static std::int64_t bytes_of(const BlockTable& blocks);
  [[nodiscard]] static std::vector<std::int64_t> bytes_of(const Schedule& schedule);

  /// A device, and its number among those of the backend.
  struct Place {
    int index;
    Device* device;
  };

  /// `queues` on each of the schedule's devices. Throws Error{memory} if they are not there.
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Backend& backend,
              std::span<const Place> devices, int queues = 1);
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Backend& backend, int index,
              Device& device, int queues = 1)
      : ResidentRun(std::move(schedule), backend, std::array{Place{index, &device}}, queues) {}
  ~ResidentRun();

  // What follows concerns the first device unless another one is named.

  /// Blocks of a family, of those that the device holds ← what is at home, or comes from its
  /// source, whose calls several threads may make at once. Through `ring`, one of this device that
  /// outlives what was begun: when run() is done, or the queue was waited for.
  void upload(int family, MemoryStore& store, PinnedRing& ring, int device = 0);
  /// One block ← `data`, in host memory or in that of the device: begun, and done when run() is.
  /// What the device does not reach goes through `ring`, as above.
  void upload(BlockId id, std::int64_t first_byte, std::span<const std::byte> data,
              PinnedRing& ring);
  /// A block that the first device holds, to all others that do: begun behind what was begun there.
  void share(BlockId id);
  /// Numbers of the caller, in host memory, to memory of the device and back: begun; done when
  /// finish() has returned. Through `ring`, as above.
  void send(std::byte* to, std::span<const std::byte> data, PinnedRing& ring);
  void receive(const std::byte* from, std::span<std::byte> data, PinnedRing& ring);
  /// Waits for what was begun; throws what failed.
  void finish(PinnedRing& ring);
  /// All tasks; returns when they are done, and the seconds that the devices took for them. Throws
  /// what a kernel throws. `trace`, of one device, gets a span for each task.
  double run(Trace* trace = nullptr);
  /// Blocks of a family to their home, of those that the device has made last, or that nobody makes
  /// and it is the first to hold; through `ring`, by several threads that may write different
  /// blocks, or columns of one, at once.
  void download(int family, MemoryStore& store, PinnedRing& ring, int device = 0);

  /// Calls of a kernel behind what was begun before; returns when they have been put into the
  /// queue. `views` are views of blocks, or of other memory of the device: the operands of each
  /// call, one call after the other.
  void call(const Operation& operation, std::span<const BlockView> views,
            std::uint32_t variant = 0) {
    call_on(queue(), operation, views, variant);
  }
  void call(const Operation& operation, std::initializer_list<BlockView> views,
            std::uint32_t variant = 0) {
    call_on(queue(), operation, std::span<const BlockView>(views.begin(), views.size()), variant);
  }
  /// The same on any of its queues.
  void call_on(Queue& queue, const Operation& operation, std::span<const BlockView> views,
               std::uint32_t variant);
  /// Whether the device's kernels reach host or device memory of the caller as it is.
  [[nodiscard]] bool reaches(const void* first, std::int64_t bytes) const {
    return backend_.reaches(places_.front().index, first, bytes);
  }
  /// Of a block that the device holds.
  [[nodiscard]] BlockView view(BlockId id, int device = 0) const;
  /// Number `q` of a device's; the first one is that on which all but run() takes place.
  [[nodiscard]] Queue& queue(int device = 0, int q = 0) noexcept {
    return *queues_[static_cast<std::size_t>(device * stride_ + q)];
  }
  /// Of each device, those for tasks.
  [[nodiscard]] int queues() const noexcept { return queues_each_; }
  [[nodiscard]] int devices() const noexcept { return static_cast<int>(places_.size()); }
  /// Copied between devices by share() and run() since the last run(). What devices that share a
  /// task write to each other is not counted.
  [[nodiscard]] std::int64_t copied_bytes() const noexcept { return copied_bytes_; }
  /// Of the device that holds most.
  [[nodiscard]] std::int64_t largest_bytes() const noexcept;

 private:
  [[nodiscard]] std::byte* at(BlockId id, int device) const;
  [[nodiscard]] bool holds(BlockId id, int device) const;
  /// Whether the device has the value of a block that goes home.
  [[nodiscard]] bool has_latest(BlockId id, int device) const;
  /// A block, and its bytes behind the first one of its part.
  struct Placed {
    BlockId id;
    std::int64_t offset;
  };
  void download_plainly(std::span<const Placed> blocks, const std::byte* first, std::int64_t bytes,
                        MemoryStore& store, int device);
  /// Calls part(blocks, first, bytes) with blocks of a family that follow each other on a device,
  /// from where the first one lies to the end of the last one, of blocks for which has(block)
  /// holds: at most `most` bytes of many, or one.
  template <class Has, class Part>
  void for_parts(int family, int device, std::int64_t most, const Has& has, const Part& part) const;
  /// Throws Error{device} if there is none.
  [[nodiscard]] KernelFunction kernel_of(const Operation& operation,
                                         const Elements& elements) const;
  [[nodiscard]] std::vector<BlockView> bring_operands(ResidentTasks& tasks, const Task& task,
                                                      std::span<const TaskOperand> operands,
                                                      int device) const;
  void prepare();
  void issue(const ResidentTasks::Entry& entry, std::vector<Event>& events);
  /// When each task began and ended, by the device's clock, whose `zero` is the beginning.
  void put_spans(std::span<const std::pair<Event, Event>> times, double zero, Trace& trace) const;
  /// Waits for all queues; throws the first failure.
  void synchronize();

  std::shared_ptr<const Schedule> schedule_;
  const Backend& backend_;
  std::vector<Place> places_;  // by device
  /// By block, in the order of BlockTable::index: where it lies on each device; -1: nowhere.
  std::vector<std::vector<std::int64_t>> offset_;
  std::vector<Buffer> memory_;  // of each device
  int queues_each_;
  int stride_;  // of each device: with several also a queue for urgent tasks, and one for copies
  std::vector<std::unique_ptr<Queue>> queues_;  // device by device
  std::optional<ResidentTasks> tasks_;          // from the first run on
  std::int64_t shared_bytes_ = 0;               // for the next run
  std::int64_t copied_bytes_ = 0;
};

}  // namespace strata
