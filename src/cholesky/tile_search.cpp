// The search for a tile: see tile_search.hpp.

#include "cholesky/tile_search.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "kernels/covariance.hpp"
#include "kernels/gemm.hpp"
#include "kernels/potrf.hpp"
#include "kernels/syrk.hpp"
#include "kernels/trsm.hpp"
#include "schedule/machine_model.hpp"

namespace strata {
namespace {

/// Neighbours of the rule's tile, as powers of two on either side; and halfway between two.
constexpr int kStepsAside = 3;
constexpr int kQueuesMax = 16;
/// Another number of queues has to gain this much: less is within what a simulation can know.
constexpr double kQueueGain = 0.005;

std::int64_t rows_of_tiles(const CholeskyProblem& problem) {
  return (problem.n + problem.tile - 1) / problem.tile;
}

/// So many calls of one operation, all alike.
struct Calls {
  const Operation* operation;
  double count;
  double flops;  ///< of one; for a covariance its elements
};

/// The tasks of a factorization: `full` rows of whole tiles, and perhaps a last row of fewer rows.
std::vector<Calls> calls_of(const CholeskyProblem& problem) {
  const auto full = static_cast<double>(problem.n / problem.tile);
  const auto t = static_cast<double>(problem.tile);
  const auto r = static_cast<double>(problem.n % problem.tile);
  const auto potrf_work = [](double n) { return n * n * n / 3 + n * n / 2 + n / 6; };
  const double pairs = full * (full - 1) / 2;
  std::vector<Calls> calls{{&potrf, full, potrf_work(t)},
                           {&trsm, pairs, t * t * t},
                           {&syrk, pairs, t * (t + 1) * t},
                           {&gemm, pairs * (full - 2) / 3, 2 * t * t * t}};
  if (problem.point_dimensions > 0)
    calls.push_back({&covariance, full * (full + 1) / 2, t * t});
  if (r > 0) {
    calls.insert(calls.end(), {{&potrf, 1, potrf_work(r)},
                               {&trsm, full, r * t * t},
                               {&syrk, full, r * (r + 1) * t},
                               {&gemm, pairs, 2 * r * t * t}});
  }
  return calls;
}

/// A tile and a number of queues, with the least that simulate() can say of them.
struct Candidate {
  std::int64_t tile = 0;
  double bound = 0;
};

/// Plans and simulates candidates within the time that planning may take.
class Search {
 public:
  Search(const CholeskyProblem& problem, const Machine& machine, Policy policy)
      : problem_(problem), machine_(machine), policy_(policy) {}

  void set_allowance(double seconds_min) {
    left_ = std::min(kPlanningSecondsMax, kPlanningShareMax * seconds_min);
  }
  /// What a plan has to beat as long as there is none.
  void set_limit(double seconds) { limit_ = seconds; }

  [[nodiscard]] CholeskyProblem with_tile(std::int64_t tile) const {
    CholeskyProblem problem = problem_;
    problem.tile = tile;
    return problem;
  }

  /// Seconds that planning and simulating a tile in `orders` orders takes.
  static double cost(const CholeskyProblem& problem, std::size_t orders) {
    const auto steps = static_cast<double>(planning_steps(problem));
    const auto plans = static_cast<double>(orders);
    return steps * (kPlanStepSeconds * plans + kSimulateStepSeconds) +
           kPlanSetupSeconds * (plans + 1);
  }

  /// Plans `tile` and simulates it; false if there is no time for it.
  bool consider(std::int64_t tile) {
    const CholeskyProblem problem = with_tile(tile);
    const double seconds = cost(problem, candidate_orders(problem, machine_, policy_).size());
    if (seconds > left_) return false;
    left_ -= seconds;
    take_if_faster(plan_cholesky(problem, machine_, policy_), tile, 1.0);
    return true;
  }

