// Columns of the inverse of a triangle, of which only the lengths are kept.
//
// Method: row by row of tiles, W(m) ← L(m,m)⁻¹·(I(m) − Σ_{k<m} L(m,k)·W(k)), for the blocks of
// columns that begin at or above row m; the others are zero there. All blocks of a row together, so
// that a tile of L is used for all of them while it is on the device. For all n columns that is
// n³/3 operations, those of LAPACK's trtri.

#include "cholesky/inverse_diagonal.hpp"

#include <algorithm>

#include "kernels/dense/column_squares.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/laset.hpp"
#include "kernels/dense/trsm.hpp"
#include "schedule/row_owners.hpp"

namespace strata {
namespace {

BlockId l(std::int64_t m, std::int64_t k) { return {inverse::kFactor, m, k}; }

/// Which blocks of W there are, and where.
struct InverseColumns {
  std::vector<std::int64_t> top;    ///< first row of tiles of each block column
  std::vector<std::int64_t> start;  ///< number of its first block
  std::vector<BlockExtent> extents;

  explicit InverseColumns(const InverseProblem& p) {
    const std::int64_t rows = (p.n + p.tile - 1) / p.tile;
    for (std::int64_t col = p.first; col < p.first + p.columns; col += p.column_tile) {
      top.push_back(col / p.tile);
      start.push_back(std::ssize(extents));
      const std::int64_t cols = std::min(p.column_tile, p.first + p.columns - col);
      for (std::int64_t m = top.back(); m < rows; ++m)
        extents.push_back({m * p.tile, col, std::min(p.tile, p.n - m * p.tile), cols});
    }
  }
  [[nodiscard]] std::int64_t count() const { return std::ssize(top); }
  [[nodiscard]] BlockId block(std::int64_t m, std::int64_t c) const {
    const auto k = static_cast<std::size_t>(c);
    return {inverse::kColumns, start[k] + m - top[k], 0};
  }
};

/// The tasks of row m of tiles.
void emit_row(const InverseColumns& columns, const TileFormats& formats, int device, std::int64_t m,
              bool last, TaskList& tasks) {
  const auto begun = [&](std::int64_t k, auto&& each) {  // the blocks that reach up to row k
    for (std::int64_t c = 0; c < columns.count(); ++c)
      if (columns.top[static_cast<std::size_t>(c)] <= k) each(c);
  };
  const Hint above = last ? Hint::last_use : Hint::none;
  begun(m, [&](std::int64_t c) { tasks.add(laset, device, {columns.block(m, c)}); });
  for (std::int64_t k = columns.top.front(); k < m; ++k) {
    if (!formats.exists(m, k)) continue;
    begun(k, [&](std::int64_t c) {
      tasks.add(gemm, device, {columns.block(m, c), l(m, k), {columns.block(k, c), above}});
    });
  }
  begun(m, [&](std::int64_t c) { tasks.add(trsm, device, {columns.block(m, c), l(m, m)}); });
  begun(m, [&](std::int64_t c) {
    tasks.add(column_squares, device,
              {{BlockId(inverse::kSquares, c, 0), last ? Hint::last_write : Hint::none},
               {columns.block(m, c), above}});
  });
}

void add_blocks(const InverseProblem& problem, const InverseColumns& columns, Schedule& schedule) {
  schedule.blocks.add(family_of_factor(problem.n, problem.tile, problem.precision, problem.formats,
                                       problem.factor_identity));
  schedule.blocks.add({.name = "W",
                       .element = problem.precision,
                       .origin = Origin::temporary,
                       .listed = columns.extents});
  schedule.blocks.add({.name = "S",
                       .rows = problem.columns,
                       .cols = 1,
                       .tile_rows = problem.column_tile,
                       .tile_cols = 1,
                       .element = Element::fp64});
  schedule.operands = {1, problem.tile < problem.n ? 2 : 1, 1};
  if (problem.point_dimensions == 0) return;
  schedule.blocks.add({.name = "P",
                       .rows = problem.n,
                       .cols = problem.point_dimensions,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.point_dimensions,
                       .element = problem.precision,
                       .identity = problem.points_identity});
  schedule.operands.push_back(0);
}

}  // namespace

Schedule inverse_diagonal(const InverseProblem& problem) {
  Schedule schedule;
  schedule.devices = problem.devices;
  const InverseColumns columns(problem);
  add_blocks(problem, columns, schedule);
  if (columns.count() == 0) return schedule;
  const std::int64_t rows = (problem.n + problem.tile - 1) / problem.tile;
  const std::int64_t first = columns.top.front();
  schedule.steps = rows - first;
  const RowOwners owners(rows, problem.devices, problem.rates);
  schedule.emit = [columns, formats = problem.formats, owners, first, rows](std::int64_t step,
                                                                            TaskList& tasks) {
    const std::int64_t m = first + step;
    emit_row(columns, formats, owners[m], m, m == rows - 1, tasks);
  };
  return schedule;
}

}  // namespace strata
