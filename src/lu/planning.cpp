#include "lu/planning.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "kernels/dense/lu_update.hpp"
#include "session/policy.hpp"
#include "session/search.hpp"

namespace strata {
namespace {

constexpr std::int64_t kPanelMin = 8;
/// Below this many panels in memory a slab is mostly the one that streams past. A CPU has fewer
/// and wider ones: with a fifth of a matrix of order 2048 in memory, 6 panels of 64 columns took
/// three quarters of the processor time of 12 panels of 32, and moved as much.
constexpr std::int64_t kPanelsWantedCpu = 6;
constexpr std::int64_t kPanelsWantedGpu = 12;
/// On one core GEMM of 128 inner columns runs at nine tenths of its rate.
constexpr std::int64_t kPanelCpu = 128;
/// On an H200 order 32,768 in memory took 0.56 s in panels of 2048, and 0.69 s of 512 (2026-12-01).
constexpr std::int64_t kPanelGpu = 2048;
constexpr std::int64_t kPanelsInAll = 16;

std::int64_t rule_by_order(std::int64_t n, const Machine& machine) {
  std::int64_t panel = is_cpu(machine) ? kPanelCpu : kPanelGpu;
  while (panel > kPanelMin && n < kPanelsInAll * panel) panel /= 2;
  while (n > kPanelsMax * panel) panel *= 2;
  return panel;
}

/// How many sizes of updates were measured on a device.
std::int64_t sizes_of_updates(const DeviceModel& device, Element precision) {
  return std::count_if(device.kernels.begin(), device.kernels.end(), [&](const KernelRate& rate) {
    return rate.operation == lu_update.name && rate.elements.front() == precision;
  });
}

/// A plan has about half the square of its panels in tasks, which have to be held, whatever the
/// budget is.
void check_panels(const LuProblem& problem, std::int64_t budget) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t panels = (problem.n + problem.panel - 1) / problem.panel;
  if (panels <= kMost) return;
  LuProblem wider = problem;
  wider.panel = (problem.n + kMost - 1) / kMost;
  fail(ErrorKind::memory, "plan",
       "order {} in {} panels of {} columns: more than {} are not planned; panels of {} columns "
       "take "
       "{} of device memory",
       problem.n, panels, problem.panel, kMost, wider.panel,
       format_bytes(lu_needs(wider, budget).device_bytes));
}

HomeModel homes_of_factor(const RunOptions& options) {
  HomeModel homes;
  homes.families.assign(7, {.pinning = HostPinning::never, .from_source = true});
  homes.families[kPanelFamily] = {.pinning = options.host_pinning, .from_source = true};
  return homes;
}

}  // namespace

std::int64_t rule_panel(std::int64_t n, const Machine& machine, Element precision) {
  require_devices(machine);
  std::int64_t panel = rule_by_order(n, machine);
  const std::int64_t budget = smallest_memory(machine);
  const auto columns = budget / std::max<std::int64_t>(n * bytes_of(precision), 1);
  const std::int64_t wanted = is_cpu(machine) ? kPanelsWantedCpu : kPanelsWantedGpu;
  while (panel > kPanelMin && panel < n && columns < n && columns / panel < wanted &&
         n <= kPanelsMax * (panel / 2))
    panel /= 2;
  return panel;
}

bool devices_hold_both(const LuProblem& problem, Element given, const Machine& machine,
                       MatrixPlace place) {
  constexpr std::int64_t kSmall = 2048;  // order, of which the host makes short work
  if (problem.in_storage || place == MatrixPlace::host) return false;
  if (place == MatrixPlace::gpus && (is_cpu(machine) || problem.n < kSmall)) return false;
  const auto n = static_cast<double>(problem.n);
  const auto devices = static_cast<double>(machine.devices.size());
  const auto both = static_cast<double>(bytes_of(given) + bytes_of(problem.precision));
  const auto beside = static_cast<double>(kColumnsBeside * 4 * bytes_of(given));
  return n * (n / devices * both + beside) <= 0.9 * static_cast<double>(smallest_memory(machine));
}

