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
#include "cholesky/tile_tasks.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "schedule/last_uses.hpp"
#include "schedule/row_owners.hpp"

namespace strata {
namespace {

/// All tiles in one precision.
class UniformTiles final : public TileTasks {
 public:
  UniformTiles(const CholeskyProblem& problem, const RowOwners& owners)
      : generated_(problem.point_dimensions > 0), owners_(owners) {}

  void first_touch(TaskList& tasks, std::int64_t m, std::int64_t k) const override {
    if (!generated_) return;
    emit(tasks, covariance, m, k,
         {tile(m, k), BlockId(kPointsFamily, m, 0), BlockId(kPointsFamily, k, 0)});
  }

  void update(TaskList& tasks, std::int64_t m, std::int64_t k, std::int64_t j,
              Hint hint) const override {
    if (m == k) {
      emit(tasks, syrk, m, k, {{tile(m, k), hint}, tile(m, j)});
    } else {
      emit(tasks, gemm, m, k, {{tile(m, k), hint}, tile(m, j), tile(k, j)}, kTransposeB);
    }
  }

  /// The diagonal tile is retained until the last solve of its column on the device (policy v3).
  void finish(TaskList& tasks, std::int64_t m, std::int64_t k) const override {
    const Hint stay = owners_.is_last_of_its_device(m) ? Hint::release : Hint::retain;
    if (m == k) {
      const BlockId status(kStatusFamily, 0, k);
      emit(tasks, potrf, m, k, {{tile(k, k), Hint::last_write | stay}, {status, Hint::last_write}});
    } else {
      emit(tasks, trsm, m, k, {{tile(m, k), Hint::last_write}, {tile(k, k), stay}},
           kRightSide | kTransposeL);
    }
  }

 private:
  static BlockId tile(std::int64_t m, std::int64_t k) { return {kMatrixFamily, m, k}; }

  void emit(TaskList& tasks, const Operation& operation, std::int64_t m, std::int64_t k,
            std::initializer_list<TaskOperand> operands, std::uint32_t variant = 0) const {
    Task& task = tasks.add(operation, owners_[m], operands, variant);
    task.urgent = m == k;  // the whole column waits for its diagonal tile
  }

  bool generated_;
  RowOwners owners_;
};

class TileCholeskyEmitter {
 public:
  /// `done`: tiles that are there already.
  TileCholeskyEmitter(const TileTasks& tiles_tasks, std::int64_t tiles,
                      const std::vector<bool>* done, TaskList& tasks)
      : does_(tiles_tasks), tiles_(tiles), done_(done), tasks_(tasks) {}

  void column(std::int64_t k) {
    for (std::int64_t m = k; m < tiles_; ++m) {
      if (is_done(m, k)) continue;
      does_.first_touch(tasks_, m, k);
      for (std::int64_t j = 0; j < k; ++j) does_.update(tasks_, m, k, j, Hint::none);
      does_.finish(tasks_, m, k);
    }
  }

  // The tiles of rows m0 … m1−1 and columns k0 … k1−1 on or below the diagonal, in steps: their
  // first touch, the updates from one column on their left, and what they do among themselves.
  void block_begin(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) {
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = std::max(m0, k); m < m1; ++m) {
        if (!is_done(m, k)) does_.first_touch(tasks_, m, k);
      }
    }
  }
  void block_update(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1,
                    std::int64_t j, Hint hint) {
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = std::max(m0, k); m < m1; ++m) {
        if (!is_done(m, k)) does_.update(tasks_, m, k, j, hint);
      }
    }
  }
  void block_end(std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) {
    for (std::int64_t k = k0; k < k1; ++k) {
      for (std::int64_t m = std::max(m0, k); m < m1; ++m) {
        if (is_done(m, k)) continue;
        for (std::int64_t j = k0; j < k; ++j) does_.update(tasks_, m, k, j, Hint::none);
        does_.finish(tasks_, m, k);
      }
    }
  }

 private:
  [[nodiscard]] bool is_done(std::int64_t m, std::int64_t k) const {
    return done_ != nullptr &&
           (*done_)[static_cast<std::size_t>(k * tiles_ - k * (k - 1) / 2 + m - k)];
  }

  const TileTasks& does_;
  std::int64_t tiles_;
  const std::vector<bool>* done_;
  TaskList& tasks_;
};

