#pragma once
// CandidateSpace: the ways in which one problem can be computed on one machine, for the search
// (search.hpp) to choose from.
//
// Contract: an algorithm implements it. A candidate is a tile and an order of its tasks, both
// numbers; what an order's number means is the algorithm's alone. All functions are pure, and may
// be called from several threads at once.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/plan.hpp"

namespace strata {

class CandidateSpace {
 public:
  virtual ~CandidateSpace() = default;

  /// Whether a tile >= 1 is worth considering: what it needs is there, and every device has work.
  [[nodiscard]] virtual bool allows(std::int64_t tile) const = 0;
  /// The orders worth planning in tiles of `tile`, at least one. The plan that moves the fewest
  /// bytes is taken, or by_seconds() the one that simulate() follows fastest; of two that are
  /// alike in that, the one whose order stands first here.
  [[nodiscard]] virtual std::vector<std::int64_t> orders(std::int64_t tile) const = 0;
  [[nodiscard]] virtual bool by_seconds() const { return false; }
  /// "column"; "" where there is nothing to tell.
  [[nodiscard]] virtual std::string order_name(std::int64_t order) const = 0;
  [[nodiscard]] virtual Schedule schedule(std::int64_t tile, std::int64_t order) const = 0;
  /// How its plans are to be made.
  [[nodiscard]] virtual PlanOptions options() const = 0;

  /// The least seconds that simulate() can say of any order in tiles of `tile`, with `queues`
  /// compute queues on each device.
  [[nodiscard]] virtual double seconds_min(std::int64_t tile, int queues) const = 0;
  /// About as many steps as its plan has.
  [[nodiscard]] virtual std::int64_t steps(std::int64_t tile) const = 0;
  /// The least that any schedule could move, in bytes, with fast memories of `memory_bytes` each.
  [[nodiscard]] virtual std::int64_t floor_bytes(std::int64_t memory_bytes) const = 0;
};

}  // namespace strata
