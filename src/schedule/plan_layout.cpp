#include "schedule/plan_layout.hpp"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::int64_t kSlotAlignment = 256;

std::int64_t slot_bytes(const BlockTable& blocks, int family) {
  return (blocks.capacity_bytes(family) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

/// The fewest slots of a family with which every task can run.
std::int64_t slots_min(const Schedule& schedule, int family) {
  return std::min<std::int64_t>(schedule.operands[static_cast<std::size_t>(family)],
                                schedule.blocks.count(family));
}

}  // namespace

std::int64_t smallest_budget_bytes(const Schedule& schedule) {
  std::int64_t bytes = 0;
  for (int f = 0; f < schedule.blocks.families(); ++f) {
    bytes += slots_min(schedule, f) * slot_bytes(schedule.blocks, f);
  }
  return bytes;
}

PlanLayout make_layout(const Schedule& schedule, const Machine& machine) {
  const BlockTable& blocks = schedule.blocks;
  require(static_cast<int>(machine.devices.size()) >= schedule.devices && schedule.devices >= 1 &&
              schedule.devices <= 64,
          ErrorKind::misuse, "plan", "a schedule for {} devices cannot run on {}", schedule.devices,
          machine.devices.size());
  PlanLayout layout;
  layout.devices = schedule.devices;
  layout.compute_queues = std::max(1, machine.devices[0].compute_queues);
  layout.peers = layout.devices > 1 && machine.device_to_device.bytes_per_second > 0;
  std::int64_t budget = machine.devices[0].memory_bytes;
  for (int d = 0; d < schedule.devices; ++d) {
    budget = std::min(budget, machine.devices[static_cast<std::size_t>(d)].memory_bytes);
  }
  const std::int64_t smallest = smallest_budget_bytes(schedule);
  require(budget >= smallest, ErrorKind::memory, "plan",
          "a device memory of {} ({} bytes) is too small: the smallest that works with these tiles "
          "is {} bytes",
          format_bytes(budget), budget, smallest);

  std::vector<int> order(static_cast<std::size_t>(blocks.families()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return blocks.total_bytes(a) < blocks.total_bytes(b); });
  layout.slots.resize(order.size());
  std::int64_t extra = budget - smallest;
  auto families_left = static_cast<std::int64_t>(order.size());
  for (const int f : order) {
    SlotRange& range = layout.slots[static_cast<std::size_t>(f)];
    range.slot_bytes = slot_bytes(blocks, f);
    range.count = slots_min(schedule, f);
    if (range.slot_bytes > 0) {
      const std::int64_t share = extra / families_left / range.slot_bytes;
      const std::int64_t more = std::min(share, blocks.count(f) - range.count);
      range.count += more;
      extra -= more * range.slot_bytes;
    }
    --families_left;
  }
  for (SlotRange& range : layout.slots) {
    range.offset = layout.arena_bytes;
    layout.arena_bytes += range.count * range.slot_bytes;
  }
  return layout;
}

void check_kernel(const Schedule& schedule, const Machine& machine, const Task& task) {
  const auto operation = static_cast<std::size_t>(task.operation);
  if (operation >= machine.kernel_mask.size()) return;
  const Precision precision = schedule.blocks.family(task.out.family()).precision;
  require((machine.kernel_mask[operation] >> static_cast<int>(precision) & 1) != 0,
          ErrorKind::device, "plan", "the backend has no kernel for {} in {}",
          to_string(task.operation), to_string(precision));
}

std::vector<TraceQueue> trace_queues(const Plan& plan) {
  const PlanLayout& layout = plan.layout();
  std::vector<TraceQueue> queues;
  for (int d = 0; d < layout.devices; ++d) {
    const std::string& device = plan.machine().devices[static_cast<std::size_t>(d)].name;
    const auto index = static_cast<std::uint16_t>(d);
    queues.push_back({device, "copy in", index});
    queues.push_back({device, "copy out", index});
    for (int q = 0; q < layout.compute_queues; ++q) {
      queues.push_back({device, fmt::format("compute {}", q), index});
    }
    if (layout.urgent) queues.push_back({device, "urgent", index});
    if (layout.peers) queues.push_back({device, "peer in", index});
  }
  return queues;
}

Span span_of(const BlockTable& blocks, const Step& step) {
  Span span;
  span.queue = step.queue;
  span.block = step.task.out.bits;
  if (step.kind == StepKind::compute) {
    span.kind = SpanKind::compute;
    span.operation = static_cast<std::uint8_t>(step.task.operation);
    span.flops = step.task.operation == Operation::covariance ? 0 : flops_of(blocks, step.task);
  } else {
    span.kind = step.kind == StepKind::load    ? SpanKind::load
                : step.kind == StepKind::store ? SpanKind::store
                                               : SpanKind::peer;
    span.bytes = blocks.bytes(step.task.out);
  }
  return span;
}

void Plan::write_text(std::ostream& out) const {
  const BlockTable& blocks = schedule_->blocks;
  const auto queue_name = [&](std::uint16_t queue) {
    const int device = queue / layout_.queues_per_device();
    const int local = queue % layout_.queues_per_device();
    if (local == PlanLayout::kCopyIn) return fmt::format("{}:in", device);
    if (local == PlanLayout::kCopyOut) return fmt::format("{}:out", device);
    if (layout_.urgent && local == layout_.urgent_compute()) return fmt::format("{}:u", device);
    if (local == layout_.peer_in()) return fmt::format("{}:peer", device);
    return fmt::format("{}:c{}", device, local - PlanLayout::kFirstCompute);
  };
  PlanReader reader(*this);
  PlanWindow window;
  while (reader.next(window)) {
    for (const Step& step : window.steps) {
      const Task& task = step.task;
      const char* verb = step.kind == StepKind::load    ? "load"
                         : step.kind == StepKind::store ? "store"
                                                        : "copy";
      out << queue_name(step.queue) << " #" << step.sequence << ' '
          << (step.kind == StepKind::compute ? to_string(task.operation) : verb) << ' '
          << blocks.name(task.out) << '@' << step.slots[0];
      if (step.kind == StepKind::peer) out << " from " << step.source << '@' << step.slots[1];
      for (int i = 0; step.kind == StepKind::compute && i < task.input_count; ++i) {
        out << ' ' << blocks.name(task.inputs[static_cast<std::size_t>(i)]) << '@'
            << step.slots[static_cast<std::size_t>(i) + 1];
      }
      for (std::uint32_t w = 0; w < step.wait_count; ++w) {
        const Wait& wait = window.waits[step.wait_begin + w];
        out << (w == 0 ? " after " : ", ") << queue_name(wait.queue) << " #" << wait.sequence;
      }
      out << '\n';
    }
  }
}

}  // namespace strata
