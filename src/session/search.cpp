// The search for a tile: see search.hpp.

#include "session/search.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <thread>

#include "session/budget.hpp"
#include "session/tile_planner.hpp"

namespace strata {
namespace {

/// Neighbours of the first tile, as powers of two on either side; and halfway between two.
constexpr int kStepsAside = 3;
constexpr int kQueuesMax = 16;
/// Another number of queues has to gain this much: less is within what a simulation can know.
constexpr double kQueueGain = 0.005;
/// Planning that takes less is not worth the start of a thread.
constexpr double kThreadsWorthSeconds = 2e-3;
constexpr double kForever = std::numeric_limits<double>::infinity();

class Search {
 public:
  Search(const CandidateSpace& space, const Machine& machine, const SearchOptions& options)
      : space_(space),
        machine_(machine),
        options_(options),
        queues_(machine.devices[0].compute_queues) {}

  PlannedRun choose() {
    PlannedRun best = options_.tile_is_free ? fastest_tile() : given_tile();
    if (options_.queues_are_free) best = fastest_queues(std::move(best));
    best.considered = considered_;
    return best;
  }

 private:
  struct Bound {
    std::int64_t tile = 0;
    double seconds = 0;
  };

  PlannedRun given_tile() {
    allow(space_.seconds_min(options_.tile, queues_));
    return plan(options_.tile);
  }

  void allow(double seconds_min) {
    left_ = std::min(kPlanningSecondsMax, kPlanningShareMax * seconds_min);
  }

  /// Plans a tile, whatever it costs.
  PlannedRun plan(std::int64_t tile) {
    const TileCandidate candidate{tile, 0, space_.orders(tile)};
    const double cost = charge(candidate);
    WorkCrew crew(helpers(cost));
    PlannedTile planned =
        std::move(plan_tiles(space_, machine_, options_.policy, {candidate}, crew)[0]);
    if (planned.failure) std::rethrow_exception(planned.failure);
    return std::move(planned.run);
  }

  /// The first tile first, then the others by their bounds. Where there is no time to simulate the
  /// first, another one has to beat its bound.
  PlannedRun fastest_tile() {
    const double first_bound = space_.seconds_min(options_.tile, queues_);
    const std::vector<Bound> others = bounds_of_others();
    allow(others.empty() ? first_bound : std::min(first_bound, others.front().seconds));
    double to_beat = kForever;
    std::vector<TileCandidate> candidates;
    double left = left_;
    double total = 0;
    const auto add_if_affordable = [&](const Bound& bound) {
      if (planning_seconds(space_, bound.tile, 1) > left) return false;
      TileCandidate candidate{bound.tile, bound.seconds, space_.orders(bound.tile)};
      const double cost = cost_of(candidate);
      if (cost > left) return false;
      left -= cost;
      total += cost;
      candidates.push_back(std::move(candidate));
      return true;
    };
    if (!add_if_affordable({options_.tile, 0})) to_beat = first_bound;
    for (const Bound& bound : others) {
      if (bound.seconds >= to_beat) break;
      (void)add_if_affordable(bound);
    }
    WorkCrew crew(helpers(total));
    PlannedRun best = take_fastest(
        candidates, plan_tiles(space_, machine_, options_.policy, candidates, crew), to_beat);
    return best.plan ? std::move(best) : plan(options_.tile);
  }

  [[nodiscard]] std::vector<Bound> bounds_of_others() const {
    std::vector<Bound> bounds;
    for (const std::int64_t tile : candidate_tiles(space_, options_.tile)) {
      if (tile != options_.tile) bounds.push_back({tile, space_.seconds_min(tile, queues_)});
    }
    std::sort(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.tile > b.tile;
    });
    return bounds;
  }

  /// What a search one by one would have taken. No plan: none is faster than `to_beat`.
  PlannedRun take_fastest(const std::vector<TileCandidate>& candidates,
                          std::vector<PlannedTile> planned, double to_beat) {
    std::size_t best = planned.size();
    for (std::size_t c = 0; c < planned.size() && candidates[c].seconds_min < to_beat; ++c) {
      (void)charge(candidates[c]);
      if (planned[c].failure) std::rethrow_exception(planned[c].failure);
      if (planned[c].seconds >= to_beat) continue;
      to_beat = planned[c].seconds;
      best = c;
    }
    return best < planned.size() ? std::move(planned[best].run) : PlannedRun();
  }

