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
#include "kernels/covariance.hpp"
#include "kernels/gemm.hpp"
#include "kernels/potrf.hpp"
#include "kernels/syrk.hpp"
#include "kernels/trsm.hpp"

namespace strata {
namespace {

class Emitter {
 public:
  Emitter(const CholeskyProblem& problem, std::int64_t tiles, TaskList& tasks)
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

  // The tiles of rows m0 … m1−1 and columns k0 … k1−1 on or below the diagonal, in steps: their
  // first touch, the updates from one column on their left, and what they do among themselves.
  void super_tile_begin(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) {
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = std::max(m0, k); m < m1; ++m) first_touch(m, k);
    }
  }
  void super_tile_update(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1,
                         std::int64_t j) {
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = std::max(m0, k); m < m1; ++m) update(m, k, j);
    }
  }
  void super_tile_end(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) {
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = std::max(m0, k); m < m1; ++m) {
        for (std::int64_t j = k0; j < k; ++j) update(m, k, j);
        finish(m, k);
      }
    }
  }

 private:
  static BlockId tile(std::int64_t m, std::int64_t k) { return {kMatrixFamily, m, k}; }

  void first_touch(std::int64_t m, std::int64_t k) {
    if (!generated_) return;
    emit(covariance, m, k, {tile(m, k), BlockId(kPointsFamily, m, 0), BlockId(kPointsFamily, k, 0)});
  }

  void update(std::int64_t m, std::int64_t k, std::int64_t j) {
    if (m == k) {
      emit(syrk, m, k, {tile(m, k), tile(m, j)});
    } else {
      emit(gemm, m, k, {tile(m, k), tile(m, j), tile(k, j)}, kTransposeB);
    }
  }

  /// The diagonal tile is retained until the last solve of its column on the device (policy v3).
  void finish(std::int64_t m, std::int64_t k) {
    const Hint stay = last_of_its_device(m) ? Hint::release : Hint::retain;
    if (m == k) {
      const BlockId status(kStatusFamily, 0, k);
      emit(potrf, m, k, {{tile(k, k), Hint::last_write | stay}, {status, Hint::last_write}});
    } else {
      emit(trsm, m, k, {{tile(m, k), Hint::last_write}, {tile(k, k), stay}},
           kRightSide | kTransposeL);
    }
  }

  /// No row below `m` is of the same device.
  [[nodiscard]] bool last_of_its_device(std::int64_t m) const {
    const int device = device_of_row(m, devices_);
    for (std::int64_t below = m + 1; below < std::min(tiles_, m + 2 * devices_); ++below) {
      if (device_of_row(below, devices_) == device) return false;
    }
    return true;
  }

  void emit(const Operation& operation, std::int64_t m, std::int64_t k,
            std::initializer_list<TaskOperand> operands, std::uint32_t variant = 0) {
    Task& task = tasks_.add(operation, device_of_row(m, devices_), operands, variant);
    task.urgent = m == k;  // the whole column waits for its diagonal tile
  }

  bool generated_;
  int devices_;
  std::int64_t tiles_;
  TaskList& tasks_;
};

/// A step of the super-tile order: a corner, and which of the steps of its super-tile.
struct SuperTileStep {
  std::int64_t m;
  std::int64_t k;
  std::int64_t j;  // −1: begin; k: end; else the column that updates
};

std::vector<SuperTileStep> super_tile_steps(std::int64_t tiles, std::int64_t width,
                                            std::int64_t height, bool generated) {
  std::vector<SuperTileStep> steps;
  for (std::int64_t k = 0; k < tiles; k += width) {
    for (std::int64_t m = k; m < tiles; m += height) {
      for (std::int64_t j = generated ? -1 : 0; j <= k; ++j) steps.push_back({m, k, j});
    }
  }
  return steps;
}

Schedule without_tasks(const CholeskyProblem& problem) {
  const bool generated = problem.point_dimensions > 0;
  Schedule schedule;
  schedule.devices = problem.devices;
  schedule.blocks.add({.name = generated ? "C" : "A",
                       .rows = problem.n,
                       .cols = problem.n,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.tile,
                       .shape = Shape::lower,
                       .element = problem.precision,
                       .origin = generated ? Origin::generated : Origin::stored,
                       .identity = problem.factor_identity});
  schedule.blocks.add({.name = "S",
                       .rows = kStatusRows,
                       .cols = schedule.blocks.block_rows(kMatrixFamily),
                       .tile_rows = kStatusRows,
                       .tile_cols = 1,
                       .origin = Origin::generated});
  schedule.operands = {3, 1};
  if (generated) {
    schedule.blocks.add({.name = "P",
                         .rows = problem.n,
                         .cols = problem.point_dimensions,
                         .tile_rows = problem.tile,
                         .tile_cols = problem.point_dimensions,
                         .element = problem.precision,
                         .identity = problem.points_identity});
    schedule.operands.push_back(2);
  }
  return schedule;
}

}  // namespace

std::string Order::name() const {
  return super_tile == 0 ? "column" : fmt::format("super_tile({})", super_tile);
}

Schedule tile_cholesky(const CholeskyProblem& problem, Order order) {
  Schedule schedule = without_tasks(problem);
  const std::int64_t tiles = schedule.blocks.block_rows(kMatrixFamily);
  if (order.super_tile == 0) {
    schedule.steps = tiles;
    schedule.emit = [problem, tiles](std::int64_t k, TaskList& tasks) {
      Emitter(problem, tiles, tasks).column(k);
    };
    return schedule;
  }
  // Super-tile by super-tile: block column by block column, from the diagonal down.
  const std::int64_t w = order.super_tile;
  const std::int64_t height = w * problem.devices;
  auto steps = super_tile_steps(tiles, w, height, problem.point_dimensions > 0);
  schedule.steps = std::ssize(steps);
  schedule.emit = [problem, tiles, w, height, steps = std::move(steps)](std::int64_t s,
                                                                        TaskList& tasks) {
    const auto [m, k, j] = steps[static_cast<std::size_t>(s)];
    const std::int64_t m1 = std::min(m + height, tiles);
    const std::int64_t k1 = std::min(k + w, tiles);
    Emitter emitter(problem, tiles, tasks);
    if (j < 0) {
      emitter.super_tile_begin(m, m1, k, k1);
    } else if (j < k) {
      emitter.super_tile_update(m, m1, k, k1, j);
    } else {
      emitter.super_tile_end(m, m1, k, k1);
    }
  };
  return schedule;
}

}  // namespace strata
