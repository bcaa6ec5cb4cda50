// What solves would do, without values.

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "session/budget.hpp"
#include "session/planned_run.hpp"
#include "session/report.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/resident_sweep_schedule.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {
namespace {

/// As ResidentSweeps has them.
RunReport plan_of_resident(const MachineLayout& there, const Machine& machine, std::int64_t columns,
                           const SparseCholeskyOptions& options) {
  const auto devices = static_cast<int>(machine.devices.size());
  const int queues = resident_queues(options, devices);
  const auto units = std::make_shared<const ResidentUnits>(
      resident_units(there.analysis, *there.layout, devices, queues, true));
  ResidentPass pass = largest_pass(*units);
  RunReport report;
  Residency constants;
  for (std::int64_t first = 0; first < columns; first += pass.columns) {
    pass.width = columns - first == 1 ? 1 : units->columns;
    pass.columns = std::min(pass.width, columns - first);
    const auto schedule = std::make_shared<const Schedule>(resident_sweep_schedule(units, pass));
    const Plan plan(schedule, ResidentDevices::machine_of(machine, queues),
                    ResidentDevices::plan_options(*schedule, queues), constants);
    constants = loaded_constants(plan.end());
    accumulate(report, make_report(plan, {}, {}));
  }
  return report;
}

/// As StreamedSweeps has them; nothing where the host solves.
RunReport plan_of_streamed(const MachineLayout& there, const Machine& machine, std::int64_t columns,
                           const SparseCholeskyOptions& options) {
  const auto devices = static_cast<int>(machine.devices.size());
  const std::int64_t budget = machine.devices.front().memory_bytes;
  const auto ranges =
      std::make_shared<const SweepRanges>(sweep_ranges(there.analysis, *there.layout));
  RunReport report;
  for (std::int64_t first = 0; first < columns;) {
    const SweepPass pass =
        sweep_pass(ranges, *there.layout, columns - first, true, true, devices, budget);
    if (pass.widths.empty() || (first == 0 && !comes_sooner(pass, columns, machine))) return {};
    const PlannedRun planned = make_planned_run(std::make_shared<const Schedule>(sweep_schedule(
                                                    ranges, *there.layout, pass, devices, budget)),
                                                machine, options.run.policy);
    accumulate(report, make_report(*planned.plan, planned, {}));
    first += pass.columns;
  }
  return report;
}

}  // namespace

RunReport plan_of_solve(const MachineLayout& there, const Machine& machine, std::int64_t columns,
                        const SparseCholeskyOptions& options) {
  if (std::ssize(there.analysis.order) == 0 || !there.layout->has_programs()) return {};
  if (!there.stays)
    return there.layout->ranges ? plan_of_streamed(there, machine, columns, options) : RunReport();
  const Element element = there.layout->blocks.family(fronts::kPanels).element;
  return element == Element::fp64 ? plan_of_resident(there, machine, columns, options)
                                  : RunReport();
}

RunReport simulate_sparse_solve(const SparseAnalysis& analysis, const SparseMatrix& a,
                                const Machine& machine, std::int64_t columns,
                                const SparseCholeskyOptions& options) {
  require_same_pattern(analysis, a);
  require_devices(machine);
  require(columns >= 0, ErrorKind::misuse, "plan", "{} right-hand sides", columns);
  const auto kind = sooner_alone(analysis, a, machine, options);
  const Machine used = kind ? only(machine, *kind) : machine;
  return plan_of_solve(layout_on(analysis, a, used, options), used, columns, options);
}

}  // namespace strata
