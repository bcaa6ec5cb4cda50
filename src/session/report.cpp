#include "session/report.hpp"

#include <algorithm>
#include <utility>

namespace strata {

RunReport make_report(const Plan& plan, const RunFigures& figures, Trace trace) {
  RunReport report;
  report.n = figures.n;
  report.tile = figures.tile;
  report.path = figures.in_core ? "in-core" : plan.schedule().resident ? "resident" : "planned";
  report.policy = figures.policy;
  for (int d = 0; d < plan.schedule().devices; ++d)
    report.devices.push_back(plan.machine().devices[static_cast<std::size_t>(d)].name);
  report.compute_queues = plan.layout().device(0).compute_queues;
  report.seconds = trace.seconds;
  report.plan_seconds = figures.seconds;
  report.predicted_seconds = figures.predicted_seconds;
  report.host_bytes = figures.host_bytes;
  report.flops = plan.totals().flops;
  report.tasks = plan.totals().tasks;
  report.peak_device_bytes = plan.layout().arena_bytes();
  report.traffic = trace.traffic;
  static_cast<Traffic&>(report.planned_traffic) = plan.totals().traffic;
  report.planned_traffic.floor_bytes = figures.floor_bytes;
  report.trace = std::move(trace);
  return report;
}

RunReport make_simulated_report(PlannedRun planned) {
  Trace trace = std::move(planned.simulated);
  RunReport report = make_report(*planned.plan, planned, std::move(trace));
  report.seconds = 0;
  return report;
}

namespace {

/// The place of `name` in `names`, behind which it is put if it is new.
template <class Number>
Number number_of(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  const auto number = static_cast<Number>(at - names.begin());
  if (at == names.end()) names.push_back(name);
  return number;
}

std::uint16_t queue_number(std::vector<TraceQueue>& queues, const TraceQueue& queue) {
  const auto at = std::find_if(queues.begin(), queues.end(), [&](const TraceQueue& q) {
    return q.device_index == queue.device_index && q.device == queue.device && q.name == queue.name;
  });
  const auto number = static_cast<std::uint16_t>(at - queues.begin());
  if (at == queues.end()) queues.push_back(queue);
  return number;
}

void append(Trace& total, const Trace& part) {
  const double begin = total.seconds;
  const double flops = total.flops + part.flops;
  Traffic traffic = total.traffic;
  traffic += part.traffic;
  std::vector<std::uint16_t> queues;
  std::vector<std::uint16_t> operations;
  std::vector<std::uint8_t> families;
  for (const TraceQueue& queue : part.queues) queues.push_back(queue_number(total.queues, queue));
  for (const std::string& name : part.operations)
    operations.push_back(total.operation_number(name));
  for (const std::string& name : part.families)
    families.push_back(number_of<std::uint8_t>(total.families, name));
  for (Span span : part.spans) {
    span.queue = queues[span.queue];
    if (span.kind == SpanKind::compute) span.operation = operations[span.operation];
    if (span.family < families.size()) span.family = families[span.family];
    span.begin += begin;
    span.end += begin;
    total.add(span);
  }
  for (const TraceNote& note : part.notes) total.notes.push_back({begin + note.at, note.text});
  if (part.spans.empty() && part.spans_added > 0) {  // its totals are all that it kept
    std::vector<Span>().swap(total.spans);
    total.spans_added = std::max(total.spans_added, Trace::kSpansMax) + part.spans_added;
  }
  total.traffic = traffic;
  total.flops = flops;
  total.seconds = begin + part.seconds;
}

/// Whether the part was the first, which is then the total.
bool take_first(RunReport& total, RunReport& part) {
  if (!total.path.empty()) return false;
  std::vector<TraceNote> notes = std::move(total.trace.notes);
  total = std::move(part);
  total.trace.notes.insert(total.trace.notes.begin(), notes.begin(), notes.end());
  return true;
}

/// All but the traces.
void add_figures(RunReport& total, const RunReport& part) {
  total.seconds += part.seconds;
  total.plan_seconds += part.plan_seconds;
  if (total.predicted_seconds && part.predicted_seconds) {
    *total.predicted_seconds += *part.predicted_seconds;
  } else {
    total.predicted_seconds.reset();
  }
  total.flops += part.flops;
  total.tasks += part.tasks;
  total.peak_device_bytes = std::max(total.peak_device_bytes, part.peak_device_bytes);
  total.traffic += part.traffic;
  static_cast<Traffic&>(total.planned_traffic) += part.planned_traffic;
  total.planned_traffic.floor_bytes += part.planned_traffic.floor_bytes;
}

}  // namespace

void accumulate(RunReport& total, RunReport part) {
  if (!take_first(total, part)) add_figures(total, part);
}

void accumulate_with_trace(RunReport& total, RunReport part) {
  if (take_first(total, part)) return;
  add_figures(total, part);
  append(total.trace, part.trace);
}

}  // namespace strata
