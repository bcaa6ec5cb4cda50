#pragma once
// Plans and simulates candidates of a search, several at once.
//
// Contract: every plan that a search one by one would look at depends on the candidates alone, not
// on the number of threads or their timing. The plan of a candidate that such a search would not
// reach, or would not take, may be there or not.

#include <exception>
#include <limits>
#include <vector>

#include "base/work_crew.hpp"
#include "session/candidates.hpp"
#include "session/planned_run.hpp"

namespace strata {

/// A tile with the orders in which it is to be planned. Each has a larger bound than the one
/// before it, except that the first may have any.
struct TileCandidate {
  std::int64_t tile = 0;
  double seconds_min = 0;  ///< of its simulated time
  std::vector<std::int64_t> orders;
};

struct PlannedTile {
  double seconds = std::numeric_limits<double>::infinity();  ///< simulated
  /// In the order that moves the fewest bytes. Without a plan if a tile before it is faster, or was
  /// as fast as its bound before it was planned.
  PlannedRun run;
  std::exception_ptr failure;  ///< what planning threw; rethrown by who comes to it
};

[[nodiscard]] std::vector<PlannedTile> plan_tiles(const CandidateSpace& space,
                                                  const Machine& machine, Policy policy,
                                                  const std::vector<TileCandidate>& candidates,
                                                  WorkCrew& crew);

/// The same plan on each of several numbers of compute queues.
[[nodiscard]] std::vector<PlannedTile> plan_queues(const PlannedRun& planned,
                                                   const std::vector<int>& queues, WorkCrew& crew);

}  // namespace strata