PlannedRun plan_lu(LuProblem& problem, const Machine& machine, const LuOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  require(options.panel >= 0, ErrorKind::misuse, "options", "a panel cannot have {} columns",
          options.panel);
  require_devices(machine);
  problem.devices = static_cast<int>(machine.devices.size());
  const std::int64_t budget = smallest_memory(machine);
  const bool free_panel = options.panel == 0 && !options.reproducible;
  problem.panel = options.panel > 0      ? options.panel
                  : options.reproducible ? rule_by_order(problem.n, machine)
                                         : rule_panel(problem.n, machine, problem.precision);
  MemoryNeeds needs = lu_needs(problem, budget);
  while (options.panel == 0 && problem.panel > 1 && needs.device_bytes > budget) {
    problem.panel /= 2;
    needs = lu_needs(problem, budget);
  }
  check_device_memory(needs, problem.n, problem.panel, machine);
  check_panels(problem, budget);
  const bool fits =
      problem.n * problem.n * bytes_of(problem.precision) <= budget * std::ssize(machine.devices);
  SearchOptions search_options;
  search_options.policy = options.run.policy;
  search_options.n = problem.n;
  search_options.tile = problem.panel;
  // Where nothing was measured, narrow panels are said to be as fast as any, which they are not:
  // there the rule's is left only for the bytes that others save.
  search_options.tile_is_free =
      free_panel && (!fits || sizes_of_updates(machine.devices[0], problem.precision) >= 2);
  const LuCandidates candidates(problem, machine, options.run.policy, homes_of_factor(options.run));
  PlannedRun planned = search(candidates, machine, search_options);
  problem.panel = planned.tile;
  planned.host_bytes = lu_needs(problem, budget).host_bytes;
  if (problem.in_storage) planned.host_bytes += host_bytes_beside_storage(*planned.plan);
  planned.seconds = seconds_since(start);
  return planned;
}

PlannedRun plan_lu_as_it_is(const LuProblem& problem, const Machine& machine, Policy policy,
                            Residency start, HomeModel homes) {
  const auto begin = std::chrono::steady_clock::now();
  PlanOptions options = options_of(policy);
  options.homes = std::move(homes);
  PlannedRun planned = make_planned_run(std::make_shared<const Schedule>(lu_factorization(problem)),
                                        machine, options, to_string(policy), std::move(start));
  planned.n = problem.n;
  planned.tile = problem.panel;
  planned.floor_bytes = lu_floor_bytes(problem, smallest_memory(machine));
  planned.host_bytes = lu_needs(problem, smallest_memory(machine)).host_bytes;
  planned.seconds = seconds_since(begin);
  return planned;
}

LuSolveProblem with_right_sides(LuSolveProblem problem, std::int64_t rhs, const Machine& machine) {
  problem.rhs = rhs;
  const std::int64_t widest = std::clamp<std::int64_t>(rhs, 1, problem.panel);
  // Columns that are dealt evenly to all queues.
  std::int64_t queues = 0;
  for (const DeviceModel& device : machine.devices) queues += device.compute_queues;
  const std::int64_t even = (rhs + queues - 1) / std::max<std::int64_t>(queues, 1);
  constexpr std::int64_t kFewest = 16;
  problem.rhs_tile = std::clamp(std::max(even, kFewest), std::int64_t{1}, widest);
  const std::int64_t budget = smallest_memory(machine);
  const std::int64_t column = std::max<std::int64_t>(problem.n * bytes_of(problem.precision), 1);
  const auto needed = [&] { return smallest_budget_bytes(lu_solve(problem)); };
  while (problem.rhs_tile > 1 && needed() > budget) problem.rhs_tile = (problem.rhs_tile + 1) / 2;
  // Beside the panel that streams past and the next one.
  const std::int64_t room = budget / column - 2 * std::min(problem.panel, problem.n) - 1;
  const std::int64_t blocks = std::max<std::int64_t>(room / problem.rhs_tile, 1);
  problem.group = blocks * problem.devices;
  const std::int64_t all = (rhs + problem.rhs_tile - 1) / problem.rhs_tile;
  if (problem.group >= all) problem.group = 0;
  return problem;
}

std::int64_t floor_of_solve(const BlockTable& blocks) {
  std::int64_t bytes = blocks.total_bytes(kRightSideFamily);
  for (const int f : {kPanelFamily, kPivotsFamily, kRightSideFamily})
    bytes += blocks.total_bytes(f);
  return bytes;
}

}  // namespace strata
