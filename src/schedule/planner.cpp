// The planner, task by task: which blocks come, stay and leave.

#include "schedule/planner.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "schedule/plan_layout.hpp"

namespace strata {
namespace {

constexpr std::size_t kWindowSteps = 512;
constexpr int kNoDevice = BlockDirectory::kNoPlace;

}  // namespace

PlanReader::Planner::Planner(const Plan& plan)
    : schedule_(plan.schedule()),
      blocks_(schedule_.blocks),
      machine_(plan.machine()),
      layout_(plan.layout()),
      start_(plan.start()),
      options_(plan.options()),
      ahead_(
          schedule_, options_.first_step, options_.lookahead,
          [this](int device, std::int64_t block, std::int64_t position) {
            if (device == schedule_.devices) return note_next_use(block, position);
            slots(device).set_next_use(block, position);
          },
          layout_.host >= 0),
      kernels_(machine_),
      directory_(blocks_.count(), layout_.devices.size()),
      retainers_(layout_.host >= 0 ? blocks_.count() : 0, layout_.devices.size()),
      clock_(layout_.queues.size(), 0.0),
      sequence_(layout_.queues.size(), 0),
      known_(layout_.queues.size() * layout_.queues.size(), 0),
      storage_(machine_.storage ? &*machine_.storage : nullptr),
      next_use_(layout_.host >= 0 ? at(blocks_.count()) : 0, kNever) {
  for (std::size_t d = 0; d < layout_.devices.size(); ++d) {
    const DeviceLayout& device = layout_.devices[d];
    slots_.emplace_back(layout_, d, directory_, blocks_.count(), options_.eviction);
    readers_.emplace_back(device.slots.size() * at(readers_of(static_cast<int>(d)).second), 0);
    has_peers_ = has_peers_ || device.peer_in >= 0;
  }
  for (const DeviceLayout& device : layout_.devices)
    peers_.emplace_back(has_peers_ ? device.slots.size() * layout_.devices.size() : 0, 0);
  turns_.assign(layout_.devices.size(), 0);
  home_loads_.resize(at(blocks_.count()) * loading_queues(), 0);
  for (const DeviceLayout& device : layout_.devices)
    stays_.emplace_back(schedule_.own_places ? device.slots : std::vector<SlotPlace>{});
  if (!layout_.devices.empty()) stream_ = device_of(0).first_compute;  // if there is no task
  set_backing_copies();
  take_over_residents();
  take_over_placed();
}

/// What is backed before the first step: stored blocks, and what the steps before it wrote.
void PlanReader::Planner::set_backing_copies() {
  std::int64_t block = 0;
  for (int f = 0; f < blocks_.families(); ++f) {
    const bool stored = blocks_.family(f).origin == Origin::stored;
    for (std::int64_t i = 0; i < blocks_.count(f); ++i, ++block)
      directory_.set_backed(block, stored);
  }
  TaskList done;
  for (std::int64_t s = 0; s < std::min(options_.first_step, schedule_.steps); ++s) {
    done.clear();
    schedule_.emit(s, done);
    for (const Task& task : std::as_const(done).tasks()) {
      const auto operands = std::as_const(done).operands(task);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (writes(task.access_of(i))) directory_.set_backed(blocks_.index(operands[i].id), true);
      }
    }
  }
}

void PlanReader::Planner::take_over_residents() {
  for (int d = 0; d < schedule_.devices; ++d) {
    int next = 0;
    for (const ResidentBlock& resident : device_of(d).resident) {
      int family = 0;
      while (blocks_.family(family).identity != resident.identity) ++family;
      const BlockId id(family, resident.row, resident.col);
      const std::int64_t block = blocks_.index(id);
      const int number = schedule_.resident ? device_of(d).place_of[at(block)] : next++;
      slots(d).place_first(number, id, block);
      directory_.add(block, d);
      if (resident.only_here)
        directory_.set_owner(block, d);
      else
        directory_.set_backed(block, true);  // a residency promises it
      note_waste(d, number, blocks_.bytes(id), 1);
    }
  }
}

