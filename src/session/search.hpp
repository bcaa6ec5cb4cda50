#pragma once
// The search for the tile, the order of tasks and the number of compute queues with which a problem
// is predicted to be computed fastest, by simulation before it runs.
//
// Contract: knows no algorithm; what there is to choose from is a CandidateSpace. A pure function
// of its inputs: planning time is counted in steps, not read from a clock, and neither the number
// of threads nor their timing changes a choice. All times are seconds.
//
// Method: candidates are tiles powers of two around the tile to begin with, and those halfway
// between. Each has a lower bound of its simulated time in closed form; in the order of their
// bounds they are planned and simulated, until the bound of the next one is not below the best time
// (branch and bound; Land, Doig, "An automatic method of solving discrete programming problems",
// 1960). Several are simulated at once: which of them a search one by one would have come to, is
// found out when all are done. A candidate that planning time does not allow for is left out; the
// first tile gives way only to one that is certainly faster. Then other numbers of queues are tried
// in the same way on that tile.

#include <cstdint>
#include <vector>

#include "session/candidates.hpp"
#include "session/planned_run.hpp"

namespace strata {

/// What planning may take, as a share of the least that the run can take.
inline constexpr double kPlanningShareMax = 0.01;
/// And in all, for plans of machines that need not exist.
inline constexpr double kPlanningSecondsMax = 2.0;
/// Time to plan and simulate a step, in one pass, on one core of a server CPU. (Plans of 200 to
/// 870,000 steps on one to eight devices took 175 to 380 ns of CPU time a step, of which planning
/// alone is 105 to 230; and a plan has up to half more steps than CandidateSpace::steps counts.)
inline constexpr double kPlanStepSeconds = 0.4e-6;
/// Time to set up the tables of a plan of a few steps. (5 µs for one device, 17 for eight.)
inline constexpr double kPlanSetupSeconds = 20e-6;

struct SearchOptions {
  Policy policy =
      Policy::opt;            ///< for its name; what it asks of plans is in CandidateSpace::options
  std::int64_t n = 0;         ///< order of the problem
  std::int64_t tile = 1;      ///< to begin with
  bool tile_is_free = false;  ///< else it stays
  bool queues_are_free = false;  ///< else each device keeps its compute_queues
  int threads = 0;               ///< that plan, of the host; 0: one for each core
};

/// The tiles that are considered beginning with `first`, in increasing order, as far as the space
/// allows them; and `first` itself.
[[nodiscard]] std::vector<std::int64_t> candidate_tiles(const CandidateSpace& space,
                                                        std::int64_t first);

/// The seconds of one core that planning and simulating a tile in `orders` orders is taken to cost.
[[nodiscard]] double planning_seconds(const CandidateSpace& space, std::int64_t tile,
                                      std::int64_t orders);

/// Plans the problem, at the best of its tiles and numbers of queues that are free. The queues of a
/// CPU are cores, so there are never more. `machine` is that of the space, which has at least one
/// device. Throws as Plan does.
[[nodiscard]] PlannedRun search(const CandidateSpace& space, const Machine& machine,
                                const SearchOptions& options);

/// How many sizes of calls of an operation were measured on a device, all operands of `element`.
/// Rates of one size say nothing about another.
[[nodiscard]] std::int64_t sizes_measured(const DeviceModel& device, const Operation& operation,
                                          Element element);

}  // namespace strata
