// A covariance matrix times a few columns, without the matrix.
//
// Method: Y(m) ← Y(m) − Σ_k C(m,k)·V(k), some rows m of tiles at once and k ascending, each C(m,k)
// generated, used and let go of. Symmetry would halve the tiles to generate, but C(m,k)ᵀ·V(m) adds
// to a row of another device: sums over devices, in an order of their own for each number of them.
// Generation is O(n²) beside the O(n³) of the factorization, so bits that never change are worth
// its second half. The names of the tiles of C are used again and again: there are two for each
// row that is computed at once, and what they are called has no say in what slot they lie.

#include "cholesky/covariance_product.hpp"

#include <algorithm>
#include <chrono>

#include "cholesky/row_owners.hpp"
#include "kernels/covariance.hpp"
#include "kernels/gemm.hpp"
#include "session/budget.hpp"
#include "session/policy.hpp"

namespace strata {
namespace {

constexpr std::int64_t kNamesOfARow = 2;

/// The tiles along one side of C: those of full size, and the elements of a last, smaller one.
struct Cut {
  std::int64_t tile;
  std::int64_t full;
  std::int64_t rest;

  [[nodiscard]] std::int64_t count() const { return full + (rest > 0 ? 1 : 0); }
  /// Elements of a side of `names` blocks of full size with the smaller one behind them.
  [[nodiscard]] std::int64_t folded(std::int64_t names) const {
    return std::min(names, full) * tile + rest;
  }
  /// Where tile i lies there.
  [[nodiscard]] std::int64_t fold(std::int64_t i, std::int64_t names) const {
    return i < full ? i % names : std::min(names, full);
  }
};

Cut cut_of(const ProductProblem& problem) {
  return {problem.tile, problem.n / problem.tile, problem.n % problem.tile};
}

/// Emits the tasks of rows first … last − 1 of tiles.
void emit_rows(const ProductProblem& problem, const RowOwners& owners, std::int64_t first,
               std::int64_t last, TaskList& tasks) {
  const Cut cut = cut_of(problem);
  for (std::int64_t k = 0; k < cut.count(); ++k) {
    const Hint sum = k == cut.count() - 1 ? Hint::last_write : Hint::none;
    for (std::int64_t m = first; m < last; ++m) {
      const BlockId c(product::kCovariance, cut.fold(m, problem.rows_at_once),
                      cut.fold(k, kNamesOfARow));
      tasks.add(covariance, owners[m],
                {c, BlockId(product::kPoints, m, 0), BlockId(product::kPoints, k, 0)});
      tasks.add(gemm, owners[m],
                {{BlockId(product::kProduct, m, 0), sum},
                 {c, Hint::last_use},
                 BlockId(product::kRight, k, 0)});
    }
  }
}

BlockFamily strip(const char* name, const ProductProblem& problem, std::int64_t cols) {
  return {.name = name,
          .rows = problem.n,
          .cols = cols,
          .tile_rows = problem.tile,
          .tile_cols = std::max<std::int64_t>(cols, 1)};
}

void add_blocks(const ProductProblem& problem, Schedule& schedule) {
  const Cut cut = cut_of(problem);
  schedule.blocks.add(
      {.name = "L",
       .rows = problem.n,
       .cols = problem.n,
       .tile_rows = problem.factor_tile,
       .tile_cols = problem.factor_tile,
       .shape = Shape::lower,
       .element = problem.factor_precision,
       .identity = problem.factor_identity,
       .stays = problem.factor_formats.map != nullptr && problem.factor_identity != 0,
       .elements = problem.factor_formats.elements()});
  schedule.blocks.add({.name = "C",
                       .rows = cut.folded(problem.rows_at_once),
                       .cols = cut.folded(kNamesOfARow),
                       .tile_rows = problem.tile,
                       .tile_cols = problem.tile,
                       .origin = Origin::temporary});
  BlockFamily points = strip("P", problem, problem.point_dimensions);
  points.identity = problem.points_identity;
  schedule.blocks.add(std::move(points));
  schedule.blocks.add(strip("V", problem, problem.columns));
  schedule.blocks.add(strip("Y", problem, problem.columns));
  schedule.operands = {0, 1, problem.tile < problem.n ? 2 : 1, 1, 1};
}

}  // namespace

Schedule covariance_product(const ProductProblem& problem) {
  Schedule schedule;
  schedule.devices = problem.devices;
  add_blocks(problem, schedule);
  const std::int64_t rows = schedule.blocks.block_rows(product::kProduct);
  const std::int64_t at_once = problem.rows_at_once;
  schedule.steps = problem.columns == 0 ? 0 : (rows + at_once - 1) / at_once;
  const RowOwners owners(rows, problem.devices, problem.rates);
  schedule.emit = [problem, owners, rows, at_once](std::int64_t step, TaskList& tasks) {
    emit_rows(problem, owners, step * at_once, std::min((step + 1) * at_once, rows), tasks);
  };
  return schedule;
}

std::int64_t choose_product_tile(ProductProblem problem, const Machine& machine) {
  constexpr std::int64_t kTileMax = 4096;
  constexpr std::int64_t kRowsWanted = 8;  // of a factor that is one tile, so that queues have work
  constexpr std::int64_t kTileMin = 256;   // for the sake of that
  const std::int64_t budget = smallest_memory(machine);
  problem.tile = std::max<std::int64_t>(std::min(problem.factor_tile, problem.n), 1);
  const bool one_tile = problem.tile == problem.n;
  const auto is_too_large = [&] {
    return problem.tile > kTileMax ||
           (one_tile && problem.tile > kTileMin && problem.tile * kRowsWanted > problem.n) ||
           smallest_budget_bytes(covariance_product(problem)) > budget;
  };
  while (problem.tile > 1 && is_too_large()) problem.tile = (problem.tile + 1) / 2;
  return problem.tile;
}

PlannedRun plan_covariance_product(const ProductProblem& problem, const Machine& machine,
                                   Policy policy, Residency start, HomeModel homes) {
  const auto begin = std::chrono::steady_clock::now();
  PlanOptions options = options_of(policy);
  options.homes = std::move(homes);
  PlannedRun planned =
      make_planned_run(std::make_shared<const Schedule>(covariance_product(problem)), machine,
                       options, to_string(policy), std::move(start));
  planned.n = problem.n;
  planned.tile = problem.tile;
  // The least, from empty devices: points, V and Y once in, Y once out.
  const BlockTable& blocks = planned.plan->schedule().blocks;
  planned.floor_bytes = blocks.total_bytes(product::kPoints) + blocks.total_bytes(product::kRight) +
                        2 * blocks.total_bytes(product::kProduct);
  planned.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return planned;
}

}  // namespace strata