  /// The same plan on another number of queues; it has to be faster by kQueueGain.
  void consider_queues(int queues) {
    if (!best_.plan || simulated_seconds_min(with_tile(tile_), machine_, queues) >=
                           best_.predicted_seconds * (1 - kQueueGain))
      return;
    const double seconds = cost(with_tile(tile_), 1);
    if (seconds > left_) return;
    left_ -= seconds;
    Machine machine = best_.plan->machine();
    for (DeviceModel& device : machine.devices) device.compute_queues = queues;
    PlannedRun planned;
    planned.policy = best_.policy;
    planned.floor_bytes = best_.floor_bytes;
    planned.plan = std::make_unique<Plan>(std::make_shared<const Schedule>(best_.plan->schedule()),
                                          machine, best_.plan->options());
    take_if_faster(std::move(planned), tile_, 1 - kQueueGain);
  }

  [[nodiscard]] bool has_plan() const { return best_.plan != nullptr; }
  [[nodiscard]] std::int64_t tile() const { return tile_; }
  [[nodiscard]] double to_beat() const { return best_.plan ? best_.predicted_seconds : limit_; }
  [[nodiscard]] PlannedRun take() { return std::move(best_); }

 private:
  void take_if_faster(PlannedRun planned, std::int64_t tile, double by) {
    const double limit = by * to_beat();
    // What crosses a link takes its time: a plan that moves too much need not be simulated.
    if (link_seconds(*planned.plan) >= limit) return;
    planned.predicted_seconds = simulate(*planned.plan).seconds;
    if (planned.predicted_seconds >= limit) return;
    best_ = std::move(planned);
    tile_ = tile;
  }

  [[nodiscard]] double link_seconds(const Plan& plan) const {
    double in = 0;
    double out = 0;
    for (const DeviceModel& device : machine_.devices) {
      in += device.host_to_device.bytes_per_second;
      out += device.device_to_host.bytes_per_second;
    }
    const Traffic& traffic = plan.totals().traffic;
    return std::max(static_cast<double>(traffic.host_to_device_bytes) / in,
                    static_cast<double>(traffic.device_to_host_bytes) / out);
  }