/// What callers have on the devices when a run begins.
void PlanReader::Planner::take_over_placed() {
  for (int f = 0; f < blocks_.families(); ++f) {
    const BlockFamily& family = blocks_.family(f);
    if (!family.placed || family.identity != 0 || family.origin != Origin::stored) continue;
    blocks_.for_each(f, [&](BlockId id) {
      const std::int64_t block = blocks_.index(id);
      directory_.set_backed(block, false);
      for (int d = schedule_.devices - 1; d >= 0; --d) {
        const int number = device_of(d).place_of[at(block)];
        if (number < 0) continue;
        slots(d).place_first(number, id, block);
        directory_.add(block, d);
        directory_.set_owner(block, d);
      }
    });
  }
}

bool PlanReader::Planner::next(PlanWindow& window) {
  window.clear();
  window_ = &window;
  Lookahead::Entry entry;
  while (window.steps.size() < kWindowSteps && ahead_.take(entry)) {
    plan_task(entry);
    if (layout_.host < 0) continue;
    for (const BlockUse& use : entry.uses) note_next_use(use.block, use.next_use_anywhere);
  }
  if (window.steps.empty() && !flushed_) {
    flushed_ = true;
    flush();
  }
  totals_.steps += std::ssize(window.steps);
  return !window.steps.empty();
}

void PlanReader::Planner::plan_task(const Lookahead::Entry& entry) {
  if (options_.copies_in_stream) stream_ = least_busy_queue(entry.task->device);
  if (entry.task->sharers != 1) return plan_shared(entry);
  bring_operands(entry, entry.task->device);
  for (const BlockUse& use : entry.uses) {
    if (writes(use.access)) take_ownership(entry.task->device, use.block);
  }
  compute(entry);
  finish_uses(entry);
}

/// The operands of a task into slots of a device, which are then held: number_.
void PlanReader::Planner::bring_operands(const Lookahead::Entry& entry, int device) {
  DeviceSlots& mine = slots(device);
  number_.assign(entry.uses.size(), -1);
  for (std::size_t i = 0; i < entry.uses.size(); ++i) {
    number_[i] = mine.find(entry.uses[i].block);
    if (number_[i] >= 0 && moves(device, number_[i])) {
      leave(device, number_[i]);
      number_[i] = -1;
    }
    if (number_[i] >= 0) mine.hold(number_[i]);
  }
  for (std::size_t k = 0; k < entry.uses.size(); ++k) {
    // Where places are fixed in their order, so that loads of neighbours are one copy.
    const std::size_t i = schedule_.resident ? k : entry.uses.size() - 1 - k;
    const BlockUse& use = entry.uses[i];
    if (number_[i] < 0) number_[i] = fetch(device, use, reads(use.access));
  }
}

/// A task that several devices carry out: all bring its operands, and keep what is written.
void PlanReader::Planner::plan_shared(const Lookahead::Entry& entry) {
  const int first = entry.task->device;
  const int behind = first + entry.task->sharers;
  require(schedule_.resident, ErrorKind::misuse, "plan",
          "a task that {} devices share, of a schedule that is not resident", entry.task->sharers);
  std::vector<std::vector<int>> numbers;
  for (int d = first; d < behind; ++d) {
    bring_operands(entry, d);
    numbers.push_back(number_);
  }
  for (const BlockUse& use : entry.uses) {
    if (!writes(use.access)) continue;
    directory_.for_each(use.block, [&](int d) {
      if (d < first || d >= behind) let_go(d, slots(d).find(use.block));
    });
    directory_.set_owner(use.block, first);
  }
  compute_shared(entry, numbers);
  for (int d = first + 1; d < behind; ++d)
    for (const int number : numbers[at(d - first)]) slots(d).release(number);
  number_ = numbers.front();
  finish_uses(entry);
}

/// What the task is done with: home, retained, ranked by its next use, or gone.
void PlanReader::Planner::finish_uses(const Lookahead::Entry& entry) {
  const int device = entry.task->device;
  for (std::size_t i = 0; i < entry.uses.size(); ++i) {
    const BlockUse& use = entry.uses[i];
    if (!writes(use.access) || has(use.hint, Hint::last_use)) continue;
    const bool goes_home = has(use.hint, Hint::home) || (has(use.hint, Hint::last_write) &&
                                                         !blocks_.family(use.id.family()).stays);
    if (goes_home || options_.keep == Keep::nothing)
      store(device, number_[i], has(use.hint, Hint::last_write) ? Value::last : Value::may_change);
  }
  for (std::size_t i = 0; i < entry.uses.size(); ++i) {
    const BlockUse& use = entry.uses[i];
    Slot& slot = slots(device).slot(number_[i]);
    slot.next_use = use.next_use;
    slot.last_use = ahead_.position();
    slots(device).release(number_[i]);
    if (has(use.hint, Hint::last_use)) {
      discard(use.block);
      continue;
    }
    if (options_.retain && has(use.hint, Hint::retain)) retain(device, number_[i], true);
    if (has(use.hint, Hint::release)) retain(device, number_[i], false);
    if (ends_here(device, number_[i], use)) {
      if (directory_.owns(device, use.block)) store(device, number_[i]);
      let_go(device, number_[i]);
      continue;
    }
    if (leaves(use) && !directory_.owns(device, use.block)) let_go(device, number_[i]);
  }
}

