#pragma once
// TileTasks: what a tile Cholesky factorization does to a tile, as tasks.
//
// Contract: emits tasks only. The order of tiles and updates is the caller's (tile_cholesky.cpp);
// where tiles have one precision and where each has its own, the order is the same.

#include <cstdint>
#include <memory>

#include "cholesky/tile_cholesky.hpp"
#include "schedule/row_owners.hpp"
#include "schedule/task.hpp"

namespace strata {

class TileTasks {
 public:
  TileTasks() = default;
  TileTasks(const TileTasks&) = delete;  // used through the base
  TileTasks& operator=(const TileTasks&) = delete;
  virtual ~TileTasks() = default;

  /// Tile (m, k) gets its first value, if that is generated.
  virtual void first_touch(TaskList& tasks, std::int64_t m, std::int64_t k) const = 0;
  /// A(m,k) ← A(m,k) − L(m,j)·L(k,j)ᵀ; `hint` is of A(m,k).
  virtual void update(TaskList& tasks, std::int64_t m, std::int64_t k, std::int64_t j,
                      Hint hint) const = 0;
  /// L(k,k) = potrf(A(k,k)); L(m,k) = A(m,k)·L(k,k)⁻ᵀ.
  virtual void finish(TaskList& tasks, std::int64_t m, std::int64_t k) const = 0;
};

/// All tiles in the problem's precision.
[[nodiscard]] std::unique_ptr<const TileTasks> uniform_tile_tasks(const CholeskyProblem& problem,
                                                                  const RowOwners& owners);
/// Tiles in precisions of their own, see mixed_tiles.cpp.
[[nodiscard]] std::unique_ptr<const TileTasks> mixed_tile_tasks(const CholeskyProblem& problem,
                                                                const RowOwners& owners);

/// The families of a mixed factorization beside those of every factorization (tile_cholesky.hpp):
/// adds them to the schedule's blocks, with how many blocks of each a task touches.
void add_mixed_families(const CholeskyProblem& problem, Schedule& schedule);

}  // namespace strata
