#pragma once
// RunReports: what planned runs tell of themselves.

#include "session/planned_run.hpp"
#include "strata/options.hpp"

namespace strata {

/// What a run says of itself: its plan, what is told beside that, and the trace that came of it.
[[nodiscard]] RunReport make_report(const Plan& plan, const RunFigures& figures, Trace trace);

/// The same of a run that was only simulated: its `seconds` are 0.
[[nodiscard]] RunReport make_simulated_report(PlannedRun planned);

/// Adds up the runs of one operation, of which the first is taken as it is; the trace is its. The
/// prediction of the sum is absent if that of a part is.
void accumulate(RunReport& total, RunReport part);

/// The same of runs that follow one another for one result: the trace of the part goes behind that
/// of the total, which ends where it begins; notes of a total without a run come first. Queues,
/// operations and families go by their names.
void accumulate_with_trace(RunReport& total, RunReport part);

}  // namespace strata
