#pragma once
// Plan: a Schedule turned into steps on the queues of devices of bounded memory. Pure data.
//
// Contract:
// * Each device has queues for its copies in and out, compute queues, perhaps one of high priority,
//   and one for copies from other devices where the machine links them (PlanLayout::queues); a
//   queue runs its steps in order. A step waits only for steps that stand before it in the plan, so
//   a plan cannot deadlock.
// * Device memory is an arena of slots in size classes: a block lies in a slot of the smallest
//   class that holds its family's blocks of its element. Sizes within an eighth of each other are
//   one class; a class spans more where a schedule has coarse_slots and a budget does not suffice
//   for all. In a schedule with own_places each slot is a *stay* of one block, and slots overlap:
//   of those that do, one at a time holds its block. In a resident schedule each block has a slot
//   of its own.
// * A block has one writer at a time. What another device needs travels through the host, or, where
//   that is faster by the machine's rates, from a device that has its latest value in a slot; that
//   slot is not written again before the copy is done. A written (dirty) block is written back as
//   soon as no later task writes it, or when its slot is needed.
// * Families in storage (BlockFamily::in_storage) rest in files. Host memory is then a place of
//   bounded size, with slots and queues like a device's but no computations (PlanLayout::host).
//   Blocks are read from storage into it and loaded from there. What devices store there is written
//   to storage when nothing writes it any more, or when its slot is needed. Where host memory is no
//   such place, devices read and write storage themselves.
// * A plan may start from what an earlier one left on the devices (Residency), and at a later step
//   of its schedule: what the steps before it wrote is at home then.
// * Equal inputs give byte-equal plans. No device, disk or thread is touched.
// * Steps are made in windows; totals are known before the first step is run, from a first pass
//   over the tasks.
//
// Method: tasks are planned in program order. The operands of a task that are not on its device get
// a free slot, or the slot of a victim: the least recently used block (v3), or the one whose next
// use lies furthest in the future (opt; Belady, "A study of replacement algorithms for a
// virtual-storage computer", 1966). With the policy `idle` dirty blocks are no better than others.
// A load waits only for the last use of its slot, so it runs ahead of the computation as far as
// memory allows. In a schedule of few slots what leaves is rather idle in time, by the machine's
// rates (Schedule::few_slots).

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedule/home_model.hpp"
#include "schedule/residency.hpp"
#include "schedule/task.hpp"
#include "strata/machine.hpp"
#include "strata/options.hpp"

namespace strata {

/// `peer` is a load whose source is a slot of another device; `read` and `write` copy a block
/// between storage and a slot.
enum class StepKind : std::uint8_t { load, store, compute, peer, read, write };

/// "Queue `queue` has done its first `sequence` steps."
struct Wait {
  std::uint16_t queue = 0;
  std::uint64_t sequence = 0;
  bool operator==(const Wait&) const = default;
};

struct Step {
  StepKind kind = StepKind::compute;
  std::uint16_t queue = 0;   ///< index into PlanLayout::queues
  std::uint16_t device = 0;  ///< of that queue
  /// The other place of a copy between two slots: where a peer copy and a load of two operands come
  /// from, where a store of two operands goes.
  std::uint16_t source = 0;
  std::uint32_t calls = 0;  ///< compute; with its operation and the task's variant
  std::uint32_t variant = 0;
  const Operation* operation = nullptr;
  bool shared = false;         ///< compute: a phase of a task of several devices
  bool last = false;           ///< write: no later task writes the block
  std::uint64_t sequence = 0;  ///< 1, 2, … within its queue
  /// Into PlanWindow::operands and ::slots. Compute: the operands of every call, and the slot of
  /// each on the device; of a task that devices share, behind them what shared_call.hpp says of the
  /// others, with slots there. Else one block and its slot on the device; between two slots the
  /// block again, and its slot at the other place.
  std::uint32_t operand_begin = 0;
  std::uint32_t operand_count = 0;
  std::uint32_t wait_begin = 0;  ///< into PlanWindow::waits
  std::uint32_t wait_count = 0;
  double work = 0;         ///< compute: in the operation's unit
  double seconds = 0;      ///< compute: as Task has it
  double share = 0;        ///< likewise
  std::int64_t bytes = 0;  ///< that a copy moves
};

struct PlanWindow {
  std::vector<Step> steps;
  std::vector<Wait> waits;
  std::vector<BlockId> operands;
  std::vector<std::int32_t> slots;

