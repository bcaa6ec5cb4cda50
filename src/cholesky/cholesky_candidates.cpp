#include "cholesky/cholesky_candidates.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "cholesky/cholesky_bounds.hpp"
#include "cholesky/mixed_tiles.hpp"
#include "schedule/plan_layout.hpp"
#include "session/policy.hpp"

namespace strata {
namespace {

/// Past this many block rows planning every candidate would be noticed; one is taken by formula.
constexpr std::int64_t kSearchTilesMax = 96;

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

/// How many tiles of a schedule whose tiles differ in size fit into a memory, with all that belongs
/// to them, on the average.
std::int64_t tiles_that_fit(const Schedule& schedule, std::int64_t memory_bytes) {
  double bytes = 0;
  for (int f = 0; f < schedule.blocks.families(); ++f)
    bytes += static_cast<double>(schedule.blocks.total_bytes(f));
  const auto tiles = static_cast<double>(schedule.blocks.count(kMatrixFamily));
  return static_cast<std::int64_t>(tiles *
                                   std::min(1.0, static_cast<double>(memory_bytes) / bytes));
}

/// An order as a number: the width of a super-tile, 0 for the textbook's, or one of these; how wide
/// the blocks of host memory are and their groups; and a bit where tiles are stored as they are
/// done.
constexpr int kBits = 20;
constexpr std::int64_t kMask = (std::int64_t{1} << kBits) - 1;
constexpr std::int64_t kBalanced = kMask;
constexpr std::int64_t kBringsHome = std::int64_t{1} << 3 * kBits;
Order order_of(std::int64_t number) {
  const std::int64_t width = number & kMask;
  return {.super_tile = width == kBalanced ? 0 : width,
          .outer = number >> kBits & kMask,
          .group = number >> 2 * kBits & kMask,
          .balanced = width == kBalanced,
          .brings_home = (number & kBringsHome) != 0};
}

/// Blocks that host memory of so many slots holds between storage and devices of `slots`, with the
/// operands of a group and of the next one beside them.
void add_two_levels(std::int64_t tiles, std::int64_t on_host, std::int64_t slots, int devices,
                    std::vector<std::int64_t>& orders) {
  const auto widest = static_cast<std::int64_t>(std::sqrt(static_cast<double>(slots) + 1)) - 1;
  for (std::int64_t width = widest; width >= std::max<std::int64_t>(widest - 1, 1); --width) {
    for (const std::int64_t group : {width, 2 * width}) {
      const auto needed = [&](std::int64_t outer) {
        return outer * outer * devices + 2 * group * outer * (1 + devices);
      };
      std::int64_t outer = 0;
      while (needed(outer + 1) <= on_host) ++outer;
      outer = std::min(outer, tiles);
      // Equal blocks: the last is then not a small rest.
      const std::int64_t parts = outer > 0 ? (tiles + outer - 1) / outer : 0;
      if (parts > 0) outer = (tiles + parts - 1) / parts;
      if (outer <= width) continue;
      orders.push_back(width | outer << kBits | group << 2 * kBits);
      if (tiles > kSearchTilesMax) return;
    }
  }
}

}  // namespace

bool factor_stays(const CholeskyProblem& problem, const Machine& machine) {
  constexpr double kShareOfMemory = 0.75;  // size classes that are short of slots need the rest
  if (!problem.formats.stay()) return false;
  const bool mixed = problem.formats.map != nullptr;
  const BlockTable blocks = tile_cholesky(problem, {}).blocks;
  const auto bytes = [&](int f) { return static_cast<double>(blocks.total_bytes(f)); };
  const std::int64_t rows = blocks.block_rows(kMatrixFamily);
  double needed = mixed && rows > 0 ? 2 * bytes(mixed::kSums) / static_cast<double>(rows) : 0;
  for (int f = 0; f < blocks.families(); ++f) {
    if (!mixed || f != mixed::kSums) needed += bytes(f);
  }
  const auto devices = static_cast<double>(machine.devices.size());
  return needed <= kShareOfMemory * devices * static_cast<double>(smallest_memory(machine));
}

CholeskyProblem CholeskyCandidates::with_tile(std::int64_t tile) const {
  CholeskyProblem problem = problem_;
  problem.tile = tile;
  return problem;
}

bool CholeskyCandidates::allows(std::int64_t tile) const {
  const std::int64_t smallest = is_cpu(machine_) ? 64 : 256;
  const std::int64_t rows = (problem_.n + tile - 1) / tile;
  if (tile < smallest || rows < std::max(problem_.devices, 2) || rows > kBlockRowsMax) return false;
  const CholeskyProblem problem = with_tile(tile);
  return smallest_budget_bytes(tile_cholesky(problem, {})) <= smallest_memory(machine_) &&
         cholesky_host_bytes(problem) <= machine_.host_memory_bytes;
}

std::vector<std::int64_t> CholeskyCandidates::orders(std::int64_t tile) const {
  const Schedule column = tile_cholesky(with_tile(tile), {});
  const std::int64_t tiles = column.blocks.block_rows(kMatrixFamily);
  const bool may_leave =
      problem_.formats.map != nullptr && !factor_stays(with_tile(tile), machine_);
  if (policy_ != Policy::opt || tiles == 0) return {may_leave ? kBringsHome : 0};
  const std::int64_t slots =
      problem_.formats.map != nullptr
          ? tiles_that_fit(column, smallest_memory(machine_))
          : slots_of_family(make_layout(column, machine_, {}, {}), 0, kMatrixFamily);
  const std::set<std::int64_t> widths = candidate_widths(tiles, slots);
  std::vector<std::int64_t> orders;
  // The first of two orders with equal traffic wins: kBalanced, where all tiles fit on several
  // devices.
  const bool all_fits = slots >= tiles * (tiles + 1) / 2;
  const bool searched = tiles <= kSearchTilesMax || widths.empty();
  if (problem_.devices > 1 && searched) orders.push_back(kBalanced);
  if ((problem_.devices == 1 || !all_fits) && searched) orders.push_back(0);
  orders.insert(orders.end(), widths.begin(), widths.end());
  // Sums of tiles in several precisions have no place in storage.
  if (!all_fits && problem_.formats.in_storage && problem_.formats.map == nullptr) {
    const PlanLayout layout = make_layout(column, machine_, {}, {});
    if (layout.host >= 0)
      add_two_levels(tiles,
                     slots_of_family(layout, static_cast<std::size_t>(layout.host), kMatrixFamily),
                     slots, problem_.devices, orders);
  }
  if (may_leave) {
    for (const std::int64_t order : std::vector(orders)) orders.push_back(order + kBringsHome);
  }
  return orders;
}

std::string CholeskyCandidates::order_name(std::int64_t order) const {
  return order_of(order).name();
}

Schedule CholeskyCandidates::schedule(std::int64_t tile, std::int64_t order) const {
  return tile_cholesky(with_tile(tile), order_of(order));
}

bool CholeskyCandidates::by_seconds() const {
  return problem_.formats.map != nullptr || problem_.formats.in_storage;
}

PlanOptions CholeskyCandidates::options() const {
  PlanOptions options = options_of(policy_);
  options.urgent_queue = policy_ == Policy::opt && has_urgent_queue(problem_, machine_);
  options.homes = homes_;
  return options;
}

double CholeskyCandidates::seconds_min(std::int64_t tile, int queues) const {
  return simulated_seconds_min(with_tile(tile), machine_, queues);
}

std::int64_t CholeskyCandidates::steps(std::int64_t tile) const {
  return planning_steps(with_tile(tile));
}

std::int64_t CholeskyCandidates::floor_bytes(std::int64_t memory_bytes) const {
  return cholesky_floor_bytes(problem_, memory_bytes);
}

}  // namespace strata
