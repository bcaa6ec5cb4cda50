#include "session/planned_run.hpp"

#include <utility>

#include "session/policy.hpp"

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

PlannedRun make_planned_run(std::shared_ptr<const Schedule> schedule, const Machine& machine,
                            Policy policy, Residency start) {
  return make_planned_run(std::move(schedule), machine, options_of(policy), to_string(policy),
                          std::move(start));
}

}  // namespace strata