  [[nodiscard]] std::span<const Wait> waits_of(const Step& step) const noexcept {
    return {waits.data() + step.wait_begin, step.wait_count};
  }
  [[nodiscard]] std::span<const BlockId> operands_of(const Step& step) const noexcept {
    return {operands.data() + step.operand_begin, step.operand_count};
  }
  [[nodiscard]] const std::int32_t* slots_of(const Step& step) const noexcept {
    return slots.data() + step.operand_begin;
  }
  /// The block that a copy moves, or the first operand of a computation.
  [[nodiscard]] BlockId block_of(const Step& step) const noexcept {
    return operands[step.operand_begin];
  }
  void clear() noexcept {
    steps.clear();
    waits.clear();
    operands.clear();
    slots.clear();
  }
};

/// What the queues of a device are for.
enum class QueueRole : std::uint8_t {
  copy_in,   ///< loads
  copy_out,  ///< stores
  compute,
  urgent,   ///< tasks that much waits for, at high priority
  peer_in,  ///< copies from other devices
};

struct PlanQueue {
  std::uint16_t device = 0;
  QueueRole role = QueueRole::compute;
  std::uint16_t number = 0;  ///< among those of its role on its device
};

/// A place for a block in the arena of a device.
struct SlotPlace {
  /// Bytes from the arena's start, a multiple of 256; 0 where the caller has the block
  /// (BlockFamily::placed).
  std::int64_t offset = 0;
  std::int32_t size_class = 0;  ///< −1: one block's own (Schedule::own_places, ::resident)
  std::int64_t block = -1;      ///< of such a place: whose it is, its index
  std::int64_t bytes = 0;       ///< of such a place
  std::int64_t from = 0;        ///< of a stay: the task with which it begins
};

/// The memory and the queues of one device.
struct DeviceLayout {
  std::int64_t arena_bytes = 0;
  std::vector<SlotPlace> slots;         ///< by number
  std::vector<ResidentBlock> resident;  ///< what the first slots hold in the beginning
  std::vector<std::int32_t> place_of;   ///< of a resident schedule, by block: its slot, −1: none
  int first_queue = 0;                  ///< index into PlanLayout::queues; they follow one another
  int queue_count = 0;
  int copy_in = -1;  ///< −1: there is none
  int copy_out = -1;
  int first_compute = -1;
  int compute_queues = 0;
  int urgent = -1;
  int peer_in = -1;
};

struct PlanLayout {
  std::vector<std::int64_t> class_bytes;  ///< of a slot of each size class, increasing
  std::vector<PlanQueue> queues;
  std::vector<DeviceLayout> devices;  ///< and host memory, where it has slots
  int host = -1;                      ///< its number among them; −1: it has none
  /// By family: the class of its blocks, or −1 if that depends on the block.
  std::vector<std::int32_t> class_of_family;

  /// The largest arena of a device.
  [[nodiscard]] std::int64_t arena_bytes() const noexcept;
  [[nodiscard]] const DeviceLayout& device(std::size_t d) const { return devices[d]; }
  [[nodiscard]] std::int32_t class_of(const BlockTable& blocks, BlockId id) const;
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
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  /// The most bytes of occupied slots that were not bytes of blocks, at any moment of the plan,
  /// over all devices.
  std::int64_t wasted_bytes = 0;
  bool operator==(const PlanTotals&) const = default;
};

/// Which block leaves when a slot is needed.
enum class Eviction : std::uint8_t {
  least_recently_used,  ///< a clean one, if there is one
  furthest_next_use,    ///< likewise
  /// The one that was used longest ago, clean or not; it is written back where it has to be.
  longest_idle,
};

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
  /// What tasks ask to retain stays as long as anything else can leave (v3: the diagonal block,
  /// until the solves of its column are done). Where the longest idle leaves, that goes for host
  /// memory, too, until all devices that asked for it release it.
  bool retain = false;
  /// The step of the schedule that comes first; those before it are done, and their blocks at home,
  /// or, of a resident schedule, where the residency has them.
  std::int64_t first_step = 0;
  /// Tasks whose uses are known ahead of the one being planned.
  std::int64_t lookahead = 1 << 18;
  /// For simulate(): where blocks rest. No step depends on it.
  HomeModel homes{};
};