  /// Half and twice as many queues with the same tile and order; they have to be faster by
  /// kQueueGain.
  PlannedRun fastest_queues(PlannedRun best) {
    const double cost = planning_seconds(space_, best.tile, 1);
    const auto to_beat = [&] { return *best.predicted_seconds * (1 - kQueueGain); };
    const auto promises = [&](int queues) {
      return space_.seconds_min(best.tile, queues) < to_beat();
    };
    std::vector<int> numbers;
    const auto consider = [&](int queues) {
      const bool affordable = cost * static_cast<double>(numbers.size() + 1) <= left_;
      if (queues != queues_ && affordable && promises(queues)) numbers.push_back(queues);
    };
    if (queues_ > 1) consider(queues_ / 2);
    if (!is_cpu(machine_)) consider(std::min(2 * queues_, kQueuesMax));
    WorkCrew crew(helpers(cost * static_cast<double>(numbers.size())));
    std::vector<PlannedTile> planned = plan_queues(best, numbers, crew);
    for (std::size_t q = 0; q < numbers.size(); ++q) {
      if (!promises(numbers[q])) continue;
      ++considered_;
      if (planned[q].failure) std::rethrow_exception(planned[q].failure);
      if (planned[q].seconds < to_beat()) best = std::move(planned[q].run);
    }
    return best;
  }

  [[nodiscard]] double cost_of(const TileCandidate& candidate) const {
    return planning_seconds(space_, candidate.tile, std::ssize(candidate.orders));
  }

  double charge(const TileCandidate& candidate) {
    const double cost = cost_of(candidate);
    left_ -= cost;
    considered_ += static_cast<int>(candidate.orders.size());
    return cost;
  }

  /// Threads beside this one.
  [[nodiscard]] int helpers(double seconds) const {
    if (seconds < kThreadsWorthSeconds) return 0;
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    return std::max(options_.threads > 0 ? options_.threads : cores, 1) - 1;
  }

  const CandidateSpace& space_;
  const Machine& machine_;
  const SearchOptions& options_;
  int queues_;
  double left_ = 0;  // of the seconds that planning may take
  int considered_ = 0;
};

}  // namespace

std::vector<std::int64_t> candidate_tiles(const CandidateSpace& space, std::int64_t first) {
  std::vector<std::int64_t> tiles;
  const auto consider = [&](std::int64_t tile) {
    if (tile == first || (tile >= 1 && space.allows(tile))) tiles.push_back(tile);
  };
  for (int step = -kStepsAside; step <= kStepsAside; ++step) {
    const std::int64_t tile = step < 0 ? first >> -step : first << step;
    consider(tile);
    if (step < kStepsAside && tile > 1) consider(tile + tile / 2);
  }
  return tiles;
}

double planning_seconds(const CandidateSpace& space, std::int64_t tile, std::int64_t orders) {
  return static_cast<double>(orders) *
         (kPlanStepSeconds * static_cast<double>(space.steps(tile)) + kPlanSetupSeconds);
}

PlannedRun search(const CandidateSpace& space, const Machine& machine,
                  const SearchOptions& options) {
  require_devices(machine);
  const auto start = std::chrono::steady_clock::now();
  PlannedRun best = Search(space, machine, options).choose();
  best.n = options.n;
  best.floor_bytes = space.floor_bytes(best.plan->layout().arena_bytes());
  best.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return best;
}

std::int64_t sizes_measured(const DeviceModel& device, const Operation& operation,
                            Element element) {
  const std::vector<Element> elements(static_cast<std::size_t>(operation.operands), element);
  std::set<double> sizes;
  for (const KernelRate& k : device.kernels) {
    if (k.operation == operation.name && k.elements == elements) sizes.insert(k.flops);
  }
  return std::ssize(sizes);
}

}  // namespace strata