/// Whether a block that has places of its own is evicted before it is used again: then that is done
/// at once, so that no step waits for it when its place is needed.
bool PlanReader::Planner::ends_here(int device, int number, const BlockUse& use) {
  return schedule_.own_places && use.next_use != kNever &&
         stays_[at(device)].of(use.block, use.next_use) != number;
}

/// Whether an operand of a task that is done gives up its slot.
bool PlanReader::Planner::leaves(const BlockUse& use) const {
  if (options_.keep == Keep::all) return false;
  return options_.keep == Keep::nothing || !writes(use.access) || has(use.hint, Hint::last_write);
}

void PlanReader::Planner::let_go(int device, int number) {
  const Slot& slot = slots(device).slot(number);
  note_waste(device, number, blocks_.bytes(slot.id), -1);
  directory_.remove(slot.block, device);
  slots(device).drop(number);
  if (schedule_.own_places) stays_[at(device)].end(number);
}

/// Brings a block into a slot of the device, which is then held.
int PlanReader::Planner::fetch(int device, const BlockUse& use, bool value_needed) {
  const std::int64_t block = use.block;
  const int source = value_needed ? peer_source(device, use.id, block) : kNoDevice;
  if (value_needed && source == kNoDevice && !can_be_loaded(block)) send_home(use.id, block);
  const int number = make_room(device, use.id);
  slots(device).place(number, use.id, block);
  note_waste(device, number, blocks_.bytes(use.id), 1);
  directory_.add(block, device);
  if (value_needed && source == kNoDevice) load(device, use.id, number);
  if (value_needed && source != kNoDevice) copy_from_peer(device, use.id, number, source);
  return number;
}

/// A slot for a block: an empty one, or that of the block which is missed last.
int PlanReader::Planner::make_room(int device, BlockId id) {
  DeviceSlots& mine = slots(device);
  if (schedule_.resident) return device_of(device).place_of[at(blocks_.index(id))];
  if (schedule_.own_places) {
    Stays& stays = stays_[at(device)];
    const int stay = stays.of(blocks_.index(id), ahead_.position());
    for (const int other : stays.holders(stay)) {
      require(!mine.slot(other).held, ErrorKind::memory, "plan",
              "{}: a task needs more memory than there is on {}", blocks_.family(id.family()).name,
              machine_.devices[at(device)].name);
      leave(device, other);
    }
    stays.begin(stay);
    for (const int other : stays.before(stay))
      mine.slot(stay).idle = std::max(mine.slot(stay).idle, mine.slot(other).idle);
    return stay;
  }
  const std::int32_t size_class = layout_.class_of(blocks_, id);
  int number = mine.take_free(size_class);
  if (number >= 0) return number;
  number =
      device == layout_.host ? victim_on_host(size_class) : victim_on_device(device, size_class);
  require(number >= 0, ErrorKind::memory, "plan",
          "{}: a task needs more blocks than there are slots on {}",
          blocks_.family(id.family()).name,
          device == layout_.host ? "host memory" : machine_.devices[at(device)].name);
  leave(device, number);
  return number;
}

