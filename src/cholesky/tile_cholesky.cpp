// Left-looking tile Cholesky.
//
// Method: for each tile, all updates from the columns to its left, then its own factorization or
// solve:
//     A(m,k) ← A(m,k) − Σ_{j<k} L(m,j)·L(k,j)ᵀ;   L(k,k) = potrf(A(k,k));   L(m,k) =
//     A(m,k)·L(k,k)⁻ᵀ.
// Left-looking, because a tile is then written once, when it is final, and a generated tile never
// travels before that (Ren, Ltaief, Abdulah, Keyes 2024, section 4). The order `super_tile`
// computes a w × w block of tiles together, so that each operand that is loaded serves w updates:
// its traffic is n³/(3·√S) words for a fast memory of S words, where column by column needs
// n⁴/(6·S).

#include "cholesky/tile_cholesky.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace strata {
namespace {

class Emitter {
 public:
  Emitter(const CholeskyProblem& problem, std::int64_t tiles, std::vector<Task>& tasks)
      : generated_(problem.point_dimensions > 0),
        devices_(problem.devices),
        tiles_(tiles),
        tasks_(tasks) {}

  void column(std::int64_t k) {
    for (std::int64_t m = k; m < tiles_; ++m) {
      first_touch(m, k);
      for (std::int64_t j = 0; j < k; ++j) update(m, k, j);
      finish(m, k);
    }
  }

  /// The tiles of rows m0 … m1−1 and columns k0 … k1−1 on or below the diagonal.
  void super_tile(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) {
    const auto rows = [&](std::int64_t k) { return std::max(m0, k); };
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = rows(k); m < m1; ++m) first_touch(m, k);
    }
    for (std::int64_t j = 0; j < k0; ++j) {
      for (std::int64_t k = k0; k < k1; ++k) {
        for (std::int64_t m = rows(k); m < m1; ++m) update(m, k, j);
      }
    }
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = rows(k); m < m1; ++m) {
        for (std::int64_t j = k0; j < k; ++j) update(m, k, j);
        finish(m, k);
      }
    }
  }

 private:
  static BlockId tile(std::int64_t m, std::int64_t k) { return {kMatrixFamily, m, k}; }

  void first_touch(std::int64_t m, std::int64_t k) {
    if (!generated_) return;
    Task& task = emit(Operation::covariance, m, k);
    task.access = Access::write;
    set_inputs(task, BlockId(kPointsFamily, m, 0), BlockId(kPointsFamily, k, 0));
  }

  void update(std::int64_t m, std::int64_t k, std::int64_t j) {
    Task& task = emit(m == k ? Operation::syrk : Operation::gemm, m, k);
    if (m == k) {
      set_inputs(task, tile(m, j));
    } else {
      set_inputs(task, tile(m, j), tile(k, j));
    }
  }

  void finish(std::int64_t m, std::int64_t k) {
    Task& task = emit(m == k ? Operation::potrf : Operation::trsm, m, k);
    task.final = true;
    if (m != k) set_inputs(task, tile(k, k));
  }

  Task& emit(Operation operation, std::int64_t m, std::int64_t k) {
    Task& task = tasks_.emplace_back();
    task.operation = operation;
    task.device = static_cast<std::uint16_t>(device_of_row(m, devices_));
    task.out = tile(m, k);
    task.urgent = m == k;  // the whole column waits for its diagonal tile
    return task;
  }

  template <class... Ids>
  static void set_inputs(Task& task, Ids... ids) {
    task.input_count = sizeof...(ids);
    std::size_t i = 0;
    ((task.inputs[i++] = ids), ...);
  }

  bool generated_;
  int devices_;
  std::int64_t tiles_;
  std::vector<Task>& tasks_;
};

}  // namespace

std::string Order::name() const {
  return super_tile == 0 ? "column" : fmt::format("super_tile({})", super_tile);
}

Schedule tile_cholesky(const CholeskyProblem& problem, Order order) {
  const std::int64_t n = problem.n;
  const bool generated = problem.point_dimensions > 0;
  Schedule schedule;
  schedule.devices = problem.devices;
  schedule.blocks.add({.name = generated ? "C" : "A",
                       .rows = n,
                       .cols = n,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.tile,
                       .shape = Shape::lower,
                       .precision = problem.precision,
                       .origin = generated ? Origin::generated : Origin::stored});
  schedule.operands = {3};
  if (generated) {
    schedule.blocks.add({.name = "P",
                         .rows = n,
                         .cols = problem.point_dimensions,
                         .tile_rows = problem.tile,
                         .tile_cols = problem.point_dimensions,
                         .precision = problem.precision});
    schedule.operands.push_back(2);
  }
  const std::int64_t tiles = schedule.blocks.block_rows(kMatrixFamily);
  if (order.super_tile == 0) {
    schedule.steps = tiles;
    schedule.emit = [problem, tiles](std::int64_t k, std::vector<Task>& tasks) {
      Emitter(problem, tiles, tasks).column(k);
    };
    return schedule;
  }
  // Step s is a super-tile: block column by block column, from the diagonal down.
  const std::int64_t w = order.super_tile;
  const std::int64_t height = w * problem.devices;
  std::vector<std::pair<std::int64_t, std::int64_t>> corners;
  for (std::int64_t k = 0; k < tiles; k += w) {
    for (std::int64_t m = k; m < tiles; m += height) corners.emplace_back(m, k);
  }
  schedule.steps = static_cast<std::int64_t>(corners.size());
  schedule.emit = [problem, tiles, w, height, corners](std::int64_t s, std::vector<Task>& tasks) {
    const auto [m, k] = corners[static_cast<std::size_t>(s)];
    Emitter(problem, tiles, tasks)
        .super_tile(m, std::min(m + height, tiles), k, std::min(k + w, tiles));
  };
  return schedule;
}

}  // namespace strata
