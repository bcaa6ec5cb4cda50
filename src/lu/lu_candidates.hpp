#pragma once
// The panels and slabs in which a matrix may be factored, as the search sees them; and what a
// factorization needs and moves at least.
//
// Contract: as CandidateSpace. A tile is the width of a panel; an order is a LuOrder in one number,
// of slabs of one level the number of their panels, 0 for all of them (right-looking).

#include <utility>

#include "lu/lu_tasks.hpp"
#include "session/budget.hpp"
#include "session/candidates.hpp"

namespace strata {

/// A plan has about half the square of this many panels in tasks.
inline constexpr std::int64_t kPanelsMax = 256;

/// The bytes that any schedule of LU must move between the host and fast memories of `memory_bytes`
/// each: reads of max(n², 2n³/(3·√M)) words for M words of fast memory (Kwasniewski, Kabic,
/// Ben-Nun, Ziogas, Saethre, Gaillard, Schneider, Besta, Kozhevnikov, VandeVondele, Hoefler, "On
/// the parallel I/O optimality of linear algebra kernels: near-optimal matrix factorizations",
/// 2021), the first term alone where the matrix fits, and one write of n² words.
[[nodiscard]] std::int64_t lu_floor_bytes(const LuProblem& problem, std::int64_t memory_bytes);

/// The needs of `problem` in its panel, and the widest panel for `budget` bytes of device memory.
/// In host memory: the panels, their pivots and their statuses.
[[nodiscard]] MemoryNeeds lu_needs(const LuProblem& problem, std::int64_t budget);

/// What LuProblem has of an order.
struct LuOrder {
  std::int64_t slab = 0;
  std::int64_t inner = 0;
  std::int64_t group = 1;

  [[nodiscard]] static LuOrder of(std::int64_t number) noexcept;
  [[nodiscard]] std::int64_t number() const noexcept;
};

class LuCandidates : public CandidateSpace {
 public:
  /// `problem.devices` is that of the machine, which outlives the candidates; panel and slab are
  /// not read.
  LuCandidates(const LuProblem& problem, const Machine& machine, Policy policy,
               HomeModel homes = {})
      : problem_(problem), machine_(machine), policy_(policy), homes_(std::move(homes)) {}

  /// At least a panel for each device and two in all, at most kPanelsMax; not narrower than kernels
  /// are worth their calls; two panels fit.
  [[nodiscard]] bool allows(std::int64_t tile) const override;
  /// Where all panels fit, right-looking, and, but on a CPU, slabs, of which the next one comes
  /// while one is computed. Else slabs of as many panels as fit beside one that
  /// streams, and of one and two fewer, which leaves room for the next one; right-looking, too,
  /// which may win where nearly everything fits. Where host memory between storage and the devices
  /// holds more panels than they do, slabs of two levels, too.
  [[nodiscard]] std::vector<std::int64_t> orders(std::int64_t tile) const override;
  [[nodiscard]] bool by_seconds() const override { return true; }
  [[nodiscard]] std::string order_name(std::int64_t order) const override;
  [[nodiscard]] Schedule schedule(std::int64_t tile, std::int64_t order) const override;
  [[nodiscard]] PlanOptions options() const override;
  [[nodiscard]] double seconds_min(std::int64_t tile, int queues) const override;
  [[nodiscard]] std::int64_t steps(std::int64_t tile) const override;
  [[nodiscard]] std::int64_t floor_bytes(std::int64_t memory_bytes) const override;

 private:
  [[nodiscard]] LuProblem with(std::int64_t tile, std::int64_t order) const;

  LuProblem problem_;
  const Machine& machine_;
  Policy policy_;
  HomeModel homes_;
};

}  // namespace strata
