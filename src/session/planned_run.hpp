#pragma once
// PlannedRun: a plan with how it came about and what it is predicted to take.
//
// Contract: plans that are run are made here, so that each has been simulated, in the pass that
// adds up its totals. Equal inputs give equal plans and predictions; only `seconds` is measured.

#include <memory>
#include <optional>
#include <string>

#include "schedule/plan.hpp"

namespace strata {

/// What is told of a run beside what its plan says.
struct RunFigures {
  std::int64_t n = 0;                         ///< order of the problem, …
  std::int64_t tile = 0;                      ///< … and of its tiles
  std::string policy{};                       ///< "v3", "opt column", "opt super_tile(8)"
  double seconds = 0;                         ///< of planning, with what the search for it took
  std::optional<double> predicted_seconds{};  ///< of the run, by simulation
  std::int64_t floor_bytes = 0;               ///< the least that any schedule could move
  std::int64_t host_bytes = 0;                ///< of the problem in host memory
  bool in_core = false;                       ///< the matrix is one tile
};

struct PlannedRun : RunFigures {
  std::unique_ptr<Plan> plan;
  /// The simulated run itself, until `let_go_of_trace()`.
  Trace simulated;
  int considered = 0;  ///< plans among which this one was chosen, itself included

  /// The simulated spans take up to 72 MB; the figures stay.
  void let_go_of_trace() { simulated = {}; }
};

/// Plans and simulates a schedule in one pass; `plan`, `policy`, `predicted_seconds`, `simulated`
/// and `considered` are filled in. Throws as Plan does.
[[nodiscard]] PlannedRun make_planned_run(std::shared_ptr<const Schedule> schedule,
                                          const Machine& machine, const PlanOptions& options,
                                          std::string policy, Residency start = {});
/// The same as a policy asks for it.
[[nodiscard]] PlannedRun make_planned_run(std::shared_ptr<const Schedule> schedule,
                                          const Machine& machine, Policy policy,
                                          Residency start = {});

}  // namespace strata
