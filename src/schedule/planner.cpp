// The planner: see plan.hpp for the contract and the method.

#include <algorithm>
#include <optional>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "schedule/device_slots.hpp"
#include "schedule/lookahead.hpp"
#include "schedule/machine_model.hpp"
#include "schedule/plan.hpp"
#include "schedule/plan_layout.hpp"

namespace strata {
namespace {

constexpr std::size_t kWindowSteps = 512;
constexpr int kNoDevice = -1;

}  // namespace

class PlanReader::Planner {
 public:
  Planner(const Schedule& schedule, const Machine& machine, const PlanOptions& options,
          const PlanLayout& layout)
      : schedule_(schedule),
        blocks_(schedule.blocks),
        machine_(machine),
        layout_(layout),
        options_(options),
        ahead_(schedule, options.lookahead,
               [this](int device, std::int64_t block, std::int64_t position) {
                 set_next_use(device, block, position);
               }),
        clock_(static_cast<std::size_t>(layout.queues()), 0.0),
        sequence_(static_cast<std::size_t>(layout.queues()), 0),
        known_(static_cast<std::size_t>(layout.queues() * layout.queues()), 0),
        home_(static_cast<std::size_t>(blocks_.count())),
        family_of_(static_cast<std::size_t>(blocks_.count()), 0),
        pinned_(static_cast<std::size_t>(layout.devices)) {
    for (int d = 0; d < layout.devices; ++d) slots_.emplace_back(layout, blocks_, options.eviction);
    std::int64_t block = 0;
    for (int f = 0; f < blocks_.families(); ++f) {
      const bool stored = blocks_.family(f).origin == Origin::stored;
      for (std::int64_t i = 0; i < blocks_.count(f); ++i, ++block) {
        home_[static_cast<std::size_t>(block)].valid = stored;
        family_of_[static_cast<std::size_t>(block)] = static_cast<std::uint8_t>(f);
      }
    }
    home_loads_.resize(static_cast<std::size_t>(blocks_.count() * loading_queues()), 0);
  }

  bool next(PlanWindow& window) {
    window.steps.clear();
    window.waits.clear();
    window_ = &window;
    Lookahead::Entry entry;
    while (window.steps.size() < kWindowSteps && ahead_.take(entry)) plan_task(entry);
    if (window.steps.empty() && !flushed_) {
      flushed_ = true;
      flush();
    }
    totals_.steps += static_cast<std::int64_t>(window.steps.size());
    return !window.steps.empty();
  }

  [[nodiscard]] const PlanTotals& totals() const noexcept { return totals_; }

 private:
  /// The copy of a block in its store.
  struct Home {
    bool valid = false;
    Wait store;                 // the step that wrote it, if one of this plan did
    std::uint64_t holders = 0;  // devices that have the block in a slot, a bit each
  };

  Home& home(std::int64_t block) { return home_[static_cast<std::size_t>(block)]; }
  DeviceSlots& slots(int device) { return slots_[static_cast<std::size_t>(device)]; }

  void set_next_use(int device, std::int64_t block, std::int64_t position) {
    slots(device).set_next_use(family_of_[static_cast<std::size_t>(block)], block, position);
  }

  // ---- a task
  // -------------------------------------------------------------------------------------

  void plan_task(const Lookahead::Entry& entry) {
    const Task& task = entry.task;
    const int device = task.device;
    const Operands operands(task);
    std::array<int, 3> number{-1, -1, -1};
    if (options_.copies_in_stream) stream_ = least_busy_queue(device);
    if (options_.pin_diagonal) unpin_diagonal(task);
    for (int i = 0; i < operands.count; ++i) {
      const BlockId id = operands.ids[at(i)];
      number[at(i)] = slots(device).find(blocks_.index(id));
      if (number[at(i)] >= 0) slots(device).hold(id.family(), number[at(i)]);
    }
    for (int i = operands.count; i-- > 0;) {
      const bool value_needed = i > 0 || task.access == Access::read_write;
      if (number[at(i)] < 0) number[at(i)] = fetch(device, operands.ids[at(i)], value_needed);
    }
    const BlockId out = operands.ids[0];
    take_ownership(device, out);
    compute(task, operands, number);
    if (task.final || options_.keep == Keep::nothing) store(device, out, number[0]);
    for (int i = 0; i < operands.count; ++i) {
      Slot& slot = slots(device).slot(operands.ids[at(i)].family(), number[at(i)]);
      slot.next_use = entry.next_use[at(i)];
      slot.last_use = ahead_.position();
      slots(device).release(operands.ids[at(i)].family(), number[at(i)]);
      if (leaves(task, i) && !slot.dirty) let_go(device, operands.ids[at(i)], number[at(i)]);
    }
    if (options_.pin_diagonal) pin_diagonal(task);
  }

