// A plan as text, and as the spans of a trace.

#include <ostream>

#include "base/check.hpp"
#include "schedule/plan.hpp"

namespace strata {
namespace {

std::string short_name(const PlanQueue& queue) {
  switch (queue.role) {
    case QueueRole::copy_in: return fmt::format("{}:in", queue.device);
    case QueueRole::copy_out: return fmt::format("{}:out", queue.device);
    case QueueRole::compute: return fmt::format("{}:c{}", queue.device, queue.number);
    case QueueRole::urgent: return fmt::format("{}:u", queue.device);
    case QueueRole::peer_in: return fmt::format("{}:peer", queue.device);
  }
  return "?";
}

std::string name_of(const PlanQueue& queue) {
  switch (queue.role) {
    case QueueRole::copy_in: return "copy in";
    case QueueRole::copy_out: return "copy out";
    case QueueRole::compute: return fmt::format("compute {}", queue.number);
    case QueueRole::urgent: return "urgent";
    case QueueRole::peer_in: return "peer in";
  }
  return "?";
}

std::string_view verb_of(const Step& step) {
  switch (step.kind) {
    case StepKind::load: return "load";
    case StepKind::store: return "store";
    case StepKind::peer: return "copy";
    case StepKind::read: return "read";
    case StepKind::write: return "write";
    case StepKind::compute: break;
  }
  return step.operation->name;
}

SpanKind kind_of(StepKind kind) {
  switch (kind) {
    case StepKind::load: return SpanKind::load;
    case StepKind::store: return SpanKind::store;
    case StepKind::peer: return SpanKind::peer;
    case StepKind::read: return SpanKind::read;
    case StepKind::write: return SpanKind::write;
    case StepKind::compute: break;
  }
  return SpanKind::compute;
}

void write_step(std::ostream& out, const Plan& plan, const PlanWindow& window, const Step& step) {
  const BlockTable& blocks = plan.schedule().blocks;
  const auto queue_name = [&](std::uint16_t q) { return short_name(plan.layout().queues[q]); };
  out << queue_name(step.queue) << " #" << step.sequence << ' ' << verb_of(step);
  const std::span<const BlockId> operands = window.operands_of(step);
  const std::int32_t* slots = window.slots_of(step);
  if (step.kind == StepKind::compute) {
    const auto per_call =
        static_cast<std::size_t>(operands_of_call(*step.operation, step.calls, operands.size()));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i > 0 && i % per_call == 0) out << ';';
      out << ' ' << blocks.name(operands[i]) << '@' << slots[i];
    }
  } else {
    out << ' ' << blocks.name(operands[0]) << '@' << slots[0];
    if (step.operand_count > 1)
      out << (step.kind == StepKind::store ? " to " : " from ") << step.source << '@' << slots[1];
  }
  const char* separator = " after ";
  for (const Wait& wait : window.waits_of(step)) {
    out << separator << queue_name(wait.queue) << " #" << wait.sequence;
    separator = ", ";
  }
  out << '\n';
}

}  // namespace

void Plan::write_text(std::ostream& out) const {
  PlanReader reader(*this);
  PlanWindow window;
  while (reader.next(window)) {
    for (const Step& step : window.steps) write_step(out, *this, window, step);
  }
}

Trace empty_trace(const Plan& plan) {
  Trace trace;
  for (const PlanQueue& queue : plan.layout().queues) {
    const bool host = queue.device == plan.layout().host;
    trace.queues.push_back({host ? "host memory" : plan.machine().devices[queue.device].name,
                            name_of(queue), queue.device});
  }
  const BlockTable& blocks = plan.schedule().blocks;
  for (int f = 0; f < blocks.families(); ++f) trace.families.push_back(blocks.family(f).name);
  return trace;
}

Span SpanMaker::span_of(const PlanWindow& window, const Step& step) {
  Span span;
  span.queue = step.queue;
  const BlockId id = window.block_of(step);
  span.family = static_cast<std::uint8_t>(id.family());
  span.row = static_cast<std::int32_t>(id.row());
  span.col = static_cast<std::int32_t>(id.col());
  span.kind = kind_of(step.kind);
  span.bytes = step.bytes;
  if (step.kind != StepKind::compute) return span;
  span.calls = step.calls;
  span.flops = step.operation->flops_per_work * step.work;
  auto known = numbers_.begin();
  while (known != numbers_.end() && known->first != step.operation) ++known;
  if (known == numbers_.end()) {
    numbers_.emplace_back(step.operation, trace_.operation_number(step.operation->name));
    known = numbers_.end() - 1;
  }
  span.operation = known->second;
  return span;
}

}  // namespace strata
