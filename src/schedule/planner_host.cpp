// The planner, between storage and the devices: what lies in host memory, where that does not hold
// all.
//
// Method: host memory has slots, as devices have, and gives them up by the same rule; the next use
// of a block is that on any device. A copy that it holds is always the block's latest value: it is
// let go when a device writes the block. What devices store there goes on to storage at once if it
// is the last value, else only if its slot is needed.

#include <algorithm>

#include "schedule/machine_model.hpp"
#include "schedule/planner.hpp"

namespace strata {

/// The block that leaves host memory. The one by the rule may be on its way to storage still: what
/// comes would wait for that, and reads and writes would take turns. Then another leaves that
/// nobody uses and that a device has, so that it is not read again soon.
int PlanReader::Planner::victim_on_host(std::int32_t size_class) {
  constexpr int kSlotsMax = 4096;  // where there are more, one by the rule has long been idle
  DeviceSlots& host = slots(layout_.host);
  const int by_rule = host.victim(size_class);
  const double now = clock_[at(copy_queue(layout_.host, device_of(layout_.host).copy_in))];
  if (by_rule < 0 || host.slot(by_rule).idle <= now || host.count() > kSlotsMax) return by_rule;
  if (options_.eviction == Eviction::longest_idle) return by_rule;
  int best = -1;
  for (int s = 0; s < host.count(); ++s) {
    const Slot& slot = host.slot(s);
    if (slot.size_class != size_class || slot.block < 0 || slot.held) continue;
    if (directory_.owns(layout_.host, slot.block)) continue;
    if (slot.idle > now || (best >= 0 && slot.next_use <= host.slot(best).next_use)) continue;
    bool on_device = slot.next_use == kNever;
    directory_.for_each(slot.block, [&](int place) { on_device |= place != layout_.host; });
    if (on_device) best = s;
  }
  return best >= 0 ? best : by_rule;
}

/// A slot in host memory for a block that has none there; it is held.
int PlanReader::Planner::place_on_host(BlockId id, std::int64_t block) {
  const int number = make_room(layout_.host, id);
  slots(layout_.host).place(number, id, block);
  slots(layout_.host).slot(number).next_use = next_use_[at(block)];
  slots(layout_.host).slot(number).retained = is_retained(block);
  directory_.add(block, layout_.host);
  note_waste(layout_.host, number, blocks_.bytes(id), 1);
  return number;
}

/// The slot of a block in host memory, into which it is read if it is not there; it is held.
int PlanReader::Planner::bring_to_host(BlockId id, std::int64_t block) {
  int number = slots(layout_.host).find(block);
  if (number >= 0) {
    slots(layout_.host).hold(number);
    return number;
  }
  number = place_on_host(id, block);
  load(layout_.host, id, number);
  return number;
}

void PlanReader::Planner::load_from_host(int device, BlockId id, int number) {
  DeviceSlots& host = slots(layout_.host);
  const int from = bring_to_host(id, blocks_.index(id));
  const int queue = copy_queue(device, device_of(device).copy_in);
  Slot& slot = slots(device).slot(number);
  Slot& there = host.slot(from);
  Step& step = begin_copy(StepKind::load, queue, id, number, layout_.host, from);
  wait_for_uses(step, device, number);
  add_wait(step, there.writer);
  finish_step(step);
  const double seconds = transfer_seconds(machine_.devices[at(device)].host_to_device, step.bytes);
  slot.ready = slot.idle = advance(queue, std::max(slot.idle, there.ready), seconds);
  there.idle = std::max(there.idle, slot.ready);
  there.last_use = ahead_.position();
  wrote(device, number, step);
  reader(layout_.host, from, queue) = step.sequence;
  host.release(from);
  totals_.traffic.host_to_device_bytes += step.bytes;
  ++totals_.loads;
}

void PlanReader::Planner::store_on_host(int device, int number, Value value) {
  DeviceSlots& host = slots(layout_.host);
  Slot& slot = slots(device).slot(number);
  const int to = place_on_host(slot.id, slot.block);
  Slot& there = host.slot(to);
  const int queue = copy_queue(device, device_of(device).copy_out);
  Step& step = begin_copy(StepKind::store, queue, slot.id, number, layout_.host, to);
  add_wait(step, slot.writer);
  wait_for_uses(step, layout_.host, to);
  finish_step(step);
  const double seconds = transfer_seconds(machine_.devices[at(device)].device_to_host, step.bytes);
  there.ready = there.idle = advance(queue, std::max(slot.ready, there.idle), seconds);
  there.last_use = ahead_.position();
  slot.idle = std::max(slot.idle, there.ready);
  reader(device, number, queue) = step.sequence;
  wrote(layout_.host, to, step);
  directory_.set_owner(slot.block, layout_.host);
  totals_.traffic.device_to_host_bytes += step.bytes;
  ++totals_.stores;
  if (value == Value::last && blocks_.family(slot.id.family()).origin != Origin::temporary)
    write(to, Value::last);
  host.release(to);
}

/// When a block is needed next, on any device.
void PlanReader::Planner::note_next_use(std::int64_t block, std::int64_t position) {
  next_use_[at(block)] = position;
  slots(layout_.host).set_next_use(block, position);
}

/// A block on a device is retained there, or released.
void PlanReader::Planner::retain(int device, int number, bool retained) {
  slots(device).set_retained(number, retained);
  if (layout_.host < 0 || options_.eviction != Eviction::longest_idle) return;
  const std::int64_t block = slots(device).slot(number).block;
  retained ? retainers_.add(block, device) : retainers_.remove(block, device);
  if (is_on_host(block))
    slots(layout_.host).set_retained(slots(layout_.host).find(block), is_retained(block));
}

/// Whether host memory retains it.
bool PlanReader::Planner::is_retained(std::int64_t block) const {
  bool retained = false;
  retainers_.for_each(block, [&](int) { retained = true; });
  return retained;
}

/// Values that only host memory has when the tasks are done go to storage, unless they are
/// temporary.
void PlanReader::Planner::flush_host() {
  if (layout_.host < 0) return;
  for (int s = 0; s < slots(layout_.host).count(); ++s) {
    const Slot& slot = slots(layout_.host).slot(s);
    if (slot.block < 0 || !directory_.owns(layout_.host, slot.block)) continue;
    if (blocks_.family(slot.id.family()).origin != Origin::temporary) write(s, Value::last);
  }
}

}  // namespace strata