  /// Whether operand i of a task that is done (0: its output) gives up its slot.
  [[nodiscard]] bool leaves(const Task& task, int i) const {
    if (options_.keep == Keep::all) return false;
    return options_.keep == Keep::nothing || i > 0 || task.final;
  }

  void let_go(int device, BlockId id, int number) {
    home(blocks_.index(id)).holders &= ~(std::uint64_t{1} << device);
    if (pinned_[at(device)] == id) pinned_[at(device)].reset();
    slots(device).drop(id.family(), number);
  }

  /// Brings a block into a slot of the device, which is then held.
  int fetch(int device, BlockId id, bool value_needed) {
    const std::int64_t block = blocks_.index(id);
    const int source = value_needed ? peer_source(device, id, block) : kNoDevice;
    if (value_needed && source == kNoDevice && !home(block).valid) send_home(id, block);
    const int family = id.family();
    DeviceSlots& mine = slots(device);
    int number = mine.take_free(family);
    if (number < 0) {
      number = mine.victim(family);
      require(number >= 0, ErrorKind::memory, "plan",
              "{}: a task needs more blocks than there are slots", blocks_.family(family).name);
      Slot& slot = mine.slot(family, number);
      home(slot.block).holders &= ~(std::uint64_t{1} << device);
      if (slot.dirty) {
        mine.hold(family, number);
        store(device, slot.id, number);
        mine.release(family, number);
      }
      if (pinned_[at(device)] == slot.id) pinned_[at(device)].reset();
      mine.evict(family, number);
    }
    mine.place(family, number, id, block);
    home(block).holders |= std::uint64_t{1} << device;
    if (value_needed && source == kNoDevice) load(device, id, number);
    if (value_needed && source != kNoDevice) copy_from_peer(device, id, number, source);
    return number;
  }

  /// The device from which a block's latest value comes faster than by the host: of those that have
  /// it in a slot, the one where it is there first. kNoDevice: by the host.
  [[nodiscard]] int peer_source(int device, BlockId id, std::int64_t block) {
    if (!layout_.peers || options_.copies_in_stream) return kNoDevice;
    int source = kNoDevice;
    for (int d = 0; d < layout_.devices; ++d) {
      if (d == device || (home(block).holders >> d & 1) == 0) continue;
      const auto ready = [&](int of) {
        return slots(of).slot(id.family(), slots(of).find(block)).ready;
      };
      if (source == kNoDevice || ready(d) < ready(source)) source = d;
    }
    if (source == kNoDevice) return kNoDevice;
    const std::int64_t bytes = blocks_.bytes(id);
    double by_host = transfer_seconds(machine_.devices[at(device)].host_to_device, bytes);
    if (!home(block).valid)
      by_host += transfer_seconds(machine_.devices[at(source)].device_to_host, bytes);
    return transfer_seconds(machine_.device_to_device, bytes) < by_host ? source : kNoDevice;
  }

  /// A value that only another device has, and that is to go by the host, goes there first.
  void send_home(BlockId id, std::int64_t block) {
    for (int d = 0; d < layout_.devices; ++d) {
      const int number = slots(d).find(block);
      if (number < 0 || !slots(d).slot(id.family(), number).dirty) continue;
      slots(d).hold(id.family(), number);
      store(d, id, number);
      slots(d).release(id.family(), number);
      return;
    }
    fail(ErrorKind::misuse, "plan", "block {} is read before anything wrote it", blocks_.name(id));
  }

  /// The device is about to write `id`: copies on other devices are stale from now on.
  void take_ownership(int device, BlockId id) {
    const std::int64_t block = blocks_.index(id);
    std::uint64_t others = home(block).holders & ~(std::uint64_t{1} << device);
    for (int d = 0; others != 0; ++d, others >>= 1) {
      if ((others & 1) == 0) continue;
      if (pinned_[at(d)] == id) pinned_[at(d)].reset();
      slots(d).drop(id.family(), slots(d).find(block));
    }
    home(block).holders = std::uint64_t{1} << device;
    home(block).valid = false;
  }

