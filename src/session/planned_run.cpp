#include "session/planned_run.hpp"

#include <utility>

namespace strata {

PlannedRun make_planned_run(std::shared_ptr<const Schedule> schedule, const Machine& machine,
                            const PlanOptions& options, std::string policy, Residency start) {
  PlannedRun planned;
  planned.plan = std::make_unique<Plan>(
      Plan::simulated(std::move(schedule), machine, options, std::move(start), planned.simulated));
  planned.predicted_seconds = planned.simulated.seconds;
  planned.policy = std::move(policy);
  planned.considered = 1;
  return planned;
}

}  // namespace strata
