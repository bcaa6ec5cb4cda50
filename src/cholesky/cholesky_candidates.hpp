#pragma once
// The tiles and orders in which a matrix may be factored, as the search sees them.
//
// Contract: as CandidateSpace. An order below 2^20 - 1 is the width of its super-tiles
// (Order::super_tile), 0 the textbook order.

#include <utility>

#include "cholesky/tile_cholesky.hpp"
#include "session/candidates.hpp"

namespace strata {

/// Tasks grow with the cube of the block rows: a plan of more than these would be noticeable beside
/// the run.
inline constexpr std::int64_t kBlockRowsMax = 256;

/// Whether a factor in several precisions stays where it is computed: its tiles, their other forms
/// and the sums of a column or two take up to three quarters of the memory of its devices. False
/// for one in a single precision, whose tiles go home as they are done.
[[nodiscard]] bool factor_stays(const CholeskyProblem& problem, const Machine& machine);

class CholeskyCandidates : public CandidateSpace {
 public:
  /// `problem.devices` is that of the machine, which outlives the candidates; problem.tile is not
  /// read. `homes` is where the blocks rest.
  CholeskyCandidates(const CholeskyProblem& problem, const Machine& machine, Policy policy,
                     HomeModel homes = {})
      : problem_(problem), machine_(machine), policy_(policy), homes_(std::move(homes)) {}

  /// At least two rows of tiles and one for each device, at most kBlockRowsMax; not below the
  /// size from which the kernels of the devices are worth their calls; the smallest budget holds a
  /// task, and the machine's host memory the factor.
  [[nodiscard]] bool allows(std::int64_t tile) const override;
  /// Column by column, and for `opt`, where not everything fits, super-tiles near the widest whose
  /// accumulators and operands do. Past 96 rows one order by formula. A factor in several
  /// precisions that does not fit has each order twice: with tiles that stay until they are
  /// evicted, and with tiles that are written back as they are done; policies but opt take the
  /// latter.
  [[nodiscard]] std::vector<std::int64_t> orders(std::int64_t tile) const override;
  [[nodiscard]] std::string order_name(std::int64_t order) const override;
  [[nodiscard]] Schedule schedule(std::int64_t tile, std::int64_t order) const override;
  /// A factor in several precisions: its products are so fast that what a wide super-tile saves in
  /// bytes it may lose where copies and products wait for each other. One in storage, whose links
  /// differ by far.
  [[nodiscard]] bool by_seconds() const override;
  [[nodiscard]] PlanOptions options() const override;
  [[nodiscard]] double seconds_min(std::int64_t tile, int queues) const override;
  [[nodiscard]] std::int64_t steps(std::int64_t tile) const override;
  [[nodiscard]] std::int64_t floor_bytes(std::int64_t memory_bytes) const override;

 private:
  [[nodiscard]] CholeskyProblem with_tile(std::int64_t tile) const;

  CholeskyProblem problem_;
  const Machine& machine_;
  Policy policy_;
  HomeModel homes_;
};

}  // namespace strata