  /// The solves of a column are done when the device begins another column.
  void unpin_diagonal(const Task& task) {
    std::optional<BlockId>& pinned = pinned_[at(task.device)];
    if (!pinned || pinned->family() != task.out.family() || pinned->col() == task.out.col()) return;
    DeviceSlots& mine = slots(task.device);
    mine.set_pinned(pinned->family(), mine.find(blocks_.index(*pinned)), false);
    pinned.reset();
  }

  void pin_diagonal(const Task& task) {
    if (task.operation != Operation::potrf && task.operation != Operation::trsm) return;
    const BlockId diagonal = task.operation == Operation::potrf ? task.out : task.inputs[0];
    std::optional<BlockId>& pinned = pinned_[at(task.device)];
    DeviceSlots& mine = slots(task.device);
    if (pinned == diagonal || mine.find(blocks_.index(diagonal)) < 0) return;
    if (pinned) mine.set_pinned(pinned->family(), mine.find(blocks_.index(*pinned)), false);
    mine.set_pinned(diagonal.family(), mine.find(blocks_.index(diagonal)), true);
    pinned = diagonal;
  }

  /// Values that are only on a device when the tasks are done go home.
  void flush() {
    for (int d = 0; d < layout_.devices; ++d) {
      for (int f = 0; f < blocks_.families(); ++f) {
        for (int s = 0; s < static_cast<int>(slots(d).slots(f).size()); ++s) {
          const Slot& slot = slots(d).slot(f, s);
          if (slot.block < 0 || !slot.dirty) continue;
          slots(d).hold(f, s);
          store(d, slot.id, s);
          slots(d).release(f, s);
        }
      }
    }
  }

  // ---- steps
  // --------------------------------------------------------------------------------------

  /// The queue of a device's loads or stores: the copy queue, or the stream of the current task. (A
  /// value that another device has to hand over leaves through that device's first compute queue.)
  [[nodiscard]] int copy_queue(int device, int copy) const {
    if (!options_.copies_in_stream) return layout_.queue(device, copy);
    if (stream_ / layout_.queues_per_device() == device) return stream_;
    return layout_.queue(device, PlanLayout::kFirstCompute);
  }

  /// Queues that may load a block, for which home_loads_ has an entry.
  [[nodiscard]] int loading_queues() const {
    return options_.copies_in_stream ? layout_.queues() : layout_.devices;
  }
  [[nodiscard]] std::int64_t load_entry(std::int64_t block, int queue) const {
    const int which = options_.copies_in_stream ? queue : queue / layout_.queues_per_device();
    return block * loading_queues() + which;
  }

  void load(int device, BlockId id, int number) {
    const std::int64_t block = blocks_.index(id);
    const int queue = copy_queue(device, PlanLayout::kCopyIn);
    Slot& slot = slots(device).slot(id.family(), number);
    Step& step = begin_step(StepKind::load, queue, id, number);
    wait_for_uses(step, device, slot);
    add_wait(step, home(block).store);
    finish_step(step);
    const double seconds =
        transfer_seconds(machine_.devices[at(device)].host_to_device, blocks_.bytes(id));
    slot.ready = slot.idle = advance(queue, slot.idle, seconds);
    wrote(slot, step);
    home_loads_[at(load_entry(block, queue))] = step.sequence;
    totals_.traffic.host_to_device_bytes += blocks_.bytes(id);
    ++totals_.loads;
  }

  void copy_from_peer(int device, BlockId id, int number, int source) {
    const int queue = layout_.queue(device, layout_.peer_in());
    const int from = slots(source).find(blocks_.index(id));
    Slot& slot = slots(device).slot(id.family(), number);
    Slot& there = slots(source).slot(id.family(), from);
    Step& step = begin_step(StepKind::peer, queue, id, number);
    step.source = static_cast<std::uint16_t>(source);
    step.slots[1] = from;
    wait_for_uses(step, device, slot);
    add_wait(step, there.writer);
    finish_step(step);
    const double seconds = transfer_seconds(machine_.device_to_device, blocks_.bytes(id));
    slot.ready = slot.idle = advance(queue, std::max(slot.idle, there.ready), seconds);
    there.idle = std::max(there.idle, slot.ready);
    wrote(slot, step);
    there.peers[at(device)] = step.sequence;
    totals_.traffic.device_to_device_bytes += blocks_.bytes(id);
    ++totals_.peer_copies;
  }

