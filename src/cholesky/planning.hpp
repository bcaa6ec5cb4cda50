#pragma once
// From a problem, a machine and a policy to a plan: the tile, the order of tasks, the floor.

#include <cstdint>
#include <memory>
#include <string>

#include "cholesky/tile_cholesky.hpp"
#include "cholesky/triangular_solve.hpp"
#include "schedule/plan.hpp"

namespace strata {

/// A plan with how it came about.
struct PlannedRun {
  std::unique_ptr<Plan> plan;
  std::string policy;  ///< "v3", "opt column", "opt super_tile(8)"
  double seconds = 0;  ///< of planning
  std::int64_t floor_bytes = 0;
};

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

}  // namespace strata
