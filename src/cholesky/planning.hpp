#pragma once
// From a problem, a machine and a policy to a plan: the tile, the order of tasks, the floor.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cholesky/tile_cholesky.hpp"
#include "cholesky/triangular_solve.hpp"
#include "schedule/plan.hpp"
#include "strata/options.hpp"

namespace strata {

/// A plan with how it came about.
struct PlannedRun {
  std::unique_ptr<Plan> plan;
  std::string policy;            ///< "v3", "opt column", "opt super_tile(8)"
  double seconds = 0;            ///< of planning
  double predicted_seconds = 0;  ///< by simulate(), where the choice of the tile asked it; else 0
  std::int64_t floor_bytes = 0;
  bool in_core = false;  ///< the matrix is one tile
};

/// Beyond this order the planned path is taken by itself: it computes while it transfers, and the
/// kernels of its tiles are as fast as the whole. Below, transfers are short beside the launches
/// that small tiles cost.
inline constexpr std::int64_t kInCoreOrderMax = 8192;

/// Tasks grow with the cube of the block rows: more than these would make planning noticeable
/// beside the run.
inline constexpr std::int64_t kBlockRowsMax = 256;

/// A plan of a problem whose tile and devices follow from the options: the whole matrix as one tile
/// on one device for the in-core path, else tiles on all of them. A tile that is not asked for is
/// the fastest by simulation (tile_search.hpp), or, if the planned path is asked for, that of
/// reproducible_tile(). Fills both in `problem`. Throws as plan_cholesky, Error{misuse} for a tile
/// in core or blocking that does not exist, and Error{memory} if the matrix has to be in core and
/// does not fit, or as check_device_memory.
[[nodiscard]] PlannedRun plan_path(CholeskyProblem& problem, const Machine& machine,
                                   const Options& options);

/// The order of tiles by a rule of thumb, where the search begins: the size at which the device's
/// kernels are efficient, smaller for small matrices so that all queues have work, halved until a
/// budget holds enough tiles to reuse them. Throws Error{misuse} for a machine without devices.
[[nodiscard]] std::int64_t rule_tile(const CholeskyProblem& problem, const Machine& machine);

/// The order of tiles that follows from n and the kind of device alone, so that the bits of the
/// factor do not depend on the budget, the rates, the policy or the number of devices. Only a
/// budget that cannot hold the tiles of one task halves it. Throws as rule_tile.
[[nodiscard]] std::int64_t reproducible_tile(const CholeskyProblem& problem,
                                             const Machine& machine);

/// The tiles whose kernels should be measured, so that the search finds rates for what it compares:
/// `requested` alone if it is above 0, else half of the rule's, the rule's, and one and a half
/// times and twice of it, as far as the budget can hold what a measurement needs.
[[nodiscard]] std::vector<std::int64_t> calibration_tiles(const CholeskyProblem& problem,
                                                          std::int64_t requested,
                                                          const Machine& machine);

/// The smallest budget of the devices of a machine, in bytes; it has at least one.
[[nodiscard]] std::int64_t smallest_memory(const Machine& machine);

/// True for devices that are CPUs: their small tiles are efficient, and their queues are cores.
[[nodiscard]] bool is_cpu(const Machine& machine);

/// Whether the tasks of diagonal tiles get a queue of high priority (PlanOptions) under `opt`:
/// where there are several GPUs. On one its two queues have other work while a diagonal tile is
/// factored: they were idle for 0.5 % of a run of n = 98,304.
[[nodiscard]] bool has_urgent_queue(const CholeskyProblem& problem, const Machine& machine);

/// What a factorization needs at least; all in bytes.
struct CholeskyNeeds {
  std::int64_t device_bytes = 0;  ///< of each device, in tiles of problem.tile
  /// The largest tile that can be planned with a budget; n is the whole matrix. 0: none can.
  std::int64_t tile_max = 0;
  /// Of the host: the factor's packed tiles, and the coordinates of a matrix that is generated.
  std::int64_t host_bytes = 0;
};

/// The needs of `problem` in its tile, and the largest tile for `budget` bytes of device memory.
[[nodiscard]] CholeskyNeeds cholesky_needs(const CholeskyProblem& problem, std::int64_t budget);

/// Throws Error{memory} unless each device holds what one task needs in tiles of `problem.tile`.
/// The message says the smallest budget for this tile, the largest tile for this budget, and what
/// the host needs.
void check_device_memory(const CholeskyProblem& problem, const Machine& machine);

/// Plans a factorization. For `opt` the orders that could be best for the slots at hand are
/// planned, and the one that moves the fewest bytes is taken; ties go to the textbook order. Throws
/// Error{misuse} for a policy that does not exist yet, Error{memory} as Plan does.
[[nodiscard]] PlannedRun plan_cholesky(const CholeskyProblem& problem, const Machine& machine,
                                       Policy policy);

/// The orders that plan_cholesky compares, the textbook's first where it is one of them.
[[nodiscard]] std::vector<Order> candidate_orders(const CholeskyProblem& problem,
                                                  const Machine& machine, Policy policy);

/// Plans a triangular solve, from what is on the devices.
[[nodiscard]] PlannedRun plan_solve(const SolveProblem& problem, Sweep sweep,
                                    const Machine& machine, Policy policy,
                                    const Residency& start = {});

/// The bytes that any schedule of Cholesky must move between the host and fast memories of
/// `memory_bytes` each: n³/(3·√2·√S) words for S words of fast memory (Beaumont, Eyraud-Dubois,
/// Vérité, Langou, "I/O-optimal algorithms for symmetric linear algebra kernels", 2022), where the
/// triangle does not fit, plus one write of the triangle and, unless it is generated, one read.
[[nodiscard]] std::int64_t cholesky_floor_bytes(const CholeskyProblem& problem,
                                                std::int64_t memory_bytes);

/// "v3", "opt", …; and back, throwing Error{misuse}.
[[nodiscard]] const char* to_string(Policy policy) noexcept;
[[nodiscard]] Policy parse_policy(const std::string& name);

/// "auto", "in-core", "planned"; and back, throwing Error{misuse}.
[[nodiscard]] const char* to_string(CholeskyPath path) noexcept;
[[nodiscard]] CholeskyPath parse_path(const std::string& name);

/// The columns of a block of `rhs` right-hand sides: those of a tile, or fewer where the factor is
/// one tile that leaves less of the smallest budget free. At least 1.
[[nodiscard]] std::int64_t choose_rhs_tile(std::int64_t rhs, const CholeskyProblem& problem,
                                           const Machine& machine);

}  // namespace strata
