#include "session/tile_planner.hpp"

#include <mutex>
#include <utility>

#include "session/policy.hpp"

namespace strata {
namespace {

/// The plans of candidates as they come, in any sequence.
class TilePlanner {
 public:
  TilePlanner(const CandidateSpace& space, const Machine& machine, Policy policy,
              const std::vector<TileCandidate>& candidates)
      : space_(space), machine_(machine), policy_(policy), candidates_(candidates) {
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      states_.push_back({.orders_left = candidates[c].orders.size()});
      for (std::size_t o = 0; o < candidates[c].orders.size(); ++o) pieces_.push_back({c, o});
    }
    tiles_.resize(candidates.size());
  }

  std::vector<PlannedTile> plan(WorkCrew& crew) {
    crew.share(std::ssize(pieces_), [this](std::int64_t i) {
      const auto [c, o] = pieces_[static_cast<std::size_t>(i)];
      plan_order(c, o);
    });
    return std::move(tiles_);
  }

 private:
  struct Piece {
    std::size_t candidate;
    std::size_t order;
  };
  struct State {
    std::size_t orders_left = 0;
    std::size_t order = 0;  // of the best plan; with a failure, of what threw
    PlannedRun best{};
    std::exception_ptr failure{};
  };

  void plan_order(std::size_t c, std::size_t o) {
    {
      const std::lock_guard lock(mutex_);
      if (is_beaten(c, candidates_[c].seconds_min)) return;  // orders_left stays: it has no plan
    }
    PlannedRun planned;
    std::exception_ptr failure;
    try {
      const TileCandidate& candidate = candidates_[c];
      const std::int64_t order = candidate.orders[o];
      std::string text = to_string(policy_);
      const std::string name = policy_ == Policy::opt ? space_.order_name(order) : "";
      if (!name.empty()) text += " " + name;
      planned =
          make_planned_run(std::make_shared<const Schedule>(space_.schedule(candidate.tile, order)),
                           machine_, space_.options(), std::move(text));
      planned.tile = candidate.tile;
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    add(c, o, std::move(planned), failure);
  }

  void add(std::size_t c, std::size_t o, PlannedRun planned, const std::exception_ptr& failure) {
    State& state = states_[c];
    if (failure) {
      if (!state.failure || o < state.order) state.order = o;
      if (state.order == o) state.failure = failure;
    } else if (!state.failure && (!state.best.plan || is_better(planned, o, state))) {
      state.best = std::move(planned);
      state.order = o;
    }
    if (--state.orders_left == 0) finish(c);
  }

  [[nodiscard]] bool is_better(const PlannedRun& planned, std::size_t order,
                               const State& than) const {
    if (space_.by_seconds()) {
      const double seconds = *planned.predicted_seconds;
      const double best = *than.best.predicted_seconds;
      return seconds != best ? seconds < best : order < than.order;
    }
    const std::int64_t bytes = planned.plan->totals().traffic.total();
    const std::int64_t best = than.best.plan->totals().traffic.total();
    return bytes != best ? bytes < best : order < than.order;
  }

  void finish(std::size_t c) {
    PlannedTile& tile = tiles_[c];
    tile.failure = states_[c].failure;
    PlannedRun run = std::move(states_[c].best);
    if (tile.failure) return;
    tile.seconds = *run.predicted_seconds;
    if (!is_beaten(c, tile.seconds)) tile.run = std::move(run);
    for (std::size_t later = c + 1; later < tiles_.size(); ++later) {
      if (tiles_[later].seconds >= tile.seconds) tiles_[later].run = {};  // its memory
    }
  }

  /// A tile before `c` is as fast: no search comes to `c`, or takes it.
  [[nodiscard]] bool is_beaten(std::size_t c, double seconds) const {
    for (std::size_t before = 0; before < c; ++before) {
      if (tiles_[before].seconds <= seconds) return true;
    }
    return false;
  }

  const CandidateSpace& space_;
  const Machine& machine_;
  Policy policy_;
  const std::vector<TileCandidate>& candidates_;
  std::vector<Piece> pieces_;
  std::mutex mutex_;  // of what follows
  std::vector<State> states_;
  std::vector<PlannedTile> tiles_;
};

}  // namespace

std::vector<PlannedTile> plan_tiles(const CandidateSpace& space, const Machine& machine,
                                    Policy policy, const std::vector<TileCandidate>& candidates,
                                    WorkCrew& crew) {
  return TilePlanner(space, machine, policy, candidates).plan(crew);
}

std::vector<PlannedTile> plan_queues(const PlannedRun& planned, const std::vector<int>& queues,
                                     WorkCrew& crew) {
  std::vector<PlannedTile> tiles(queues.size());
  crew.share(std::ssize(queues), [&](std::int64_t i) {
    PlannedTile& tile = tiles[static_cast<std::size_t>(i)];
    try {
      Machine machine = planned.plan->machine();
      for (DeviceModel& device : machine.devices)
        device.compute_queues = queues[static_cast<std::size_t>(i)];
      tile.run = make_planned_run(planned.plan->shared_schedule(), machine, planned.plan->options(),
                                  planned.policy);
      tile.run.tile = planned.tile;
      tile.seconds = *tile.run.predicted_seconds;
    } catch (...) {
      tile.failure = std::current_exception();
    }
  });
  return tiles;
}

}  // namespace strata
