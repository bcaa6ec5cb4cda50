#pragma once
// run(): follows a Plan on real devices and adds no decision.
//
// Contract: the traffic of the returned Trace is what was issued, counted step by step, and equals
// the plan's. A bad pivot ends the run early and is a value; a failure of a device, a kernel or a
// store is thrown once every queue has stopped; a progress callback that returns false ends in
// Error{cancelled}. Afterwards no queue touches the store.

#include <vector>

#include "run/device_set.hpp"
#include "schedule/plan.hpp"
#include "store/block_store.hpp"
#include "strata/options.hpp"

namespace strata {

struct RunOptions {
  const CovarianceParameters* covariance = nullptr;  ///< for schedules with `covariance` tasks
  CholeskyBlocking blocking;                         ///< zeros: as the tuning table has it
  ProgressCallback progress;
  const char* what = "run";  ///< Progress::what
};

struct RunOutcome {
  Trace trace;
  std::vector<PivotStatus> pivots;  ///< of potrf tasks, by block row of their output
  bool bad_pivot = false;           ///< the run was ended by one
};

[[nodiscard]] RunOutcome run(const Plan& plan, DeviceSet& devices, BlockStore& store,
                             const RunOptions& options = {});

/// Executes the tasks of a schedule in order, on one queue of one device that holds every block:
/// the definition of a correct run, for tests. Blocks are read from the store when first needed and
/// all written ones go back.
[[nodiscard]] std::vector<PivotStatus> run_in_order(const Schedule& schedule,
                                                    const Backend& backend, BlockStore& store,
                                                    const RunOptions& options = {});

}  // namespace strata
