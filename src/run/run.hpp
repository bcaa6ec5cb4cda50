#pragma once
// run(): follows a Plan on real devices and adds no decision.
//
// Contract: the traffic of the returned Trace is what was issued, counted step by step, and equals
// the plan's. Numerical outcomes are blocks like any others: who watches their family may end the
// run early. A failure of a device, a kernel or a store is thrown once every queue has stopped; a
// progress callback that returns false ends in Error{cancelled}. Afterwards no queue touches the
// store, and the devices hold what Plan::end says if the run was complete, else nothing of use.

#include <functional>
#include <string_view>
#include <vector>

#include "run/device_set.hpp"
#include "schedule/plan.hpp"
#include "store/block_store.hpp"
#include "strata/options.hpp"

namespace strata {

/// What a run gives the kernels of an operation, as the operation's header says.
struct OperationValues {
  std::string_view operation;
  const void* values = nullptr;  ///< alive until the run ends
};

struct IssueOptions {
  std::vector<OperationValues> values;
  /// Called by the thread that called run() when a block of family `watched` is at home; the run
  /// ends early if it returns true.
  std::function<bool(BlockId)> watch;
  int watched = -1;
  ProgressCallback progress;
  const char* what = "run";  ///< Progress::what
};

struct RunOutcome {
  Trace trace;
  bool ended_early = false;  ///< by who watched
};

/// Throws Error{misuse} if the plan starts from a residency that is not that of the devices.
[[nodiscard]] RunOutcome run(const Plan& plan, DeviceSet& devices, BlockStore& store,
                             const IssueOptions& options = {});

/// Executes the tasks of a schedule in order, on one queue of one device that holds every block:
/// the definition of a correct run, for tests. Blocks are read from the store when first needed and
/// all written ones go back, but for temporary ones.
void run_in_order(const Schedule& schedule, const Backend& backend, BlockStore& store,
                  const IssueOptions& options = {});

}  // namespace strata
