// The planner, step by step: which queue does what, and what it waits for.

#include <algorithm>
#include <utility>

#include "schedule/planner.hpp"
#include "schedule/shared_call.hpp"

namespace strata {
namespace {

/// A phase in which devices that share a task but meet, for the clocks of predictions.
constexpr double kLaunchSeconds = 5e-6;

}  // namespace

/// The queue of a device's loads or stores: the copy queue, or the stream of the current task. (A
/// value that another device has to hand over leaves through that device's first compute queue.)
int PlanReader::Planner::copy_queue(int device, int copy) const {
  if (!options_.copies_in_stream || device == layout_.host) return copy;
  if (layout_.queues[at(stream_)].device == device) return stream_;
  return device_of(device).first_compute;
}

/// Queues that may load a block, for which home_loads_ has an entry: those of copies in, one a
/// device, or all.
std::size_t PlanReader::Planner::loading_queues() const {
  return options_.copies_in_stream ? layout_.queues.size() : layout_.devices.size();
}
std::uint64_t& PlanReader::Planner::home_load(std::int64_t block, int queue) {
  const std::size_t which =
      options_.copies_in_stream ? at(queue) : layout_.queues[at(queue)].device;
  return home_loads_[at(block) * loading_queues() + which];
}

std::pair<int, int> PlanReader::Planner::readers_of(int device) const {
  const DeviceLayout& layout = device_of(device);
  if (device == layout_.host) return {0, static_cast<int>(layout_.queues.size())};
  return {layout.first_queue, layout.queue_count};
}

std::uint64_t& PlanReader::Planner::reader(int device, int number, int queue) {
  const auto [first, count] = readers_of(device);
  return readers_[at(device)][at(number) * at(count) + at(queue - first)];
}
std::uint64_t& PlanReader::Planner::peer_reader(int device, int number, int by) {
  return peers_[at(device)][at(number) * layout_.devices.size() + at(by)];
}

/// From where the block rests: host memory, or storage, of which host memory may be the device.
void PlanReader::Planner::load(int device, BlockId id, int number) {
  if (device != layout_.host && by_host(id)) return load_from_host(device, id, number);
  const bool reads = in_storage(id);
  const std::int64_t block = blocks_.index(id);
  const int queue = copy_queue(device, device_of(device).copy_in);
  Slot& slot = slots(device).slot(number);
  Step& step = begin_copy(reads ? StepKind::read : StepKind::load, queue, id, number);
  wait_for_uses(step, device, number);
  add_wait(step, directory_.written_back_by(block));
  finish_step(step);
  const LinkRate& link = reads ? storage_->read : machine_.devices[at(device)].host_to_device;
  slot.ready = slot.idle = advance(queue, slot.idle, transfer_seconds(link, step.bytes));
  wrote(device, number, step);
  home_load(block, queue) = step.sequence;
  (reads ? totals_.traffic.storage_read_bytes : totals_.traffic.host_to_device_bytes) += step.bytes;
  ++(reads ? totals_.reads : totals_.loads);
}

void PlanReader::Planner::copy_from_peer(int device, BlockId id, int number, int source) {
  const int queue = device_of(device).peer_in;
  const int from = slots(source).find(blocks_.index(id));
  Slot& slot = slots(device).slot(number);
  Slot& there = slots(source).slot(from);
  Step& step = begin_copy(StepKind::peer, queue, id, number, source, from);
  wait_for_uses(step, device, number);
  add_wait(step, there.writer);
  finish_step(step);
  const double seconds = transfer_seconds(peer_link(machine_), step.bytes);
  slot.ready = slot.idle = advance(queue, std::max(slot.idle, there.ready), seconds);
  there.idle = std::max(there.idle, slot.ready);
  wrote(device, number, step);
  peer_reader(source, from, device) = step.sequence;
  totals_.traffic.device_to_device_bytes += step.bytes;
  ++totals_.peer_copies;
}

/// To where the block rests.
void PlanReader::Planner::store(int device, int number, Value value) {
  Slot& slot = slots(device).slot(number);
  if (device != layout_.host && by_host(slot.id)) return store_on_host(device, number, value);
  const bool writes = in_storage(slot.id);
  const int queue = copy_queue(device, device_of(device).copy_out);
  const std::int64_t block = slot.block;
  Step& step = begin_copy(writes ? StepKind::write : StepKind::store, queue, slot.id, number);
  step.last = writes && value == Value::last;
  add_wait(step, slot.writer);
  add_wait(step, directory_.written_back_by(block));
  for (std::size_t i = 0; i < loading_queues();
       ++i) {  // no load may still read what is overwritten
    const int loader = options_.copies_in_stream ? static_cast<int>(i) : layout_.devices[i].copy_in;
    add_wait(step, {static_cast<std::uint16_t>(loader), home_load(block, loader)});
  }
  finish_step(step);
  const LinkRate& link = writes ? storage_->write : machine_.devices[at(device)].device_to_host;
  slot.idle = std::max(slot.idle, advance(queue, slot.ready, transfer_seconds(link, step.bytes)));
  reader(device, number, queue) = step.sequence;
  directory_.write_back(block, {step.queue, step.sequence});
  (writes ? totals_.traffic.storage_write_bytes : totals_.traffic.device_to_host_bytes) +=
      step.bytes;
  ++(writes ? totals_.writes : totals_.stores);
}

/// When the operands that lie in these slots may be used, by the estimates.
double PlanReader::Planner::ready_for(const Lookahead::Entry& entry, int device,
                                      std::span<const int> numbers) {
  double ready = 0;
  for (std::size_t i = 0; i < entry.uses.size(); ++i) {
    const Slot& slot = slots(device).slot(numbers[i]);
    ready = std::max(ready, writes(entry.uses[i].access) ? slot.idle : slot.ready);
  }
  return ready;
}

/// A computation with the operands of a task in these slots of the queue's device.
Step& PlanReader::Planner::begin_task(const Lookahead::Entry& entry, int queue,
                                      std::span<const int> numbers) {
  Step& step = begin_step(StepKind::compute, queue);
  step.operation = entry.task->operation;
  step.variant = entry.task->variant;
  step.calls = entry.task->calls;
  step.operand_count = static_cast<std::uint32_t>(entry.operands.size());
  for (std::size_t i = 0; i < entry.operands.size(); ++i) {
    window_->operands.push_back(entry.operands[i].id);
    window_->slots.push_back(numbers[entry.use_of[i]]);
  }
  return step;
}

void PlanReader::Planner::wait_for_operands(const Step& step, const Lookahead::Entry& entry,
                                            std::span<const int> numbers) {
  for (std::size_t i = 0; i < entry.uses.size(); ++i) {
    if (writes(entry.uses[i].access))
      wait_for_uses(step, step.device, numbers[i]);
    else
      add_wait(step, slots(step.device).slot(numbers[i]).writer);
  }
}

/// The step has used the operands: what follows comes after it.
void PlanReader::Planner::note_uses(const Step& step, const Lookahead::Entry& entry,
                                    std::span<const int> numbers, double end) {
  for (std::size_t i = 0; i < entry.uses.size(); ++i) {
    Slot& slot = slots(step.device).slot(numbers[i]);
    if (writes(entry.uses[i].access)) {
      wrote(step.device, numbers[i], step);
      slot.ready = slot.idle = end;
    } else {
      reader(step.device, numbers[i], step.queue) = step.sequence;
      slot.idle = std::max(slot.idle, end);
    }
  }
}

void PlanReader::Planner::compute(const Lookahead::Entry& entry) {
  const Task& task = *entry.task;
  const int device = task.device;
  const double ready = ready_for(entry, device, number_);
  std::size_t out = 0;  // the first that is written
  while (out + 1 < entry.uses.size() && !writes(entry.uses[out].access)) ++out;
  if (!writes(entry.uses[out].access)) out = 0;
  const int queue = choose_queue(task, device, ready, slots(device).slot(number_[out]));
  Step& step = begin_task(entry, queue, number_);
  step.work = work_of(blocks_, task, entry.operands);
  const Elements elements = elements_of(blocks_, task, entry.operands);
  if (task.seconds > 0)
    step.seconds = std::max(task.seconds, kernels_.least_seconds(device, elements, step.work));
  step.share = task.share;
  const double end =
      advance(queue, ready,
              kernels_.cost(device, *task.operation, elements, step.work, step.seconds).seconds);
  wait_for_operands(step, entry, number_);
  finish_step(step);
  note_uses(step, entry, number_, end);
  totals_.flops += task.operation->flops_per_work * step.work;
  ++totals_.tasks;
}

/// Three steps on each device (shared_call.hpp), where all wait for all between one and the next.
/// The work is the first device's step's; its time is that of each.
void PlanReader::Planner::compute_shared(const Lookahead::Entry& entry,
                                         std::span<const std::vector<int>> numbers) {
  const Task& task = *entry.task;
  const Elements elements = elements_of(blocks_, task, entry.operands);
  const double work = work_of(blocks_, task, entry.operands);
  const auto count = static_cast<int>(numbers.size());
  std::vector<std::size_t> written;  // operands
  for (std::size_t i = 0; i < entry.operands.size(); ++i)
    if (writes(task.access_of(i))) written.push_back(i);
  double ready = 0;
  for (int rank = 0; rank < count; ++rank)
    ready = std::max(ready, ready_for(entry, task.device + rank, numbers[at(rank)]));
  std::vector<Wait> before;  // of each device, its step of the last phase
  for (const SharePhase phase : {SharePhase::prepare, SharePhase::work, SharePhase::conclude}) {
    std::vector<Wait> now;
    for (int rank = 0; rank < count; ++rank) {
      const int device = task.device + rank;
      const std::vector<int>& mine = numbers[at(rank)];
      const int queue = before.empty() ? choose_queue(task, device, ready,
                                                      slots(device).slot(mine[entry.use_of[0]]))
                                       : static_cast<int>(before[at(rank)].queue);
      Step& step = begin_task(entry, queue, mine);
      step.shared = true;
      step.variant = SharedCall{phase, rank, count, static_cast<int>(written.size())}.variant();
      for (int other = 0; other < count; ++other) {
        for (const std::size_t i : written) {
          if (other == rank) continue;
          window_->operands.push_back(entry.operands[i].id);
          window_->slots.push_back(numbers[at(other)][entry.use_of[i]]);
          ++step.operand_count;
        }
      }
      step.seconds = kLaunchSeconds;
      if (phase == SharePhase::work) {
        step.work = rank == 0 ? work : 0;
        step.seconds = std::max(
            {task.seconds, kernels_.least_seconds(device, elements, work / count), kLaunchSeconds});
        step.share = task.share;
      }
      const double end = advance(queue, ready, step.seconds);
      if (before.empty()) wait_for_operands(step, entry, mine);
      for (const Wait& wait : before) add_wait(step, wait);
      finish_step(step);
      if (phase == SharePhase::conclude) note_uses(step, entry, mine, end);
      now.push_back({step.queue, step.sequence});
    }
    before = std::move(now);
  }
  totals_.flops += task.operation->flops_per_work * work;
  ++totals_.tasks;
}

/// The urgent queue for an urgent task; else the compute queue on which the task can start first.
/// Among several the one that is busy longest, so that an idle queue is left to tasks that have
/// nothing to wait for; then the one that wrote its output. Tasks of several devices that hold all
/// of their blocks take turns instead: when another device will have sent what they wait for is
/// known too badly.
int PlanReader::Planner::choose_queue(const Task& task, int device, double ready, const Slot& out) {
  const DeviceLayout& queues = device_of(device);
  if (options_.copies_in_stream) return stream_;
  if (queues.urgent >= 0 && task.urgent) return queues.urgent;
  const int first = queues.first_compute;
  if (options_.one_queue) return first;
  if (task.queue >= 0) return first + task.queue % queues.compute_queues;
  if (schedule_.resident && schedule_.devices > 1)
    return first + turns_[at(device)]++ % queues.compute_queues;
  const int end = first + queues.compute_queues;
  const int writer = static_cast<int>(out.writer.queue);  // or the queue of a copy
  const bool computes = out.writer.sequence > 0 && writer >= first && writer < end;
  const auto better = [&](int a, int b) {  // a than b
    const double at_a = clock_[at(a)];
    const double at_b = clock_[at(b)];
    const double start_a = std::max(at_a, ready);
    const double start_b = std::max(at_b, ready);
    return start_a < start_b || (start_a == start_b && at_a > at_b);
  };
  int best = computes ? writer : first;
  for (int q = first; q < end; ++q) {
    if (better(q, best)) best = q;
  }
  return best;
}

/// The compute queue with the least work so far, for a task whose copies go through it too.
int PlanReader::Planner::least_busy_queue(int device) const {
  const int first = device_of(device).first_compute;
  int best = first;
  for (int q = first; q < first + device_of(device).compute_queues && !options_.one_queue; ++q) {
    if (clock_[at(q)] < clock_[at(best)]) best = q;
  }
  return best;
}

Step& PlanReader::Planner::begin_step(StepKind kind, int queue) {
  Step& step = window_->steps.emplace_back();
  step.kind = kind;
  step.queue = static_cast<std::uint16_t>(queue);
  step.device = layout_.queues[at(queue)].device;
  step.sequence = ++sequence_[at(queue)];
  step.operand_begin = static_cast<std::uint32_t>(window_->operands.size());
  step.wait_begin = static_cast<std::uint32_t>(window_->waits.size());
  return step;
}

Step& PlanReader::Planner::begin_copy(StepKind kind, int queue, BlockId id, int number) {
  Step& step = begin_step(kind, queue);
  window_->operands.push_back(id);
  window_->slots.push_back(number);
  step.operand_count = 1;
  step.bytes = blocks_.bytes(id);
  return step;
}

/// A copy between a slot and another place's.
Step& PlanReader::Planner::begin_copy(StepKind kind, int queue, BlockId id, int number, int source,
                                      int from) {
  Step& step = begin_copy(kind, queue, id, number);
  window_->operands.push_back(id);
  window_->slots.push_back(from);
  step.source = static_cast<std::uint16_t>(source);
  step.operand_count = 2;
  return step;
}

void PlanReader::Planner::finish_step(Step& step) const {
  step.wait_count = static_cast<std::uint32_t>(window_->waits.size()) - step.wait_begin;
}

void PlanReader::Planner::add_wait(const Step& step, Wait wait) {
  if (wait.sequence == 0 || wait.queue == step.queue) return;
  std::uint64_t& known = known_[at(step.queue) * layout_.queues.size() + wait.queue];
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
void PlanReader::Planner::wait_for_uses(const Step& step, int device, int number) {
  if (schedule_.own_places) {
    // And what overlaps it, once: later steps wait for this one.
    for (const int other : stays_[at(device)].take_before(number))
      wait_for_uses(step, device, other);
  }
  add_wait(step, slots(device).slot(number).writer);
  const auto [first, count] = readers_of(device);
  for (int q = first; q < first + count; ++q)
    add_wait(step, {static_cast<std::uint16_t>(q), reader(device, number, q)});
  for (int d = 0; has_peers_ && d < schedule_.devices; ++d) {
    const auto queue = static_cast<std::uint16_t>(device_of(d).peer_in);
    add_wait(step, {queue, peer_reader(device, number, d)});
  }
}

void PlanReader::Planner::wrote(int device, int number, const Step& step) {
  slots(device).slot(number).writer = {step.queue, step.sequence};
  const auto [first, count] = readers_of(device);
  for (int q = first; q < first + count; ++q) reader(device, number, q) = 0;
  for (int d = 0; has_peers_ && d < schedule_.devices; ++d) peer_reader(device, number, d) = 0;
}

/// Estimated end of `seconds` of work put into a queue; a clock only for choosing queues.
double PlanReader::Planner::advance(int queue, double earliest, double seconds) {
  double& clock = clock_[at(queue)];
  clock = std::max(clock, earliest) + seconds;
  return clock;
}

}  // namespace strata
