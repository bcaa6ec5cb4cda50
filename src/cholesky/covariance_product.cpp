// A covariance matrix times a few columns, without the matrix.
//
// Method: Y(m) ← Y(m) − C(m,k)·V(k), row of tiles by row of tiles, k ascending; an element of C is
// generated where it is used (covariance_times). Symmetry would halve the elements to generate, but
// C(m,k)ᵀ·V(m) adds to a row of another device: sums over devices, in an order of their own for
// each number of them. Generation is O(n²) beside the O(n³) of the factorization, so bits that
// never change are worth its second half. A task takes many columns of C, so that a GPU has few
// launches, and only some rows, so that there are tasks for all devices and queues.

#include "cholesky/covariance_product.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "schedule/row_owners.hpp"
#include "session/budget.hpp"

namespace strata {
namespace {

BlockFamily strip(const char* name, const ProductProblem& problem, std::int64_t tile,
                  std::int64_t cols) {
  return {.name = name,
          .rows = problem.n,
          .cols = cols,
          .tile_rows = tile,
          .tile_cols = std::max<std::int64_t>(cols, 1)};
}

void add_blocks(const ProductProblem& problem, Schedule& schedule) {
  schedule.blocks.add(family_of_factor(problem.n, problem.factor_tile, problem.factor_precision,
                                       problem.factor_formats, problem.factor_identity));
  BlockFamily points = strip("P", problem, problem.tile, problem.point_dimensions);
  points.identity = problem.points_identity;
  schedule.blocks.add(std::move(points));
  schedule.blocks.add(strip("Q", problem, problem.column_tile, problem.point_dimensions));
  schedule.blocks.add(strip("V", problem, problem.column_tile, problem.columns));
  schedule.blocks.add(strip("Y", problem, problem.tile, problem.columns));
  schedule.operands = {0, 1, 1, 1, 1};
}

/// Half of a tile of columns, in whole runs.
std::int64_t half_of_runs(std::int64_t columns) {
  return (columns / kCovarianceRun + 1) / 2 * kCovarianceRun;
}

}  // namespace

Schedule covariance_product(const ProductProblem& problem) {
  require(problem.column_tile > 0 && problem.column_tile % kCovarianceRun == 0, ErrorKind::misuse,
          "cholesky", "tiles of {} columns of a covariance are not multiples of {}",
          problem.column_tile, kCovarianceRun);
  Schedule schedule;
  schedule.devices = problem.devices;
  add_blocks(problem, schedule);
  const std::int64_t rows = schedule.blocks.block_rows(product::kProduct);
  const std::int64_t cols = schedule.blocks.block_rows(product::kRight);
  schedule.steps = problem.columns == 0 ? 0 : rows;
  const RowOwners owners(rows, problem.devices, problem.rates);
  schedule.emit = [owners, cols](std::int64_t m, TaskList& tasks) {
    for (std::int64_t k = 0; k < cols; ++k) {
      const Hint sum = k == cols - 1 ? Hint::last_write : Hint::none;
      tasks.add(covariance_times, owners[m],
                {{BlockId(product::kProduct, m, 0), sum},
                 BlockId(product::kRowPoints, m, 0),
                 BlockId(product::kColumnPoints, k, 0),
                 BlockId(product::kRight, k, 0)});
    }
  };
  return schedule;
}

ProductProblem choose_product_tiles(ProductProblem problem, const Machine& machine) {
  constexpr std::int64_t kTileMax = 4096;
  constexpr std::int64_t kRowsWanted = 8;  // of a factor that is one tile, so that queues have work
  constexpr std::int64_t kTileMin = 256;   // for the sake of that
  constexpr std::int64_t kColumnTileMax = 16384;
  constexpr std::int64_t kColumnsMin = 32;  // for which C is worth generating, if there is a choice
  problem.tile = std::max<std::int64_t>(std::min(problem.factor_tile, problem.n), 1);
  problem.column_tile = kColumnTileMax;
  const bool one_tile = problem.tile == problem.n;
  const auto halve = [](std::int64_t& tile) { tile = (tile + 1) / 2; };
  while (problem.tile > kTileMax ||
         (one_tile && problem.tile > kTileMin && problem.tile * kRowsWanted > problem.n)) {
    halve(problem.tile);
  }
  const std::int64_t budget = smallest_memory(machine);
  while (smallest_budget_bytes(covariance_product(problem)) > budget) {
    if (problem.column_tile > kCovarianceRun)
      problem.column_tile = half_of_runs(problem.column_tile);
    else if (problem.columns > kColumnsMin)
      halve(problem.columns);
    else if (problem.tile > kTileMin)
      halve(problem.tile);
    else if (problem.columns > 1)
      halve(problem.columns);
    else if (problem.tile > 1)
      halve(problem.tile);
    else
      break;  // Plan says what it needs
  }
  return problem;
}

}  // namespace strata
