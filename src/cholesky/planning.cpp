#include "cholesky/planning.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cholesky/tile_search.hpp"
#include "run/potrf_tuning.hpp"
#include "schedule/plan_layout.hpp"

namespace strata {
namespace {

constexpr std::array<std::pair<Policy, const char*>, 6> kPolicies{{{Policy::sync, "sync"},
                                                                   {Policy::async, "async"},
                                                                   {Policy::v1, "v1"},
                                                                   {Policy::v2, "v2"},
                                                                   {Policy::v3, "v3"},
                                                                   {Policy::opt, "opt"}}};

/// Past this many block rows planning every candidate would be noticed; one is taken by formula.
constexpr std::int64_t kSearchTilesMax = 96;

/// The literature's policies (Ren, Ltaief, Abdulah, Keyes, "Accelerating Mixed-Precision
/// Out-of-Core Cholesky Factorization with Static Task Scheduling", 2024), each one step from the
/// one before, and ours, which is what PlanOptions are by themselves.
PlanOptions options_of(Policy policy) {
  PlanOptions options;
  if (policy == Policy::opt) return options;
  options.eviction = Eviction::least_recently_used;
  options.lookahead = 1;
  switch (policy) {
    case Policy::sync: options.one_queue = true; [[fallthrough]];
    case Policy::async:
      options.keep = Keep::nothing;
      options.copies_in_stream = true;
      break;
    case Policy::v1: options.keep = Keep::accumulator; break;
    case Policy::v3: options.retain = true; break;
    default: break;
  }
  return options;
}

/// Widths of super-tiles worth planning: the widest whose accumulators and operands fit, and those
/// that cut the matrix into equal parts near it.
std::set<std::int64_t> candidate_widths(std::int64_t tiles, std::int64_t slots) {
  std::set<std::int64_t> widths;
  const auto widest = static_cast<std::int64_t>(std::sqrt(static_cast<double>(slots) + 1)) - 1;
  if (widest < 2 || slots >= tiles * (tiles + 1) / 2) return widths;
  const std::int64_t parts = (tiles + widest - 1) / widest;
  if (tiles > kSearchTilesMax) return {(tiles + parts - 1) / parts};
  for (std::int64_t p = std::max<std::int64_t>(parts - 1, 1); p < parts + 3; ++p) {
    const std::int64_t width = (tiles + p - 1) / p;
    if (width >= 2) widths.insert(width);
  }
  widths.insert(widest);
  return widths;
}

constexpr std::array<std::pair<CholeskyPath, const char*>, 3> kPaths{
    {{CholeskyPath::automatic, "auto"},
     {CholeskyPath::in_core, "in-core"},
     {CholeskyPath::planned, "planned"}}};

// Orders at which one GEMM of a tile nears the device's rate: 2048 on an H200 (54 of 57 TFLOP/s),
// 1024 on a core of a server CPU (56 GFLOP/s; 512: 49). Smaller matrices get smaller tiles, so
// that there are enough of them for all queues.
constexpr std::int64_t kTileMin = 32;
constexpr std::int64_t kRowsWantedCpu = 8;
constexpr std::int64_t kRowsWantedGpu = 16;

std::int64_t efficient_tile(std::int64_t n, const Machine& machine, std::int64_t rows_wanted) {
  const bool cpu = is_cpu(machine);
  const std::int64_t smallest = cpu ? 64 : 256;
  std::int64_t tile = cpu ? 1024 : 2048;
  while (tile > smallest && n < rows_wanted * tile) tile /= 2;
  while (n > kBlockRowsMax * tile) tile *= 2;
  return tile;
}

void require_devices(const Machine& machine) {
  require(!machine.devices.empty(), ErrorKind::misuse, "plan",
          "a machine without devices cannot compute");
}

/// Whether a call that leaves the path open takes the in-core one. A column of right-hand sides for
/// each 32 of the matrix has to fit beside it, so that the solves that follow run well.
bool takes_in_core(const CholeskyProblem& problem, const Machine& machine, const Options& options) {
  if (options.path != CholeskyPath::automatic) return options.path == CholeskyPath::in_core;
  const std::int64_t n = problem.n;
  return options.tile == 0 && problem.point_dimensions == 0 && n <= kInCoreOrderMax &&
         machine.devices.size() == 1 && !is_cpu(machine) &&
         n * (n + n / 32 + 1) * bytes_of(problem.precision) <= machine.devices[0].memory_bytes;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const char* to_string(Policy policy) noexcept {
  for (const auto& [value, name] : kPolicies) {
    if (value == policy) return name;
  }
  return "?";
}

Policy parse_policy(const std::string& name) {
  for (const auto& [value, known] : kPolicies) {
    if (name == known) return value;
  }
  fail(ErrorKind::misuse, "options", "'{}' is no policy: use sync, async, v1, v2, v3 or opt", name);
}

const char* to_string(CholeskyPath path) noexcept {
  for (const auto& [value, name] : kPaths) {
    if (value == path) return name;
  }
  return "?";
}

CholeskyPath parse_path(const std::string& name) {
  for (const auto& [value, known] : kPaths) {
    if (name == known) return value;
  }
  fail(ErrorKind::misuse, "options", "'{}' is no path: use auto, in-core or planned", name);
}

std::int64_t smallest_memory(const Machine& machine) {
  std::int64_t bytes = machine.devices[0].memory_bytes;
  for (const DeviceModel& device : machine.devices) bytes = std::min(bytes, device.memory_bytes);
  return bytes;
}

bool is_cpu(const Machine& machine) { return machine.devices[0].kind == DeviceKind::cpu; }

bool has_urgent_queue(const CholeskyProblem& problem, const Machine& machine) {
  return problem.devices > 1 && !is_cpu(machine);
}

std::int64_t rule_tile(const CholeskyProblem& problem, const Machine& machine) {
  require_devices(machine);
  const double queues =
      static_cast<double>(std::ssize(machine.devices)) * machine.devices[0].compute_queues;
  const std::int64_t rows_wanted =
      is_cpu(machine) ? std::max<std::int64_t>(kRowsWantedCpu, std::llround(4 * std::sqrt(queues)))
                      : kRowsWantedGpu;
  constexpr std::int64_t kSlotsWanted = 16;
  std::int64_t tile = efficient_tile(problem.n, machine, rows_wanted);
  const std::int64_t budget = smallest_memory(machine);
  const auto slots = [&] { return budget / (tile * tile * bytes_of(problem.precision)); };
  while (tile > kTileMin && slots() < kSlotsWanted) tile /= 2;
  return tile;
}

std::int64_t reproducible_tile(const CholeskyProblem& problem, const Machine& machine) {
  require_devices(machine);
  CholeskyProblem smaller = problem;
  smaller.tile =
      efficient_tile(problem.n, machine, is_cpu(machine) ? kRowsWantedCpu : kRowsWantedGpu);
  const std::int64_t budget = smallest_memory(machine);
  while (smaller.tile > kTileMin && smallest_budget_bytes(tile_cholesky(smaller, {})) > budget)
    smaller.tile /= 2;
  return smaller.tile;
}

std::vector<std::int64_t> calibration_tiles(const CholeskyProblem& problem, std::int64_t requested,
                                            const Machine& machine) {
  if (requested > 0) return {requested};
  const std::int64_t rule = rule_tile(problem, machine);
  std::vector<std::int64_t> tiles{rule};
  if (rule / 2 >= kTileMin) tiles.insert(tiles.begin(), rule / 2);
  for (const std::int64_t tile : {rule + rule / 2, 2 * rule}) {
    // Each queue measures with four blocks.
    const std::int64_t needed =
        4 * machine.devices[0].compute_queues * tile * tile * bytes_of(problem.precision);
    if (tile <= problem.n && needed <= smallest_memory(machine)) tiles.push_back(tile);
  }
  return tiles;
}

std::int64_t cholesky_floor_bytes(const CholeskyProblem& problem, std::int64_t memory_bytes) {
  const auto size = static_cast<double>(bytes_of(problem.precision));
  const auto n = static_cast<double>(problem.n);
  const double triangle = n * (n + 1) / 2 * size;
  const double compulsory = problem.point_dimensions > 0 ? triangle : 2 * triangle;
  const auto memory = static_cast<double>(memory_bytes);
  if (triangle <= memory * problem.devices || memory_bytes <= 0)
    return static_cast<std::int64_t>(compulsory);
  const double reloads = n * n * n / (3 * std::sqrt(2.0) * std::sqrt(memory / size)) * size;
  return static_cast<std::int64_t>(compulsory + reloads);
}

std::vector<Order> candidate_orders(const CholeskyProblem& problem, const Machine& machine,
                                    Policy policy) {
  const Schedule column = tile_cholesky(problem, {});
  const std::int64_t tiles = column.blocks.block_rows(kMatrixFamily);
  std::set<std::int64_t> widths;
  if (policy == Policy::opt) {
    widths = candidate_widths(tiles, slots_of_family(make_layout(column, machine, {}, {}), 0, kMatrixFamily));
  }
  std::vector<Order> orders;
  if (tiles <= kSearchTilesMax || widths.empty()) orders.push_back({});
  for (const std::int64_t width : widths) orders.push_back({width});
  return orders;
}

PlannedRun plan_cholesky(const CholeskyProblem& problem, const Machine& machine, Policy policy) {
  const auto start = std::chrono::steady_clock::now();
  PlanOptions options = options_of(policy);
  options.urgent_queue = policy == Policy::opt && has_urgent_queue(problem, machine);
  PlannedRun best;
  for (const Order order : candidate_orders(problem, machine, policy)) {
    auto schedule = std::make_shared<const Schedule>(tile_cholesky(problem, order));
    auto plan = std::make_unique<Plan>(std::move(schedule), machine, options);
    if (best.plan && plan->totals().traffic.total() >= best.plan->totals().traffic.total())
      continue;
    best.plan = std::move(plan);
    best.policy = policy == Policy::opt ? fmt::format("opt {}", order.name()) : to_string(policy);
  }
  best.floor_bytes = cholesky_floor_bytes(problem, best.plan->layout().arena_bytes());
  best.seconds = seconds_since(start);
  return best;
}

CholeskyNeeds cholesky_needs(const CholeskyProblem& problem, std::int64_t budget) {
  CholeskyProblem other = problem;
  const auto fits = [&](std::int64_t tile) {
    other.tile = tile;
    return smallest_budget_bytes(tile_cholesky(other, {})) <= budget;
  };
  CholeskyNeeds needs;
  const Schedule schedule = tile_cholesky(problem, {});
  needs.device_bytes = smallest_budget_bytes(schedule);
  for (int f = 0; f < schedule.blocks.families(); ++f)
    needs.host_bytes += schedule.blocks.total_bytes(f);
  // One tile is a slot; two rows of tiles are three slots already, so between n/√3 and n tiles need
  // more than the whole. Below n the need grows with the tile.
  const std::int64_t n = std::max<std::int64_t>(problem.n, 1);
  if (fits(n)) {
    needs.tile_max = n;
    return needs;
  }
  std::int64_t too_large = n;
  while (too_large - needs.tile_max > 1) {
    const std::int64_t middle = needs.tile_max + (too_large - needs.tile_max) / 2;
    (fits(middle) ? needs.tile_max : too_large) = middle;
  }
  return needs;
}

void check_device_memory(const CholeskyProblem& problem, const Machine& machine) {
  const std::int64_t budget = smallest_memory(machine);
  const CholeskyNeeds needs = cholesky_needs(problem, budget);
  if (needs.device_bytes <= budget) return;
  const std::string largest = needs.tile_max > 0
                                  ? fmt::format("the largest tile for it is {}", needs.tile_max)
                                  : std::string("no tile is small enough for it");
  fail(ErrorKind::memory, "plan",
       "a device memory of {} ({} bytes) is too small for order {}: {}; the smallest that works "
       "with tiles of {} is {} ({} of host memory are needed beside it): {} bytes",
       format_bytes(budget), budget, problem.n, largest, problem.tile,
       format_bytes(needs.device_bytes), format_bytes(needs.host_bytes), needs.device_bytes);
}

PlannedRun plan_path(CholeskyProblem& problem, const Machine& machine, const Options& options) {
  check_blocking(options.blocking);
  require(options.tile >= 0, ErrorKind::misuse, "options", "a tile cannot be of order {}",
          options.tile);
  require_devices(machine);
  const auto start = std::chrono::steady_clock::now();
  problem.devices = static_cast<int>(machine.devices.size());
  const bool in_core = takes_in_core(problem, machine, options);
  if (in_core) {
    require(options.tile == 0, ErrorKind::misuse, "options",
            "a tile of order {} cannot be asked for in core, where the matrix is one tile",
            options.tile);
    problem.devices = 1;
    problem.tile = std::max<std::int64_t>(problem.n, 1);
    const std::int64_t needed = smallest_budget_bytes(tile_cholesky(problem, {}));
    const std::int64_t there = machine.devices[0].memory_bytes;
    require(
        needed <= there, ErrorKind::memory, "plan",
        "in core the matrix of order {} ({} bytes) needs {} of device memory ({} bytes) and there "
        "is {}",
        problem.n, problem.n * problem.n * bytes_of(problem.precision), format_bytes(needed),
        needed, format_bytes(there));
    PlannedRun planned = plan_cholesky(problem, machine, options.policy);
    planned.in_core = true;
    return planned;
  }
  const bool searched = options.tile == 0 && options.path != CholeskyPath::planned;
  problem.tile = searched           ? rule_tile(problem, machine)
                 : options.tile > 0 ? options.tile
                                    : reproducible_tile(problem, machine);
  check_device_memory(problem, machine);
  Machine bounded = machine;
  if (options.host_memory_bytes > 0) bounded.host_memory_bytes = options.host_memory_bytes;
  PlannedRun planned =
      search_tiles(problem, bounded, options.policy, searched, options.compute_queues == 0);
  planned.seconds = seconds_since(start);
  return planned;
}

std::int64_t choose_rhs_tile(std::int64_t rhs, const CholeskyProblem& problem,
                             const Machine& machine) {
  const std::int64_t most = std::clamp<std::int64_t>(rhs, 1, problem.tile);
  if (problem.tile < problem.n || problem.n == 0) return most;
  // Slots are cut at multiples of 256 bytes: the factor's, the block's and those of coordinates.
  constexpr std::int64_t kRounding = 1024;
  const std::int64_t size = bytes_of(problem.precision);
  const std::int64_t taken = (problem.n + problem.point_dimensions) * problem.n * size + kRounding;
  const std::int64_t column = (problem.n + problem.point_dimensions) * size;
  const std::int64_t columns = (smallest_memory(machine) - taken) / column;
  return columns >= most ? most : std::max<std::int64_t>(columns / 2, 1);  // one moves meanwhile
}

PlannedRun plan_solve(const SolveProblem& problem, Sweep sweep, const Machine& machine,
                      Policy policy, const Residency& start) {
  const auto begin = std::chrono::steady_clock::now();
  PlannedRun planned;
  auto schedule = std::make_shared<const Schedule>(triangular_solve(problem, sweep));
  planned.plan = std::make_unique<Plan>(std::move(schedule), machine, options_of(policy), start);
  planned.policy = to_string(policy);
  const BlockTable& blocks = planned.plan->schedule().blocks;
  // The least: L and X once in, X once out. No reuse across sweeps is counted.
  planned.floor_bytes = blocks.total_bytes(kFactorFamily) + (problem.point_dimensions > 0 ? 1 : 2) *
                                                                blocks.total_bytes(kSolutionFamily);
  planned.seconds = seconds_since(begin);
  return planned;
}

}  // namespace strata
