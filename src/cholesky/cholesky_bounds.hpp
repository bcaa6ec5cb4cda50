#pragma once
// What a Cholesky factorization needs and takes at least, in closed form: memory, bytes moved,
// simulated seconds; and how many steps its plan has.
//
// Contract: pure functions; no plan is made.

#include "cholesky/tile_cholesky.hpp"
#include "session/budget.hpp"

namespace strata {

/// The needs of `problem` in its tile, and the largest tile for `budget` bytes of device memory. In
/// host memory: the factor's packed tiles, the statuses of the diagonal ones, the coordinates of a
/// matrix that is generated.
[[nodiscard]] MemoryNeeds cholesky_needs(const CholeskyProblem& problem, std::int64_t budget);

/// cholesky_needs().host_bytes, alone.
[[nodiscard]] std::int64_t cholesky_host_bytes(const CholeskyProblem& problem);

/// The bytes that any schedule of Cholesky must move between the host and fast memories of
/// `memory_bytes` each: n³/(3·√2·√S) words for S words of fast memory (Beaumont, Eyraud-Dubois,
/// Vérité, Langou, "I/O-optimal algorithms for symmetric linear algebra kernels", 2022), where the
/// triangle does not fit, plus one write of the triangle and, unless it is generated, one read. For
/// tiles in several elements the points are read, and tiles are written that do not stay on the
/// devices.
[[nodiscard]] std::int64_t cholesky_floor_bytes(const CholeskyProblem& problem,
                                                std::int64_t memory_bytes);

/// Whether the tasks of diagonal tiles get a queue of high priority (PlanOptions) under `opt`:
/// where there are several GPUs. On one its two queues have other work while a diagonal tile is
/// factored: they were idle for 0.5 % of a run of n = 98,304.
[[nodiscard]] bool has_urgent_queue(const CholeskyProblem& problem, const Machine& machine);

/// A lower bound of the seconds that simulate() predicts for a factorization in tiles of
/// `problem.tile` on `queues` compute queues of each device (and the urgent one, where there is
/// one). It is the largest of the work on the devices by their rates, the work on the queues, the
/// critical path (potrf → trsm → syrk → potrf … down the diagonal), and the triangle over the
/// links.
[[nodiscard]] double simulated_seconds_min(const CholeskyProblem& problem, const Machine& machine,
                                           int queues);

/// Steps of a plan in tiles of `problem.tile` on one device that holds the matrix: the tasks, a
/// load and a store of each tile, and a store of each pivot status. More where tiles come again.
[[nodiscard]] std::int64_t planning_steps(const CholeskyProblem& problem);

}  // namespace strata