/// A step of an order by blocks: rows m0 … m1−1 and columns k0 … k1−1 on or below the diagonal, and
/// what of them.
struct BlockStep {
  static constexpr std::int64_t kBegin = -1;   ///< the first touch of its tiles
  static constexpr std::int64_t kColumn = -2;  ///< all of it, a single column
  std::int64_t m0;
  std::int64_t m1;
  std::int64_t k0;
  std::int64_t k1;
  std::int64_t
      what;  ///< one of these; j < k0: updates from column j; k0: what they do among each other
  bool goes_home = false;  ///< the devices make room for others before the next step of the block

  static BlockStep of_column(std::int64_t k, std::int64_t tiles) {
    return {k, tiles, k, k + 1, kColumn};
  }
};

void add_block(std::vector<BlockStep>& steps, BlockStep block, bool generated) {
  for (block.what = generated ? BlockStep::kBegin : 0; block.what <= block.k0; ++block.what)
    steps.push_back(block);
}

/// Super-tile by super-tile: block column by block column, from the diagonal down.
std::vector<BlockStep> super_tile_steps(std::int64_t tiles, std::int64_t width, std::int64_t height,
                                        bool generated) {
  std::vector<BlockStep> steps;
  for (std::int64_t k = 0; k < tiles; k += width) {
    for (std::int64_t m = k; m < tiles; m += height) {
      add_block(steps, {m, std::min(m + height, tiles), k, std::min(k + width, tiles), 0},
                generated);
    }
  }
  return steps;
}

/// Super-tiles of a block of host memory, each with the updates from one group of columns before
/// the next group comes: forwards and backwards in turn, so that the last one stays where it is.
std::vector<BlockStep> two_level_steps(std::int64_t tiles, const Order& order, int devices,
                                       bool generated) {
  const std::int64_t width = order.super_tile;
  const std::int64_t group = std::max<std::int64_t>(order.group, 1);
  std::vector<BlockStep> steps;
  const auto add_updates = [&](BlockStep block, std::int64_t first, std::int64_t end,
                               bool goes_home) {
    if (generated && first == 0) {
      block.what = BlockStep::kBegin;
      steps.push_back(block);
    }
    for (block.what = first; block.what < end; ++block.what) {
      block.goes_home = goes_home && block.what + 1 == end;
      steps.push_back(block);
    }
  };
  for (std::int64_t k0 = 0; k0 < tiles; k0 += order.outer) {
    const std::int64_t k1 = std::min(k0 + order.outer, tiles);
    for (std::int64_t m0 = k0; m0 < tiles; m0 += order.outer * devices) {
      const std::int64_t m1 = std::min(m0 + order.outer * devices, tiles);
      std::vector<BlockStep> inner;
      for (std::int64_t k = k0; k < k1; k += width) {
        for (std::int64_t m = std::max(m0, k); m < m1; m += width * devices)
          inner.push_back({m, std::min(m + width * devices, m1), k, std::min(k + width, k1), 0});
      }
      bool backwards = false;
      for (std::int64_t j = 0; j < k0; j += group, backwards = !backwards) {
        for (std::size_t b = 0; b < inner.size(); ++b)
          add_updates(inner[backwards ? inner.size() - 1 - b : b], j, std::min(j + group, k0),
                      b + 1 < inner.size());
      }
      for (BlockStep block : inner) {
        add_updates(block, k0, block.k0, false);
        block.what = block.k0;
        steps.push_back(block);
      }
    }
  }
  return steps;
}

/// Blocks, columns, one block. The rows of a block are those of whole rounds of the serpentine
/// distribution, so that each device has its share of it.
std::vector<BlockStep> balanced_steps(std::int64_t tiles, int devices, bool generated) {
  const std::int64_t round = 2 * devices;
  const std::int64_t head = std::min(round, tiles);
  const std::int64_t tail = std::max((tiles - devices) / round * round, head);
  std::vector<BlockStep> steps;
  for (std::int64_t m = 0; m < tiles; m += round)
    add_block(steps, {m, std::min(m + round, tiles), 0, head, 0}, generated);
  for (std::int64_t k = head; k < tail; ++k) steps.push_back(BlockStep::of_column(k, tiles));
  if (tail < tiles) add_block(steps, {tail, tiles, tail, tiles, 0}, generated);
  return steps;
}

