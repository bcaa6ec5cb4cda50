#pragma once
// From a problem, a machine and options to a plan: the path, the tile, the order of tasks.

#include <string>
#include <string_view>
#include <vector>

#include "cholesky/cholesky_bounds.hpp"
#include "cholesky/cholesky_candidates.hpp"
#include "cholesky/covariance_product.hpp"
#include "cholesky/inverse_diagonal.hpp"
#include "cholesky/triangular_solve.hpp"
#include "cholesky/whitened_sums.hpp"
#include "session/planned_run.hpp"
#include "strata/cholesky.hpp"

namespace strata {

/// Beyond this order the planned path is taken by itself: it computes while it transfers, and the
/// kernels of its tiles are as fast as the whole. Below, transfers are short beside the launches
/// that small tiles cost.
inline constexpr std::int64_t kInCoreOrderMax = 8192;

/// A plan of a problem whose tile and devices follow from the options: the whole matrix as one tile
/// on one device for the in-core path, else tiles on all of them. A tile that is not asked for is
/// the fastest by simulation (session/search.hpp), or, if the planned path is asked for, that of
/// reproducible_tile(). It stays the rule's where kernels were measured, but on tiles of one size
/// only; and where none were measured, each device keeps its compute queues (a kernel's rate is
/// then said to be the device's over the number of queues). Fills both in `problem`. Throws as
/// plan_cholesky, Error{misuse} for a tile in core or blocking that does not exist, and
/// Error{memory} if the matrix has to be in core and does not fit, or as check_device_memory and,
/// for a tile that is not searched, check_host_memory.
/// A stored matrix is taken to come from a source, into a home that is page-locked as the options
/// say.
[[nodiscard]] PlannedRun plan_path(CholeskyProblem& problem, const Machine& machine,
                                   const CholeskyOptions& options);

/// Without storage where host memory holds a factor in `element`, by whatever tiles.
[[nodiscard]] RunOptions within_host_memory(RunOptions options, std::int64_t n, Element element);

/// What a refusal for host memory says that would help otherwise.
inline constexpr std::string_view kOtherwise =
    "; or files hold what it does not: --storage DIR (RunOptions::storage)";

/// The order of tiles by a rule of thumb, where the search begins: the size at which the device's
/// kernels are efficient, smaller for small matrices so that all queues have work, halved until a
/// budget holds enough tiles to reuse them. Throws Error{misuse} for a machine without devices.
[[nodiscard]] std::int64_t rule_tile(const CholeskyProblem& problem, const Machine& machine);

/// The order of tiles that follows from n and the kind of device alone, so that the bits of the
/// factor do not depend on the budget, the rates, the policy or the number of devices. Only a
/// budget that cannot hold the tiles of one task halves it. Throws as rule_tile.
[[nodiscard]] std::int64_t reproducible_tile(const CholeskyProblem& problem,
                                             const Machine& machine);

/// The order of the tiles of a mixed factor of n points: options.tile, or reproducible_tile() for
/// the devices of the options.
[[nodiscard]] std::int64_t mixed_tile(std::int64_t n, std::int64_t dimensions,
                                      const CholeskyOptions& options);
/// The same of a machine, where no tile is asked for.
[[nodiscard]] std::int64_t mixed_tile(std::int64_t n, std::int64_t dimensions,
                                      const Machine& machine);

/// The tiles whose kernels should be measured, so that the search finds rates for what it compares.
/// `requested` alone if it is above 0; else half of the rule's, the rule's, and one and a half
/// times and twice of it, as far as the budget can hold what a measurement needs.
[[nodiscard]] std::vector<std::int64_t> calibration_tiles(const CholeskyProblem& problem,
                                                          std::int64_t requested,
                                                          const Machine& machine);

/// Plans a factorization in tiles of `problem.tile`. For `opt` the orders that could be best for
/// the slots at hand are planned, and the one that moves the fewest bytes is taken; ties go to the
/// textbook order. Throws as Plan does. The prediction takes blocks to rest as `homes` says.
[[nodiscard]] PlannedRun plan_cholesky(const CholeskyProblem& problem, const Machine& machine,
                                       Policy policy, HomeModel homes = {});

/// Where the blocks of a factorization, or of what uses a factor, rest: the tiles, family 0, in
/// `tiles`; all others in pageable memory, and what is not computed comes from the caller's.
/// `families`: of the schedule, where they are many.
[[nodiscard]] HomeModel homes_beside(const FamilyHome& tiles, int families = 0);

/// SolveProblem::products_at_once for this machine: right-looking where GPUs keep all of L and X,
/// whose tasks are then launches of many products.
[[nodiscard]] std::int64_t choose_products_at_once(const SolveProblem& problem,
                                                   const Machine& machine);

/// The least bytes of what uses a factor, from empty devices. A solve: L and X once in, X once out,
/// whatever sweeps could share. Sums over targets: everything but W once in, the sums once out. An
/// inverse: what is needed of L once in, the sums in and out. A product with a covariance: points,
/// V and Y once in, Y once out.
[[nodiscard]] std::int64_t floor_of(const SolveProblem& problem, const BlockTable& blocks);
[[nodiscard]] std::int64_t floor_of(const WhitenedProblem& problem, const BlockTable& blocks);
[[nodiscard]] std::int64_t floor_of(const InverseProblem& problem, const BlockTable& blocks);
[[nodiscard]] std::int64_t floor_of(const ProductProblem& problem, const BlockTable& blocks);

/// "auto", "in-core", "planned"; and back, throwing Error{misuse}.
[[nodiscard]] const char* to_string(CholeskyPath path) noexcept;
[[nodiscard]] CholeskyPath parse_path(const std::string& name);

/// The columns of a block of `rhs` right-hand sides: those of a tile, or fewer where the factor is
/// one tile that leaves less of the smallest budget free. At least 1.
[[nodiscard]] std::int64_t choose_rhs_tile(std::int64_t rhs, const CholeskyProblem& problem,
                                           const Machine& machine);

/// How the targets of whitened_sums() are cut.
struct TargetChunks {
  std::int64_t tile = 1;     ///< targets of a block
  std::int64_t targets = 1;  ///< of a schedule: whole blocks
  /// That devices need beside the factor, with the right-hand columns, so that W stays on them.
  std::int64_t device_bytes = 0;
};

/// The cut for `problem`, whose targets are all that there are and whose target_tile is not read.
/// A block is half as wide as a tile, narrower only if a task would not fit otherwise: so it does
/// not depend on the budget where the factorization itself fits. A schedule has so many blocks that
/// W stays beside L on the devices where there is room for both; else as many as half the memory
/// holds, for then L comes again for each schedule; else some, and W moves too. `chunk` > 0 is the
/// most targets of a schedule.
[[nodiscard]] TargetChunks choose_target_chunks(const WhitenedProblem& problem,
                                                const Machine& machine, std::int64_t chunk);

}  // namespace strata
