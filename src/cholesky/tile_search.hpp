#pragma once
// The tile and the number of compute queues of a factorization, by simulation before it runs.
//
// Contract: a pure function of the problem, the machine and the options; no clock is read, so equal
// inputs give equal choices. All times are seconds. Method: candidates are tiles powers of two
// around the rule of thumb (rule_tile), and those halfway between. Each gets a lower bound of its
// simulated time in closed form; in the order of their bounds they are planned and simulated, until
// the bound of the next one is not below the best time (branch and bound; Land, Doig, "An automatic
// method of solving discrete programming problems", 1960). A candidate that planning time does not
// allow for is left out; the rule's own tile gives way only to one that is certainly faster. Then
// other numbers of queues are tried in the same way on that tile.

#include <cstdint>
#include <vector>

#include "cholesky/planning.hpp"

namespace strata {

/// What planning may take, as a share of the least that the run can take.
inline constexpr double kPlanningShareMax = 0.01;
/// And in all, for plans of machines that need not exist.
inline constexpr double kPlanningSecondsMax = 2.0;
/// Measured on one core of a server CPU: planning a step once, and simulating it. (Plans of 6,000
/// to 46,000 tasks: 0.45 and 0.7 µs.)
inline constexpr double kPlanStepSeconds = 0.5e-6;
inline constexpr double kSimulateStepSeconds = 1e-6;
/// Of a plan or a simulation of a few steps: tables are set up.
inline constexpr double kPlanSetupSeconds = 40e-6;

/// The least that simulate() can say of a factorization in tiles of `problem.tile` on `queues`
/// compute queues of each device (and the urgent one, where there is one): the largest of the work
/// on the devices by their rates, the work on the queues, the chain potrf → trsm → syrk → potrf …
/// down the diagonal, and the triangle over the links.
[[nodiscard]] double simulated_seconds_min(const CholeskyProblem& problem, const Machine& machine,
                                           int queues);

/// Steps of a plan in tiles of `problem.tile`: the tasks, and about two transfers a tile.
[[nodiscard]] std::int64_t planning_steps(const CholeskyProblem& problem);

/// The tiles that are considered, in increasing order: those near `rule` that leave no device
/// without work, that the smallest budget holds enough of to run at all, whose factor fits in the
/// machine's host memory, and whose plan has at most kBlockRowsMax rows. And `rule` itself.
[[nodiscard]] std::vector<std::int64_t> candidate_tiles(const CholeskyProblem& problem,
                                                        const Machine& machine, std::int64_t rule);

/// Plans `problem` with the tile and the queues that are predicted to be fastest, and fills in
/// `problem.tile`; `problem.devices` is that of the machine, which has at least one.
/// `tile_is_free`: else problem.tile stays, as it does where kernels were measured, but on tiles of
/// one size only. `queues_are_free`: else each device keeps its `compute_queues`, as it does where
/// no kernel was measured (a kernel's rate is then said to be the device's over the number of
/// queues). The queues of a CPU are cores, so there are never more. Throws as plan_cholesky.
[[nodiscard]] PlannedRun search_tiles(CholeskyProblem& problem, const Machine& machine,
                                      Policy policy, bool tile_is_free, bool queues_are_free);

}  // namespace strata