/// None for column after column, which need no list.
std::vector<BlockStep> steps_of(const CholeskyProblem& problem, Order order, std::int64_t tiles) {
  const bool generated = problem.point_dimensions > 0;
  if (order.outer > order.super_tile)
    return two_level_steps(tiles, order, problem.devices, generated);
  if (order.super_tile > 0) {
    return super_tile_steps(tiles, order.super_tile, order.super_tile * problem.devices, generated);
  }
  if (order.balanced) return balanced_steps(tiles, problem.devices, generated);
  return {};
}

Schedule without_tasks(const CholeskyProblem& problem, Order order) {
  const bool generated = problem.point_dimensions > 0;
  Schedule schedule;
  schedule.devices = problem.devices;
  BlockFamily matrix = family_of_factor(problem.n, problem.tile, problem.precision, problem.formats,
                                        problem.factor_identity);
  matrix.name = std::string(1, generated ? 'C' : 'A');
  matrix.origin = generated ? Origin::generated : Origin::stored;
  matrix.stays = matrix.stays && !order.brings_home;
  schedule.blocks.add(std::move(matrix));
  schedule.blocks.add({.name = "S",
                       .rows = kStatusRows,
                       .cols = schedule.blocks.block_rows(kMatrixFamily),
                       .tile_rows = kStatusRows,
                       .tile_cols = 1,
                       .origin = Origin::generated,
                       .in_storage = problem.durable});
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
  if (problem.formats.map != nullptr) add_mixed_families(problem, schedule);
  return schedule;
}

}  // namespace

std::unique_ptr<const TileTasks> uniform_tile_tasks(const CholeskyProblem& problem,
                                                    const RowOwners& owners) {
  return std::make_unique<const UniformTiles>(problem, owners);
}

std::string Order::name() const {
  const std::string how = outer > super_tile
                              ? fmt::format("super_tile({}) of {} by {}", outer, super_tile, group)
                          : super_tile > 0 ? fmt::format("super_tile({})", super_tile)
                          : balanced       ? "balanced column"
                                           : "column";
  return brings_home ? how + " home" : how;
}

Schedule tile_cholesky(const CholeskyProblem& problem, Order order) {
  Schedule schedule = without_tasks(problem, order);
  const std::int64_t tiles = schedule.blocks.block_rows(kMatrixFamily);
  // Schedules are copied, and tiles may be many.
  const auto steps =
      std::make_shared<const std::vector<BlockStep>>(steps_of(problem, order, tiles));
  schedule.steps = steps->empty() ? tiles : std::ssize(*steps);
  const RowOwners owners(tiles, problem.devices, problem.rates);
  const bool mixed = problem.formats.map != nullptr;
  require(!mixed || (problem.point_dimensions > 0 && problem.formats.map->tiles() == tiles),
          ErrorKind::misuse, "cholesky",
          "a map of precisions of {} rows of tiles does not fit {}, or the matrix is not generated",
          mixed ? problem.formats.map->tiles() : 0, tiles);
  schedule.emit =
      [does = std::shared_ptr<const TileTasks>(mixed ? mixed_tile_tasks(problem, owners)
                                                     : uniform_tile_tasks(problem, owners)),
       tiles, steps, done = problem.done](std::int64_t s, TaskList& tasks) {
        const auto [m0, m1, k0, k1, what, goes_home] =
            steps->empty() ? BlockStep::of_column(s, tiles) : (*steps)[static_cast<std::size_t>(s)];
        TileCholeskyEmitter emitter(*does, tiles, done.get(), tasks);
        if (what == BlockStep::kColumn) {
          emitter.column(k0);
        } else if (what == BlockStep::kBegin) {
          emitter.block_begin(m0, m1, k0, k1);
        } else if (what < k0) {
          emitter.block_update(m0, m1, k0, k1, what, goes_home ? Hint::home : Hint::none);
        } else {
          emitter.block_end(m0, m1, k0, k1);
        }
      };
  return mixed ? with_last_uses(std::move(schedule)) : schedule;
}

}  // namespace strata
