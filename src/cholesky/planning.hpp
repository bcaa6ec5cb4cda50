#pragma once
// From a problem, a machine and a policy to a plan: the tile, the order of tasks, the floor.

#include <cstdint>
#include <memory>
#include <string>

#include "cholesky/tile_cholesky.hpp"
#include "cholesky/triangular_solve.hpp"
#include "schedule/plan.hpp"
#include "strata/options.hpp"

namespace strata {

/// A plan with how it came about.
struct PlannedRun {
  std::unique_ptr<Plan> plan;
  std::string policy;  ///< "v3", "opt column", "opt super_tile(8)"
  double seconds = 0;  ///< of planning
  std::int64_t floor_bytes = 0;
  bool in_core = false;  ///< the matrix is one tile
};

/// Beyond this order the planned path is taken by itself: it computes while it transfers, and the
/// kernels of its tiles are as fast as the whole. Below, transfers are short beside the launches
/// that small tiles cost.
inline constexpr std::int64_t kInCoreOrderMax = 8192;

/// A plan of a problem whose tile and devices follow from the options: the whole matrix as one tile
/// on one device for the in-core path, else the tile of choose_tile() on all of them. Fills them in
/// `problem`. Throws as plan_cholesky, Error{misuse} for a tile in core or blocking that does not
/// exist, and Error{memory} if the matrix has to be in core and does not fit.
[[nodiscard]] PlannedRun plan_path(CholeskyProblem& problem, const Machine& machine,
                                   const Options& options);

/// The order of tiles for n unknowns: the size at which the device's kernels are efficient, halved
/// until a budget holds enough tiles to reuse them. `requested` > 0 is taken as it is.
[[nodiscard]] std::int64_t choose_tile(std::int64_t n, std::int64_t requested,
                                       const Machine& machine, Precision precision);

/// Plans a factorization. For `opt` the orders that could be best for the slots at hand are
/// planned, and the one that moves the fewest bytes is taken; ties go to the textbook order. Throws
/// Error{misuse} for a policy that does not exist yet, Error{memory} as Plan does.
[[nodiscard]] PlannedRun plan_cholesky(const CholeskyProblem& problem, const Machine& machine,
                                       Policy policy);

/// Plans a triangular solve.
[[nodiscard]] PlannedRun plan_solve(const SolveProblem& problem, Sweep sweep,
                                    const Machine& machine, Policy policy);

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
