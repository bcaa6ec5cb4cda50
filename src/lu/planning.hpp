#pragma once
// From a general system, a machine and options to plans: of its factorization, and of solves.

#include <cstdint>

#include "lu/lu_candidates.hpp"
#include "session/planned_run.hpp"
#include "strata/lu.hpp"

namespace strata {

/// Columns of a panel by a rule of thumb, where the search begins: enough for products to near the
/// rate of a device, few beside n, since panels are factored one after another; halved until a
/// budget holds as many as slabs need (planning.cpp).
[[nodiscard]] std::int64_t rule_panel(std::int64_t n, const Machine& machine, Element precision);

/// Columns for which devices keep room beside a factor, and beside its matrix.
inline constexpr std::int64_t kColumnsBeside = 64;

/// Where the matrix is kept that a factor is of, for residuals.
enum class MatrixPlace : std::uint8_t {
  host,
  gpus,         ///< beside the factor on GPUs that can hold both, where it is worth it
  any_devices,  ///< the same of CPUs, too: for tests
};
[[nodiscard]] bool devices_hold_both(const LuProblem& problem, Element given,
                                     const Machine& machine, MatrixPlace place);

/// The plan of a factorization. A panel that is not asked for (LuOptions::panel) is the fastest by
/// simulation, beginning with rule_panel(); where the planned path is asked for it is the rule's,
/// for any budget that holds two. Fills panel, devices and slab in `problem`. Throws Error{memory},
/// with what would fit, where two panels do not, or the host cannot hold the matrix; Error{misuse}
/// for a panel below 0.
[[nodiscard]] PlannedRun plan_lu(LuProblem& problem, const Machine& machine,
                                 const LuOptions& options);

/// In its panel and slab, as they are.
[[nodiscard]] PlannedRun plan_lu_as_it_is(const LuProblem& problem, const Machine& machine,
                                          Policy policy, Residency start = {},
                                          HomeModel homes = {});

/// Columns of a block of right-hand sides, and blocks of a group, that go beside panels of a factor
/// in the memory of each device.
[[nodiscard]] LuSolveProblem with_right_sides(LuSolveProblem problem, std::int64_t rhs,
                                              const Machine& machine);

/// The least bytes of a solve: factor, pivots and X once in, X once out.
[[nodiscard]] std::int64_t floor_of_solve(const BlockTable& blocks);

}  // namespace strata