/// The block that leaves a device. The one by the rule may be in use until the task that needs the
/// slot could begin: of blocks that stream past, the one that was used just now. In a schedule of
/// few slots another clean one leaves then, if its next use is not near: of those for which the
/// task need not wait the one whose next use is furthest away, else the one that is idle first.
int PlanReader::Planner::victim_on_device(int device, std::int32_t size_class) {
  DeviceSlots& mine = slots(device);
  const int by_rule = mine.victim(size_class);
  if (!schedule_.few_slots || options_.eviction != Eviction::furthest_next_use || by_rule < 0)
    return by_rule;
  const double load = transfer_seconds(machine_.devices[at(device)].host_to_device,
                                       layout_.class_bytes[at(size_class)]);
  const double link = clock_[at(copy_queue(device, device_of(device).copy_in))];
  const double in_time = std::max(clock_[at(least_busy_queue(device))] - load, link);
  const Slot& first = mine.slot(by_rule);
  if (first.idle <= in_time || directory_.owns(device, first.block)) return by_rule;
  const std::int64_t position = ahead_.position();
  const std::int64_t near =
      position + std::min<std::int64_t>((first.next_use - position) / 2, mine.count());
  int best = by_rule;
  const auto beats = [&](const Slot& slot, const Slot& other) {
    if (slot.idle > in_time || other.idle > in_time) return slot.idle < other.idle;
    return slot.next_use > other.next_use;
  };
  for (int s = 0; s < mine.count(); ++s) {
    const Slot& slot = mine.slot(s);
    if (slot.size_class != size_class || slot.block < 0 || slot.held || slot.retained) continue;
    if (slot.next_use < near || directory_.owns(device, slot.block)) continue;
    if (beats(slot, mine.slot(best))) best = s;
  }
  return best;
}

/// A block gives its slot up, which then has none.
void PlanReader::Planner::leave(int device, int number) {
  const Slot& slot = slots(device).slot(number);
  note_waste(device, number, blocks_.bytes(slot.id), -1);
  if (directory_.owns(device, slot.block)) store(device, number);
  directory_.remove(slot.block, device);
  slots(device).evict(number);
  if (schedule_.own_places) stays_[at(device)].end(number);
}

/// Whether a block that has places of its own is to have another one from this task on.
bool PlanReader::Planner::moves(int device, int number) {
  return schedule_.own_places &&
         stays_[at(device)].of(slots(device).slot(number).block, ahead_.position()) != number;
}

/// The device from which a block's latest value comes faster than by the host: of those that have
/// it in a slot, the one where it is there first. kNoDevice: by the host. What tasks of a
/// resident schedule made always comes from a device: no load waits until something is home.
int PlanReader::Planner::peer_source(int device, BlockId id, std::int64_t block) {
  if (!has_peers_ || options_.copies_in_stream) return kNoDevice;
  int source = kNoDevice;
  const auto ready = [&](int of) { return slots(of).slot(slots(of).find(block)).ready; };
  const auto kind = [&](int of) { return machine_.devices[at(of)].kind; };
  directory_.for_each(block, [&](int d) {
    if (d == device || d == layout_.host || kind(d) != kind(device)) return;
    if (source == kNoDevice || ready(d) < ready(source)) source = d;
  });
  const bool rests = directory_.is_backed(block) && directory_.written_back_by(block).sequence == 0;
  if (source == kNoDevice || (schedule_.resident && !rests)) return source;
  const std::int64_t bytes = blocks_.bytes(id);
  double by_host = transfer_seconds(machine_.devices[at(device)].host_to_device, bytes);
  if (!can_be_loaded(block))
    by_host += transfer_seconds(machine_.devices[at(source)].device_to_host, bytes);
  return transfer_seconds(peer_link(machine_), bytes) < by_host ? source : kNoDevice;
}

/// A value that only another device has, and that is to go by the host, is written back first.
void PlanReader::Planner::send_home(BlockId id, std::int64_t block) {
  const int holder = directory_.owner(block);
  require(holder != kNoDevice, ErrorKind::misuse, "plan",
          "block {} is read before anything wrote it", blocks_.name(id));
  const int number = slots(holder).find(block);
  store(holder, number);
  slots(holder).release(number);  // it is backed now
}

/// The device is about to write the block: copies elsewhere are stale from now on.
void PlanReader::Planner::take_ownership(int device, std::int64_t block) {
  directory_.for_each(block, [&](int d) {
    if (d != device) let_go(d, slots(d).find(block));
  });
  directory_.set_owner(block, device);
}

/// Drops all copies of a block whose value is not needed any more.
void PlanReader::Planner::discard(std::int64_t block) {
  directory_.for_each(block, [&](int d) { let_go(d, slots(d).find(block)); });
}

