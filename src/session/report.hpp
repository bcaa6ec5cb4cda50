#pragma once
// RunReports: what planned runs tell of themselves.

#include "session/planned_run.hpp"
#include "strata/options.hpp"

namespace strata {

/// What a planned run says of itself, with the trace that came of it.
[[nodiscard]] RunReport make_report(const PlannedRun& planned, Trace trace);
/// The same where the plan is somebody else's, and `figures` has all but that.
[[nodiscard]] RunReport make_report(const Plan& plan, const PlannedRun& figures, Trace trace);

/// The same of a run that was only simulated: its `seconds` are 0.
[[nodiscard]] RunReport make_simulated_report(PlannedRun planned);

/// Adds up the runs of one operation; the trace is the first's. The prediction of the sum is absent
/// if that of a part is.
void accumulate(RunReport& total, const RunReport& part);

/// The same of runs that follow one another for one result: the trace of the part goes behind that
/// of the total, which ends where it begins. Queues, operations and families go by their names.
void accumulate_with_trace(RunReport& total, const RunReport& part);

}  // namespace strata