  void store(int device, BlockId id, int number) {
    const std::int64_t block = blocks_.index(id);
    const int queue = copy_queue(device, PlanLayout::kCopyOut);
    Slot& slot = slots(device).slot(id.family(), number);
    Step& step = begin_step(StepKind::store, queue, id, number);
    add_wait(step, slot.writer);
    add_wait(step, home(block).store);
    for (int i = 0; i < loading_queues(); ++i) {  // nobody may still be reading what is overwritten
      const int loader = options_.copies_in_stream ? i : layout_.queue(i, PlanLayout::kCopyIn);
      add_wait(step,
               {static_cast<std::uint16_t>(loader), home_loads_[at(load_entry(block, loader))]});
    }
    finish_step(step);
    const double seconds =
        transfer_seconds(machine_.devices[at(device)].device_to_host, blocks_.bytes(id));
    slot.idle = std::max(slot.idle, advance(queue, slot.ready, seconds));
    slot.readers[at(queue - layout_.queue(device, 0))] = step.sequence;
    slot.dirty = false;
    home(block).valid = true;
    home(block).store = {step.queue, step.sequence};
    totals_.traffic.device_to_host_bytes += blocks_.bytes(id);
    ++totals_.stores;
  }

  void compute(const Task& task, const Operands& operands, const std::array<int, 3>& number) {
    const int device = task.device;
    Slot& out = slots(device).slot(task.out.family(), number[0]);
    double ready = out.idle;
    for (int i = 1; i < operands.count; ++i) {
      ready =
          std::max(ready, slots(device).slot(operands.ids[at(i)].family(), number[at(i)]).ready);
    }
    const int queue = choose_queue(task, ready, out);
    Step& step = begin_step(StepKind::compute, queue, task.out, number[0]);
    step.task = task;
    for (int i = 0; i < task.input_count; ++i) {
      step.slots[at(i + 1)] = number[at(operands.find(task.inputs[at(i)]))];
    }
    const double flops = flops_of(blocks_, task);
    const double end = advance(queue, ready, seconds_of(device, task, flops));
    wait_for_uses(step, device, out);
    for (int i = 1; i < operands.count; ++i) {
      Slot& input = slots(device).slot(operands.ids[at(i)].family(), number[at(i)]);
      add_wait(step, input.writer);
      input.readers[at(queue - layout_.queue(device, 0))] = step.sequence;
      input.idle = std::max(input.idle, end);
    }
    finish_step(step);
    wrote(out, step);
    out.dirty = true;
    out.ready = out.idle = end;
    totals_.flops += task.operation == Operation::covariance ? 0 : flops;
    ++totals_.tasks;
  }

  /// The urgent queue for an urgent task; else the compute queue on which the task can start first,
  /// the one that wrote its output if it is as early.
  [[nodiscard]] int choose_queue(const Task& task, double ready, const Slot& out) const {
    const int device = task.device;
    if (options_.copies_in_stream) return stream_;
    if (layout_.urgent && task.urgent) return layout_.queue(device, layout_.urgent_compute());
    const int first = layout_.queue(device, PlanLayout::kFirstCompute);
    if (options_.one_queue) return first;
    const int end = first + layout_.compute_queues;
    const int writer = static_cast<int>(out.writer.queue);  // or the queue of a copy
    const bool computes = out.writer.sequence > 0 && writer >= first && writer < end;
    int best = computes ? writer : first;
    double best_start = std::max(clock_[at(best)], ready);
    for (int q = first; q < end; ++q) {
      const double start = std::max(clock_[at(q)], ready);
      if (start < best_start) {
        best = q;
        best_start = start;
      }
    }
    return best;
  }

  /// The compute queue with the least work so far, for a task whose copies go through it too.
  [[nodiscard]] int least_busy_queue(int device) const {
    const int first = layout_.queue(device, PlanLayout::kFirstCompute);
    int best = first;
    for (int q = first; q < first + layout_.compute_queues && !options_.one_queue; ++q) {
      if (clock_[at(q)] < clock_[at(best)]) best = q;
    }
    return best;
  }

  [[nodiscard]] double seconds_of(int device, const Task& task, double flops) {
    Rate& rate = rates_[static_cast<std::size_t>(task.operation)];
    if (rate.flops != flops || rate.device != device) {
      const Precision precision = blocks_.family(task.out.family()).precision;
      rate = {flops, kernel_seconds(machine_.devices[at(device)], task.operation, precision, flops),
              device};
    }
    return rate.seconds;
  }