class Plan {
 public:
  /// Plans `schedule` on `machine`, from what is on the devices already. Throws Error{memory} when
  /// a device budget does not suffice, naming the device and the smallest that would, Error{device}
  /// when a backend lacks a kernel, naming operation and elements, and Error{misuse} for a
  /// residency whose blocks are not those of the schedule's families.
  Plan(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options,
       Residency start = {});
  /// The same, and what simulate() says of it, in one pass.
  [[nodiscard]] static Plan simulated(std::shared_ptr<const Schedule> schedule, Machine machine,
                                      PlanOptions options, Residency start, Trace& trace);

  [[nodiscard]] const Schedule& schedule() const noexcept { return *schedule_; }
  [[nodiscard]] const std::shared_ptr<const Schedule>& shared_schedule() const noexcept {
    return schedule_;
  }
  [[nodiscard]] const Machine& machine() const noexcept { return machine_; }
  [[nodiscard]] const PlanOptions& options() const noexcept { return options_; }
  [[nodiscard]] const PlanLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const PlanTotals& totals() const noexcept { return totals_; }
  /// What has to be on the devices when a run begins, and what is when it has ended.
  [[nodiscard]] const Residency& start() const noexcept { return start_; }
  [[nodiscard]] const Residency& end() const noexcept { return end_; }

  /// One line a step, e.g. "0:c0 #5 gemm A(3,1)@2 A(3,0)@0 A(1,0)@1 after 0:in #4".
  void write_text(std::ostream& out) const;

 private:
  Plan(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options,
       Residency start, Trace* trace);

  std::shared_ptr<const Schedule> schedule_;
  Machine machine_;
  PlanOptions options_;
  Residency start_;
  PlanLayout layout_;
  PlanTotals totals_;
  Residency end_;
};

/// The least memory with which each device can run `schedule`, in bytes.
[[nodiscard]] std::int64_t smallest_budget_bytes(const Schedule& schedule);
/// The least host memory between storage and devices of at least `device_bytes` with which they can
/// run it, in bytes; 0: no family is in storage.
[[nodiscard]] std::int64_t smallest_host_bytes(const Schedule& schedule, std::int64_t device_bytes);

/// Makes the steps of a plan, window after window.
class PlanReader {
 public:
  /// `plan` outlives the reader.
  explicit PlanReader(const Plan& plan);
  ~PlanReader();
  PlanReader(const PlanReader&) = delete;
  PlanReader& operator=(const PlanReader&) = delete;

  /// Replaces `window` by the next steps; false when there are none.
  bool next(PlanWindow& window);

 private:
  class Planner;
  friend class Plan;
  [[nodiscard]] const PlanTotals& totals() const;
  [[nodiscard]] Residency residency() const;
  std::unique_ptr<Planner> planner_;
};

/// Follows the plan on a clock model of its machine: the same spans as run(), at predicted times.
/// Compute steps of one device share its rate; transfers in each direction, and between devices,
/// have their link's rate. What PlanOptions::homes says is not page-locked is staged through bounce
/// buffers, where devices have a staging rate; it is home when the last of them is empty.
[[nodiscard]] Trace simulate(const Plan& plan);
/// The same with the steps of a reader of that plan.
[[nodiscard]] Trace simulate(const Plan& plan, PlanReader& reader);

/// A trace of a plan without spans: its queues and families have their names.
[[nodiscard]] Trace empty_trace(const Plan& plan);

/// Makes the spans (times unset) that the steps of a plan leave in a trace.
class SpanMaker {
 public:
  /// `trace` outlives the maker, which numbers operations in it as they come.
  explicit SpanMaker(Trace& trace) : trace_(trace) {}
  [[nodiscard]] Span span_of(const PlanWindow& window, const Step& step);

 private:
  Trace& trace_;
  std::vector<std::pair<const Operation*, std::uint16_t>> numbers_;
};

}  // namespace strata
