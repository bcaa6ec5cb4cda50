#include "cholesky/planning.hpp"

#include "schedule/row_owners.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "kernels/dense/gemm.hpp"
#include "run/potrf_tuning.hpp"
#include "session/policy.hpp"
#include "session/search.hpp"
#include "strata/detect.hpp"

namespace strata {
namespace {

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

/// Whether a call that leaves the path open takes the in-core one. A column of right-hand sides for
/// each 32 of the matrix has to fit beside it, so that the solves that follow run well.
bool takes_in_core(const CholeskyProblem& problem, const Machine& machine,
                   const CholeskyOptions& options) {
  require(!problem.formats.in_storage || options.path != CholeskyPath::in_core, ErrorKind::misuse,
          "options", "a factor in storage is not made in core");
  if (problem.formats.in_storage) return false;
  if (options.path != CholeskyPath::automatic) return options.path == CholeskyPath::in_core;
  const std::int64_t n = problem.n;
  return options.tile == 0 && problem.point_dimensions == 0 && n <= kInCoreOrderMax &&
         machine.devices.size() == 1 && !is_cpu(machine) &&
         n * (n + n / 32 + 1) * bytes_of(problem.precision) <= machine.devices[0].memory_bytes;
}

/// Before anything is there.
HomeModel homes_by_options(const CholeskyProblem& problem, const CholeskyOptions& options) {
  return homes_beside(
      {.pinning = options.run.host_pinning, .from_source = problem.point_dimensions == 0});
}

/// The matrix as one tile on one device. Throws Error{memory} if it does not fit.
PlannedRun plan_in_core(CholeskyProblem& problem, const Machine& machine,
                        const CholeskyOptions& options) {
  require(options.tile == 0, ErrorKind::misuse, "options",
          "a tile of order {} cannot be asked for in core, where the matrix is one tile",
          options.tile);
  problem.devices = 1;
  problem.tile = std::max<std::int64_t>(problem.n, 1);
  const std::int64_t needed = smallest_budget_bytes(tile_cholesky(problem, {}));
  const std::int64_t there = machine.devices[0].memory_bytes;
  require(needed <= there, ErrorKind::memory, "plan",
          "in core the matrix of order {} ({} bytes) needs {} of device memory ({} bytes) and "
          "there is {}",
          problem.n, problem.n * problem.n * bytes_of(problem.precision), format_bytes(needed),
          needed, format_bytes(there));
  PlannedRun planned =
      plan_cholesky(problem, machine, options.run.policy, homes_by_options(problem, options));
  planned.in_core = true;
  return planned;
}

/// What takes memory in whitened_sums(), in slots of the size of whole blocks.
struct WhitenedSizes {
  std::int64_t factor_bytes = 0;
  std::int64_t factor_bytes_of_device = 0;  ///< the most that one has to hold
  std::int64_t block_column_bytes = 0;      ///< of W for one block of targets, with its sums
  std::int64_t fixed_bytes = 0;             ///< coordinates of the points, and R
};

WhitenedSizes sizes_of(const WhitenedProblem& problem) {
  constexpr std::int64_t kAlignment = 256;  // of slots
  const std::int64_t size = bytes_of(problem.precision);
  const auto slot = [&](std::int64_t rows, std::int64_t cols) {
    return (rows * cols * size + kAlignment - 1) / kAlignment * kAlignment;
  };
  const std::int64_t tile = std::max<std::int64_t>(std::min(problem.tile, problem.n), 1);
  const std::int64_t rows = (problem.n + tile - 1) / tile;
  std::vector<std::int64_t> tiles(static_cast<std::size_t>(problem.devices));
  const RowOwners owners(rows, problem.devices, problem.rates);
  for (std::int64_t m = 0; m < rows; ++m) tiles[static_cast<std::size_t>(owners[m])] += m + 1;
  WhitenedSizes sizes;
  // In FP64 at most, where tiles have formats of their own.
  sizes.factor_bytes = rows * (rows + 1) / 2 * slot(tile, tile);
  sizes.factor_bytes_of_device = *std::max_element(tiles.begin(), tiles.end()) * slot(tile, tile);
  const std::int64_t columns = problem.target_tile;
  sizes.block_column_bytes = rows * slot(tile, columns) + slot(columns, problem.point_dimensions) +
                             slot(columns, problem.columns) + slot(columns, 1);
  sizes.fixed_bytes = rows * (slot(tile, problem.point_dimensions) + slot(tile, problem.columns));
  return sizes;
}

/// The choice among the candidates of a problem, beginning with its tile, which it fills in.
PlannedRun plan_candidates(CholeskyProblem& problem, const Machine& machine, SearchOptions options,
                           HomeModel homes) {
  options.n = problem.n;
  options.tile = problem.tile;
  const CholeskyCandidates candidates(problem, machine, options.policy, std::move(homes));
  PlannedRun planned = search(candidates, machine, options);
  problem.tile = planned.tile;
  planned.host_bytes = cholesky_host_bytes(problem);
  if (problem.formats.in_storage) planned.host_bytes += host_bytes_beside_storage(*planned.plan);
  return planned;
}

}  // namespace

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

std::int64_t mixed_tile(std::int64_t n, std::int64_t dimensions, const CholeskyOptions& options) {
  if (options.tile > 0) return options.tile;
  return mixed_tile(n, dimensions,
                    detect_machine(options.run.devices, options.run.device_memory_bytes));
}

std::int64_t mixed_tile(std::int64_t n, std::int64_t dimensions, const Machine& machine) {
  CholeskyProblem problem;
  problem.n = n;
  problem.point_dimensions = dimensions;
  problem.devices = static_cast<int>(machine.devices.size());
  return reproducible_tile(problem, machine);
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

PlannedRun plan_cholesky(const CholeskyProblem& problem, const Machine& machine, Policy policy,
                         HomeModel homes) {
  CholeskyProblem same = problem;
  return plan_candidates(same, machine, {.policy = policy}, std::move(homes));
}

HomeModel homes_beside(const FamilyHome& tiles, int families) {
  // As many as most of the schedules have; what is said of families that are not there is not read.
  HomeModel homes;
  homes.families.assign(static_cast<std::size_t>(std::max(families, 1 + whitened::kSquares)),
                        {.pinning = HostPinning::never, .from_source = true});
  homes.families[kMatrixFamily] = tiles;
  return homes;
}

PlannedRun plan_path(CholeskyProblem& problem, const Machine& machine,
                     const CholeskyOptions& options) {
  check_blocking(options.blocking);
  require(options.tile >= 0, ErrorKind::misuse, "options", "a tile cannot be of order {}",
          options.tile);
  require_devices(machine);
  const auto start = std::chrono::steady_clock::now();
  problem.devices = static_cast<int>(machine.devices.size());
  problem.rates.clear();
  for (const DeviceModel& device : machine.devices)
    problem.rates.push_back(device.rate(element_of_parts(problem.precision)));
  if (takes_in_core(problem, machine, options)) return plan_in_core(problem, machine, options);
  const bool mixed = problem.formats.map != nullptr;  // for the tile that the problem has
  const bool free_tile = !mixed && options.tile == 0 && options.path != CholeskyPath::planned;
  problem.tile = mixed              ? problem.tile
                 : free_tile        ? rule_tile(problem, machine)
                 : options.tile > 0 ? options.tile
                                    : reproducible_tile(problem, machine);
  const MemoryNeeds needs = cholesky_needs(problem, smallest_memory(machine));
  check_device_memory(needs, problem.n, problem.tile, machine);
  // As far as it is known before there is a plan; of a free tile the search thinks.
  if (!free_tile && !problem.formats.in_storage)
    check_host_memory(needs, problem.n, problem.tile, 0, machine, options.run, "cholesky", "",
                      kOtherwise);
  Machine bounded = machine;
  if (options.run.host_memory_bytes > 0) bounded.host_memory_bytes = options.run.host_memory_bytes;
  const std::int64_t sizes = sizes_measured(machine.devices[0], gemm, problem.precision);
  SearchOptions search;
  search.policy = options.run.policy;
  // Rates of one size say nothing about another. Without any, all sizes are said to be alike.
  search.tile_is_free = free_tile && (machine.devices[0].kernels.empty() || sizes >= 2);
  search.queues_are_free = options.run.compute_queues == 0 && sizes >= 1;
  PlannedRun planned =
      plan_candidates(problem, bounded, search, homes_by_options(problem, options));
  planned.seconds = seconds_since(start);
  return planned;
}

RunOptions within_host_memory(RunOptions options, std::int64_t n, Element element) {
  if (!options.storage.used()) return options;
  constexpr std::int64_t kTile = 2048;
  const std::int64_t bytes = n * (n + std::min(n, kTile)) / 2 * bytes_of(element);
  const std::int64_t there = options.host_memory_bytes > 0
                                 ? options.host_memory_bytes
                                 : detect_machine("host").host_memory_bytes;
  if (bytes <= there) options.storage = {};
  return options;
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

std::int64_t choose_products_at_once(const SolveProblem& problem, const Machine& machine) {
  constexpr std::int64_t kProducts = 64;
  constexpr std::int64_t kColumnsMax = 64;  // beyond, one product keeps a GPU busy
  constexpr double kShareOfMemory = 0.8;
  if (is_cpu(machine) || problem.tile >= problem.n || problem.rhs > kColumnsMax) return 0;
  const BlockTable blocks = triangular_solve(problem, Sweep::forward).blocks;
  const double devices = static_cast<double>(machine.devices.size());
  const double needed = static_cast<double>(blocks.total_bytes(kFactorFamily)) / devices +
                        static_cast<double>(blocks.total_bytes(kSolutionFamily));
  const bool fits = needed <= kShareOfMemory * static_cast<double>(smallest_memory(machine));
  return fits ? kProducts : 0;
}

std::int64_t floor_of(const SolveProblem&, const BlockTable& blocks) {
  return blocks.total_bytes(kFactorFamily) + 2 * blocks.total_bytes(kSolutionFamily);
}

std::int64_t floor_of(const WhitenedProblem&, const BlockTable& blocks) {
  std::int64_t bytes =
      blocks.total_bytes(whitened::kProducts) + blocks.total_bytes(whitened::kSquares);
  for (int f = 0; f < blocks.families(); ++f)
    if (f != whitened::kWhitened) bytes += blocks.total_bytes(f);
  return bytes;
}

std::int64_t floor_of(const InverseProblem& problem, const BlockTable& blocks) {
  std::int64_t bytes = 2 * blocks.total_bytes(inverse::kSquares);
  const std::int64_t skipped = problem.first / problem.tile * problem.tile;
  blocks.for_each(inverse::kFactor, [&](BlockId id) {
    const BlockExtent x = blocks.extent(id);
    if (x.col >= skipped) bytes += x.rows * x.cols * bytes_of(problem.precision);
  });
  return bytes;
}

std::int64_t floor_of(const ProductProblem&, const BlockTable& blocks) {
  return blocks.total_bytes(product::kRowPoints) + blocks.total_bytes(product::kRight) +
         2 * blocks.total_bytes(product::kProduct);
}

TargetChunks choose_target_chunks(const WhitenedProblem& problem, const Machine& machine,
                                  std::int64_t chunk) {
  // Enough for a product to near the device's rate, with several blocks beside each other.
  constexpr std::int64_t kTileMax = 1024;
  constexpr std::int64_t kTargetsWanted = 8192;
  const std::int64_t budget = smallest_memory(machine);
  WhitenedProblem cut = problem;
  cut.target_tile = std::clamp<std::int64_t>(std::min(problem.tile, problem.n) / 2, 1, kTileMax);
  if (chunk > 0) cut.target_tile = std::min(cut.target_tile, chunk);
  const auto fits = [&] { return smallest_budget_bytes(whitened_sums(cut)) <= budget; };
  while (cut.target_tile > 1 && !fits()) cut.target_tile /= 2;
  const WhitenedSizes sizes = sizes_of(cut);
  const std::int64_t columns = cut.target_tile;
  const std::int64_t all = std::max<std::int64_t>((problem.targets + columns - 1) / columns, 1);
  std::int64_t blocks = chunk > 0 ? chunk / columns : 0;
  if (blocks == 0) {
    const std::int64_t queues = machine.devices[0].compute_queues;
    blocks = std::max((kTargetsWanted + columns - 1) / columns, queues);
    // What leaves a device needs host memory: little beside that of the factor, or beside any.
    const std::int64_t home = std::max(1_GiB, sizes.factor_bytes / 4);
    // A factor in storage leaves host memory to what is between the two: W stays on the devices.
    if (!problem.formats.in_storage)
      blocks = std::min(blocks, std::max<std::int64_t>(home / sizes.block_column_bytes, 1));
    const std::int64_t beside = budget - sizes.factor_bytes_of_device - sizes.fixed_bytes;
    const std::int64_t room = beside >= sizes.block_column_bytes ? beside : budget / 2;
    // With fewer than a tile's columns, L would take more than W does when it moves.
    const std::int64_t fitting = room / sizes.block_column_bytes;
    if (fitting >= 2 || room == beside || problem.formats.in_storage)
      blocks = std::min(blocks, fitting);
  }
  blocks = std::clamp(blocks, std::int64_t{1}, std::max<std::int64_t>(all, 1));
  return {columns, blocks * columns, blocks * sizes.block_column_bytes + sizes.fixed_bytes};
}

}  // namespace strata