  const CholeskyProblem& problem_;
  const Machine& machine_;
  Policy policy_;
  double left_ = 0;
  double limit_ = std::numeric_limits<double>::infinity();
  PlannedRun best_;
  std::int64_t tile_ = 0;
};

/// The rule's tile first, then the others by their bounds. Where there is no time to simulate the
/// rule's, another one has to beat its bound.
void search_for_tile(Search& search, const CholeskyProblem& problem, const Machine& machine) {
  const std::int64_t rule = problem.tile;
  const int queues = machine.devices[0].compute_queues;
  double rule_bound = 0;
  std::vector<Candidate> others;
  for (const std::int64_t tile : candidate_tiles(problem, machine, rule)) {
    const double bound = simulated_seconds_min(search.with_tile(tile), machine, queues);
    if (tile == rule) {
      rule_bound = bound;
    } else {
      others.push_back({tile, bound});
    }
  }
  std::sort(others.begin(), others.end(), [](const Candidate& a, const Candidate& b) {
    return a.bound != b.bound ? a.bound < b.bound : a.tile > b.tile;
  });
  double least = rule_bound;
  for (const Candidate& c : others) least = std::min(least, c.bound);
  search.set_allowance(least);
  if (!search.consider(rule)) search.set_limit(rule_bound);
  for (const Candidate& c : others) {
    if (c.bound >= search.to_beat()) break;
    (void)search.consider(c.tile);
  }
}

/// Sizes at which a device's GEMM was measured in one precision.
std::int64_t sizes_measured(const Machine& machine, Element precision) {
  std::set<double> sizes;
  for (const KernelRate& k : machine.devices[0].kernels) {
    if (k.operation == "gemm" && !k.elements.empty() && k.elements[0] == precision) sizes.insert(k.flops);
  }
  return std::ssize(sizes);
}

}  // namespace

std::int64_t planning_steps(const CholeskyProblem& problem) {
  const std::int64_t rows = rows_of_tiles(problem);
  const std::int64_t pairs = rows * (rows - 1) / 2;
  const std::int64_t tiles = pairs + rows;
  const std::int64_t generated = problem.point_dimensions > 0 ? tiles : 0;
  return tiles + pairs + pairs * (rows - 2) / 3 + generated + 2 * tiles;
}

double simulated_seconds_min(const CholeskyProblem& problem, const Machine& machine, int queues) {
  const auto devices = static_cast<double>(problem.devices);
  const int all_queues = queues + (has_urgent_queue(problem, machine) ? 1 : 0);
  double least = 0;
  for (int d = 0; d < problem.devices; ++d) {
    DeviceModel device = machine.devices[static_cast<std::size_t>(d)];
    device.compute_queues = queues;
    const auto elements = [&](const Operation& operation) {
      return &operation == &potrf ? Elements{problem.precision, Element::fp64}
                                  : Elements(operation.operands, problem.precision);
    };
    const auto seconds = [&](const Operation& operation, double flops) {
      return kernel_seconds(device, operation, elements(operation), flops);
    };
    double work = 0;
    double on_queues = 0;
    for (const Calls& calls : calls_of(problem)) {
      const double all = calls.count * seconds(*calls.operation, calls.flops);
      on_queues += all;
      work += all * kernel_share(device, *calls.operation, elements(*calls.operation), calls.flops);
    }
    const auto full = static_cast<double>(problem.n / problem.tile);
    const auto t = static_cast<double>(problem.tile);
    const double chain = full * seconds(potrf, t * t * t / 3 + t * t / 2 + t / 6) +
                         std::max(full - 1, 0.0) * (seconds(trsm, t * t * t) +
                                                    seconds(syrk, t * (t + 1) * t));
    const auto n = static_cast<double>(problem.n);
    const double triangle = n * (n + 1) / 2 * bytes_of(problem.precision) / devices;
    const double in =
        problem.point_dimensions > 0 ? 0 : triangle / device.host_to_device.bytes_per_second;
    const double out = triangle / device.device_to_host.bytes_per_second;
    const double here =
        std::max({work / devices, on_queues / devices / all_queues, chain, in, out});
    least = d == 0 ? here : std::min(least, here);
  }
  return least;
}

std::vector<std::int64_t> candidate_tiles(const CholeskyProblem& problem, const Machine& machine,
                                          std::int64_t rule) {
  const std::int64_t smallest = is_cpu(machine) ? 64 : 256;
  const std::int64_t budget = smallest_memory(machine);
  std::vector<std::int64_t> tiles;
  const auto consider = [&](std::int64_t tile) {
    CholeskyProblem other = problem;
    other.tile = tile;
    const bool sensible = tile >= smallest && rows_of_tiles(other) >= problem.devices &&
                          rows_of_tiles(other) >= 2 && rows_of_tiles(other) <= kBlockRowsMax;
    const CholeskyNeeds needs =
        sensible || tile == rule ? cholesky_needs(other, 0) : CholeskyNeeds();
    const bool fits =
        sensible && needs.device_bytes <= budget && needs.host_bytes <= machine.host_memory_bytes;
    if (tile == rule || fits) tiles.push_back(tile);
  };
  for (int step = -kStepsAside; step <= kStepsAside; ++step) {
    const std::int64_t tile = step < 0 ? rule >> -step : rule << step;
    consider(tile);
    if (step < kStepsAside) consider(tile + tile / 2);
  }
  return tiles;
}

PlannedRun search_tiles(CholeskyProblem& problem, const Machine& machine, Policy policy,
                        bool tile_is_free, bool queues_are_free) {
  if (tile_is_free) problem.tile = rule_tile(problem, machine);
  const std::int64_t sizes = sizes_measured(machine, problem.precision);
  // Rates of one size say nothing about another. Without any, all sizes are said to be alike.
  const bool search_tile = tile_is_free && (machine.devices[0].kernels.empty() || sizes >= 2);
  const bool search_queues = queues_are_free && sizes >= 1;
  Search search(problem, machine, policy);
  const int queues = machine.devices[0].compute_queues;
  if (search_tile) {
    search_for_tile(search, problem, machine);
  } else if (search_queues) {
    search.set_allowance(simulated_seconds_min(problem, machine, queues));
    (void)search.consider(problem.tile);
  }
  if (search_queues) {
    if (queues > 1) search.consider_queues(queues / 2);
    if (!is_cpu(machine)) search.consider_queues(std::min(2 * queues, kQueuesMax));
  }
  if (!search.has_plan()) return plan_cholesky(problem, machine, policy);
  problem.tile = search.tile();
  return search.take();
}

}  // namespace strata
