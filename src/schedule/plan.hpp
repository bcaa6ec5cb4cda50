#pragma once
// Plan: a Schedule turned into steps on the queues of devices of bounded memory. Pure data.
//
// Contract:
// * Each device has a copy-in queue, a copy-out queue and `compute_queues` compute queues, and a
// queue for copies from other devices where the machine links them; a queue runs its steps in
// order.
//   A step waits only for steps that stand before it in the plan, so a plan cannot deadlock.
// * Device memory is an arena of slots: a family of blocks has its own slots, all of that family's
// largest size.
// * A block has one writer at a time. What another device needs travels through the host, or, where
// that is faster by the machine's rates, from a device that has its latest value in a slot; that
// slot is not written again before the copy is done. A written block goes home
//   as soon as no later task writes it, or when its slot is needed.
// * Equal inputs give byte-equal plans. No device, disk or thread is touched.
// * Steps are made in windows; totals are known before the first step is run, from a first pass
// over the tasks. Method: tasks are planned in program order. The operands of a task that are not
// on its device get a free slot, or the slot of a victim: the least recently used block (v3), or
// the one whose next use lies furthest in the future (opt; Belady, "A study of replacement
// algorithms for a virtual-storage computer", 1966). A load waits only for the last use of its
// slot, so it runs ahead of the computation as far as memory allows.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "schedule/task.hpp"
#include "strata/machine.hpp"
#include "strata/options.hpp"

namespace strata {

/// `peer` is a load whose source is a slot of another device.
enum class StepKind : std::uint8_t { load, store, compute, peer };

/// "Queue `queue` has done its first `sequence` steps."
struct Wait {
  std::uint16_t queue = 0;
  std::uint64_t sequence = 0;
  bool operator==(const Wait&) const = default;
};

struct Step {
  StepKind kind = StepKind::compute;
  std::uint16_t queue = 0;     ///< global number: see PlanLayout::queue
  std::uint64_t sequence = 0;  ///< 1, 2, … within its queue
  Task task;                   ///< compute: the task; else `out` is the block that moves
  /// Of out and inputs, numbered within the family; of a peer copy, on the device and on its
  /// source.
  std::array<std::int32_t, 3> slots{-1, -1, -1};
  std::uint16_t source = 0;      ///< peer: the device from which the block is copied
  std::uint32_t wait_begin = 0;  ///< into PlanWindow::waits
  std::uint32_t wait_count = 0;
};

struct PlanWindow {
  std::vector<Step> steps;
  std::vector<Wait> waits;
};

/// The slots of one family in the arena of a device (all devices alike).
struct SlotRange {
  std::int64_t offset = 0;      ///< bytes from the arena's start
  std::int64_t slot_bytes = 0;  ///< a multiple of 256
  std::int64_t count = 0;
};

struct PlanLayout {
  std::vector<SlotRange> slots;  ///< by family
  std::int64_t arena_bytes = 0;
  int compute_queues = 1;
  int devices = 1;
  bool urgent = false;  ///< there is a compute queue of high priority beside those
  bool peers = false;   ///< there are copies between devices, and queues for them

  static constexpr int kCopyIn = 0;
  static constexpr int kCopyOut = 1;
  static constexpr int kFirstCompute = 2;
  /// The local number of the queue for urgent tasks, behind the other compute queues.
  [[nodiscard]] int urgent_compute() const noexcept { return kFirstCompute + compute_queues; }
  /// The local number of the queue of copies from other devices, behind all compute queues.
  [[nodiscard]] int peer_in() const noexcept { return urgent_compute() + (urgent ? 1 : 0); }
  [[nodiscard]] int queues_per_device() const noexcept { return peer_in() + (peers ? 1 : 0); }
  [[nodiscard]] int queues() const noexcept { return devices * queues_per_device(); }
  [[nodiscard]] int queue(int device, int local) const noexcept {
    return device * queues_per_device() + local;
  }
};

/// What a plan adds up to.
struct PlanTotals {
  Traffic traffic;
  double flops = 0;
  std::int64_t tasks = 0;
  std::int64_t steps = 0;
  std::int64_t loads = 0;
  std::int64_t stores = 0;
  std::int64_t peer_copies = 0;
  bool operator==(const PlanTotals&) const = default;
};

/// Which block leaves when a slot is needed.
enum class Eviction : std::uint8_t { least_recently_used, furthest_next_use };

/// What may stay on a device when a task is done with it.
enum class Keep : std::uint8_t {
  nothing,      ///< the output goes home after every task, and all operands leave
  accumulator,  ///< inputs leave, the output stays until its last update
  all,          ///< whatever there is room for
};

struct PlanOptions {
  Eviction eviction = Eviction::furthest_next_use;
  Keep keep = Keep::all;
  /// Loads and stores go through the compute queue of the task that they serve; else through copy
  /// queues of their own, where they run ahead.
  bool copies_in_stream = false;
  /// Only the first compute queue of each device is used.
  bool one_queue = false;
  /// Urgent tasks have a compute queue of their own on each device, of high priority; not together
  /// with one_queue or copies_in_stream.
  bool urgent_queue = false;
  /// Keep the diagonal block of the current column as long as anything else can leave (v3).
  bool pin_diagonal = false;
  /// Tasks whose uses are known ahead of the one being planned.
  std::int64_t lookahead = 1 << 18;
};

class Plan {
 public:
  /// Plans `schedule` on `machine`. Throws Error{memory} when a device budget does not suffice,
  /// naming the smallest that would, and Error{device} when the backend lacks a kernel.
  Plan(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options);

  [[nodiscard]] const Schedule& schedule() const noexcept { return *schedule_; }
  [[nodiscard]] const Machine& machine() const noexcept { return machine_; }
  [[nodiscard]] const PlanOptions& options() const noexcept { return options_; }
  [[nodiscard]] const PlanLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const PlanTotals& totals() const noexcept { return totals_; }

  /// One line a step, e.g. "c0/2 #5 gemm A(3,1) A(3,0) A(1,0) slots 2 0 1 after c0/0 #4".
  void write_text(std::ostream& out) const;

 private:
  std::shared_ptr<const Schedule> schedule_;
  Machine machine_;
  PlanOptions options_;
  PlanLayout layout_;
  PlanTotals totals_;
};

/// The least device memory with which `schedule` can be planned, in bytes.
[[nodiscard]] std::int64_t smallest_budget_bytes(const Schedule& schedule);

/// Makes the steps of a plan, window after window.
class PlanReader {
 public:
  explicit PlanReader(const Plan& plan);
  ~PlanReader();
  PlanReader(const PlanReader&) = delete;
  PlanReader& operator=(const PlanReader&) = delete;

  /// Replaces `window` by the next steps; false when there are none.
  bool next(PlanWindow& window);

 private:
  class Planner;
  friend class Plan;
  PlanReader(const Schedule& schedule, const Machine& machine, const PlanOptions& options,
             const PlanLayout& layout);
  [[nodiscard]] PlanTotals totals() const;
  std::unique_ptr<Planner> planner_;
};

/// Follows the plan on a clock model of its machine: the same spans as run(), at predicted times.
/// Compute steps of one device share its rate; transfers in each direction, and between devices,
/// have their link's rate.
[[nodiscard]] Trace simulate(const Plan& plan);

/// The queues of a plan, in the order of their numbers.
[[nodiscard]] std::vector<TraceQueue> trace_queues(const Plan& plan);

/// Bytes that a step moves, and the span it leaves (times unset).
[[nodiscard]] Span span_of(const BlockTable& blocks, const Step& step);

}  // namespace strata