/// Values that are only on a device when the tasks are done go home, unless they are temporary or
/// stay.
void PlanReader::Planner::flush() {
  for (int d = 0; d < schedule_.devices; ++d) {
    for (int s = 0; s < slots(d).count(); ++s) {
      const Slot& slot = slots(d).slot(s);
      if (slot.block < 0 || !directory_.owns(d, slot.block)) continue;
      const BlockFamily& family = blocks_.family(slot.id.family());
      if (family.origin == Origin::temporary || family.stays) continue;
      store(d, s, Value::last);
    }
  }
  flush_host();
}

void PlanReader::Planner::note_waste(int device, int number, std::int64_t bytes, int sign) {
  if (schedule_.own_places || schedule_.resident) return;  // less than the alignment
  const std::int64_t slot = layout_.class_bytes[at(slots(device).slot(number).size_class)];
  waste_ += sign * (slot - bytes);
  totals_.wasted_bytes = std::max(totals_.wasted_bytes, waste_);
}

Residency PlanReader::Planner::residency() const {
  Residency left;
  left.devices.resize(at(schedule_.devices));
  for (std::size_t d = 0; d < left.devices.size(); ++d) {
    Residency::Node& node = left.devices[d];
    node.arena_bytes = layout_.devices[d].arena_bytes;
    if (d < start_.devices.size() && !layout_.devices[d].resident.empty())
      node.arena_bytes = std::max(node.arena_bytes, start_.devices[d].arena_bytes);
    for (int s = 0; s < slots_[d].count(); ++s) {
      const Slot& slot = slots_[d].slot(s);
      if (slot.block < 0 || schedule_.own_places) continue;
      const BlockFamily& family = blocks_.family(slot.id.family());
      const std::uint64_t identity = family.identity;
      const bool owned = directory_.owns(static_cast<int>(d), slot.block);
      if (identity == 0 || (owned && !family.stays)) continue;
      // A copy, from a peer, of what another device has and home has not: only that one is kept.
      // (What only host memory has when a plan ends is temporary.)
      if (!owned && !directory_.is_backed(slot.block)) continue;
      const BlockExtent x = blocks_.extent(slot.id);
      const SlotPlace& place = layout_.devices[d].slots[at(s)];
      node.blocks.push_back(
          {identity, slot.id.row(), slot.id.col(), x.rows, x.cols, blocks_.element(slot.id),
           place.offset,
           schedule_.resident ? slot_room(place.bytes) : layout_.class_bytes[at(place.size_class)],
           owned});
    }
  }
  return left;
}

PlanReader::PlanReader(const Plan& plan) : planner_(std::make_unique<Planner>(plan)) {}
PlanReader::~PlanReader() = default;
bool PlanReader::next(PlanWindow& window) { return planner_->next(window); }
const PlanTotals& PlanReader::totals() const { return planner_->totals(); }
Residency PlanReader::residency() const { return planner_->residency(); }

Plan::Plan(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options,
           Residency start, Trace* trace)
    : schedule_(std::move(schedule)),
      machine_(std::move(machine)),
      options_(options),
      start_(std::move(start)) {
  require(options_.first_step >= 0 &&
              (options_.first_step == 0 || start_.empty() || schedule_->resident),
          ErrorKind::misuse, "plan", "a plan that starts at step {} starts with empty devices",
          options_.first_step);
  const bool urgent = options_.urgent_queue && !options_.one_queue && !options_.copies_in_stream;
  layout_ = make_layout(*schedule_, machine_,
                        {.urgent_queue = urgent, .first_step = options_.first_step}, start_);
  require(loses_nothing(start_, layout_), ErrorKind::memory, "plan",
          "blocks that are only on the devices have no place in this plan; they have to be brought "
          "home before it");
  PlanReader reader(*this);
  if (trace != nullptr) {
    *trace = simulate(*this, reader);
  } else {
    PlanWindow window;
    while (reader.next(window)) continue;
  }
  totals_ = reader.totals();
  end_ = reader.residency();
}

Plan::Plan(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options,
           Residency start)
    : Plan(std::move(schedule), std::move(machine), options, std::move(start), nullptr) {}

Plan Plan::simulated(std::shared_ptr<const Schedule> schedule, Machine machine, PlanOptions options,
                     Residency start, Trace& trace) {
  return {std::move(schedule), std::move(machine), options, std::move(start), &trace};
}

}  // namespace strata