  Step& begin_step(StepKind kind, int queue, BlockId id, int number) {
    Step& step = window_->steps.emplace_back();
    step.kind = kind;
    step.queue = static_cast<std::uint16_t>(queue);
    step.sequence = ++sequence_[at(queue)];
    step.task.out = id;
    step.task.device = static_cast<std::uint16_t>(queue / layout_.queues_per_device());
    step.slots[0] = number;
    step.wait_begin = static_cast<std::uint32_t>(window_->waits.size());
    return step;
  }
  void finish_step(Step& step) const {
    step.wait_count = static_cast<std::uint32_t>(window_->waits.size()) - step.wait_begin;
  }

  void add_wait(const Step& step, Wait wait) {
    if (wait.sequence == 0 || wait.queue == step.queue) return;
    std::uint64_t& known = known_[at(step.queue * layout_.queues() + wait.queue)];
    if (known >= wait.sequence) return;
    known = wait.sequence;
    for (std::size_t w = step.wait_begin; w < window_->waits.size(); ++w) {
      if (window_->waits[w].queue == wait.queue) {
        window_->waits[w].sequence = wait.sequence;
        return;
      }
    }
    window_->waits.push_back(wait);
  }

  /// The step overwrites the slot: everything that wrote or read it comes first.
  void wait_for_uses(const Step& step, int device, const Slot& slot) {
    add_wait(step, slot.writer);
    for (int q = 0; q < layout_.queues_per_device(); ++q) {
      add_wait(step, {static_cast<std::uint16_t>(layout_.queue(device, q)), slot.readers[at(q)]});
    }
    for (int d = 0; d < static_cast<int>(slot.peers.size()); ++d) {
      const int queue = layout_.queue(d, layout_.peer_in());
      add_wait(step, {static_cast<std::uint16_t>(queue), slot.peers[at(d)]});
    }
  }
  static void wrote(Slot& slot, const Step& step) {
    slot.writer = {step.queue, step.sequence};
    std::fill(slot.readers.begin(), slot.readers.end(), 0);
    std::fill(slot.peers.begin(), slot.peers.end(), 0);
  }

  /// Estimated end of `seconds` of work put into a queue; a clock only for choosing queues.
  double advance(int queue, double earliest, double seconds) {
    double& clock = clock_[at(queue)];
    clock = std::max(clock, earliest) + seconds;
    return clock;
  }

  template <class I>
  static constexpr std::size_t at(I i) {
    return static_cast<std::size_t>(i);
  }

  struct Rate {
    double flops = -1;
    double seconds = 0;
    int device = -1;
  };

  const Schedule& schedule_;
  const BlockTable& blocks_;
  const Machine& machine_;
  const PlanLayout& layout_;
  PlanOptions options_;
  Lookahead ahead_;
  std::vector<DeviceSlots> slots_;       // by device
  std::vector<double> clock_;            // by queue
  std::vector<std::uint64_t> sequence_;  // by queue: steps so far
  std::vector<std::uint64_t> known_;  // by queue and queue: what the first has already waited for
  std::vector<Home> home_;            // by block
  std::vector<std::uint8_t> family_of_;         // by block
  std::vector<std::uint64_t> home_loads_;       // by load_entry(): the last load
  std::vector<std::optional<BlockId>> pinned_;  // by device
  std::array<Rate, kOperations> rates_{};
  int stream_ = 0;  // the current task's queue, if its copies go through it
  PlanTotals totals_;
  PlanWindow* window_ = nullptr;
  bool flushed_ = false;
};

PlanReader::PlanReader(const Plan& plan)
    : PlanReader(plan.schedule(), plan.machine(), plan.options(), plan.layout()) {}
PlanReader::PlanReader(const Schedule& schedule, const Machine& machine, const PlanOptions& options,
                       const PlanLayout& layout)
    : planner_(std::make_unique<Planner>(schedule, machine, options, layout)) {}
PlanReader::~PlanReader() = default;
bool PlanReader::next(PlanWindow& window) { return planner_->next(window); }
PlanTotals PlanReader::totals() const { return planner_->totals(); }

Plan::Plan(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options)
    : schedule_(std::move(schedule)), machine_(std::move(machine)), options_(options) {
  layout_ = make_layout(*schedule_, machine_);
  layout_.urgent = options_.urgent_queue && !options_.one_queue && !options_.copies_in_stream;
  PlanReader reader(*schedule_, machine_, options_, layout_);
  PlanWindow window;
  while (reader.next(window)) {
    for (const Step& step : window.steps) {
      if (step.kind == StepKind::compute) check_kernel(*schedule_, machine_, step.task);
    }
  }
  totals_ = reader.totals();
}

}  // namespace strata
