// Forward substitution that keeps sums instead of its solution.
//
// Method: row by row of tiles, W(m) ← L(m,m)⁻¹·(C(m) − Σ_{k<m} L(m,k)·W(k)), all blocks of targets
// of a row together, so that a tile of L is used for all of them while it is on the device. A row
// is generated when its turn comes, and when it is solved what it adds to the sums is added; the
// rows above are let go of in the last row.

#include "cholesky/whitened_sums.hpp"

#include <algorithm>

#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/column_squares.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/trsm.hpp"
#include "schedule/row_owners.hpp"

namespace strata {
namespace {

/// Emits the tasks of one row of tiles.
class WhitenedSumsEmitter {
 public:
  WhitenedSumsEmitter(const WhitenedProblem& problem, int device, std::int64_t m, bool last,
                      std::int64_t cols, TaskList& tasks)
      : problem_(problem), device_(device), m_(m), last_(last), cols_(cols), tasks_(tasks) {}

  void row() {
    for (std::int64_t c = 0; c < cols_; ++c) {
      emit(covariance,
           {w(m_, c), BlockId(whitened::kPoints, m_, 0), BlockId(whitened::kTargets, c, 0)});
    }
    const Hint above = last_ ? Hint::last_use : Hint::none;
    for (std::int64_t k = 0; k < m_; ++k) {
      if (!problem_.formats.exists(m_, k)) continue;
      for (std::int64_t c = 0; c < cols_; ++c) emit(gemm, {w(m_, c), l(m_, k), {w(k, c), above}});
    }
    for (std::int64_t c = 0; c < cols_; ++c) emit(trsm, {w(m_, c), l(m_, m_)});
    for (std::int64_t c = 0; c < cols_; ++c) add_up(c);
  }

 private:
  static BlockId l(std::int64_t m, std::int64_t k) { return {whitened::kFactor, m, k}; }
  static BlockId w(std::int64_t m, std::int64_t c) { return {whitened::kWhitened, m, c}; }

  void add_up(std::int64_t c) {
    const Hint sum = last_ ? Hint::last_write : Hint::none;
    if (problem_.columns > 0) {
      emit(gemm,
           {{BlockId(whitened::kProducts, c, 0), sum}, w(m_, c), BlockId(whitened::kRight, m_, 0)},
           kTransposeA);
    }
    emit(column_squares, {{BlockId(whitened::kSquares, c, 0), sum},
                          {w(m_, c), last_ ? Hint::last_use : Hint::none}});
  }

  void emit(const Operation& operation, std::initializer_list<TaskOperand> operands,
            std::uint32_t variant = 0) {
    tasks_.add(operation, device_, operands, variant);
  }

  const WhitenedProblem& problem_;
  int device_;
  std::int64_t m_;
  bool last_;
  std::int64_t cols_;
  TaskList& tasks_;
};

/// A family of `rows` × `cols` elements, cut along the rows alone.
BlockFamily strip(const char* name, std::int64_t rows, std::int64_t cols, std::int64_t tile_rows,
                  Element element) {
  return {.name = name,
          .rows = rows,
          .cols = cols,
          .tile_rows = tile_rows,
          .tile_cols = std::max<std::int64_t>(cols, 1),
          .element = element};
}

void add_blocks(const WhitenedProblem& problem, Schedule& schedule) {
  const std::int64_t d = problem.point_dimensions;
  const Element element = problem.precision;
  schedule.blocks.add(
      family_of_factor(problem.n, problem.tile, element, problem.formats, problem.factor_identity));
  schedule.blocks.add({.name = "W",
                       .rows = problem.n,
                       .cols = problem.targets,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.target_tile,
                       .element = element,
                       .origin = Origin::temporary});
  BlockFamily points = strip("P", problem.n, d, problem.tile, element);
  points.identity = problem.points_identity;
  schedule.blocks.add(std::move(points));
  schedule.blocks.add(strip("Q", problem.targets, d, problem.target_tile, element));
  schedule.blocks.add(strip("R", problem.n, problem.columns, problem.tile, element));
  schedule.blocks.add(strip("G", problem.targets, problem.columns, problem.target_tile, element));
  schedule.blocks.add(strip("S", problem.targets, 1, problem.target_tile, Element::fp64));
  schedule.operands = {1, problem.tile < problem.n ? 2 : 1, 1, 1, 1, 1, 1};
}

}  // namespace

Schedule whitened_sums(const WhitenedProblem& problem) {
  Schedule schedule;
  schedule.devices = problem.devices;
  add_blocks(problem, schedule);
  const std::int64_t cols = schedule.blocks.block_cols(whitened::kWhitened);
  schedule.steps = cols == 0 ? 0 : schedule.blocks.block_rows(whitened::kWhitened);
  const RowOwners owners(schedule.steps, problem.devices, problem.rates);
  schedule.emit = [problem, owners, cols, rows = schedule.steps](std::int64_t m, TaskList& tasks) {
    WhitenedSumsEmitter(problem, owners[m], m, m == rows - 1, cols, tasks).row();
  };
  return schedule;
}

}  // namespace strata
