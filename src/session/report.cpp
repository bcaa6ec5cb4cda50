#include "session/report.hpp"

#include <algorithm>
#include <utility>

namespace strata {

RunReport make_report(const PlannedRun& planned, Trace trace) {
  const Plan& plan = *planned.plan;
  RunReport report;
  report.n = planned.n;
  report.tile = planned.tile;
  report.path = planned.in_core ? "in-core" : "planned";
  report.policy = planned.policy;
  for (int d = 0; d < plan.schedule().devices; ++d)
    report.devices.push_back(plan.machine().devices[static_cast<std::size_t>(d)].name);
  report.compute_queues = plan.layout().device(0).compute_queues;
  report.seconds = trace.seconds;
  report.plan_seconds = planned.seconds;
  report.predicted_seconds = planned.predicted_seconds;
  report.host_bytes = planned.host_bytes;
  report.flops = plan.totals().flops;
  report.tasks = plan.totals().tasks;
  report.peak_device_bytes = plan.layout().arena_bytes();
  report.traffic = trace.traffic;
  static_cast<Traffic&>(report.planned_traffic) = plan.totals().traffic;
  report.planned_traffic.floor_bytes = planned.floor_bytes;
  report.trace = std::move(trace);
  return report;
}

RunReport make_simulated_report(PlannedRun planned) {
  Trace trace = std::move(planned.simulated);
  RunReport report = make_report(planned, std::move(trace));
  report.seconds = 0;
  return report;
}

void accumulate(RunReport& total, const RunReport& part) {
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

}  // namespace strata
