// Triangular solves, row by row of tiles.
//
// Method: forward, X(m) ← L(m,m)⁻¹·(X(m) − Σ_{k<m} L(m,k)·X(k)); backward, X(m) ← L(m,m)⁻ᵀ·(X(m) −
// Σ_{k>m} L(k,m)ᵀ·X(k)). The row that is being computed is the accumulator, so every block of X is
// written once and every tile of L is used for all columns of X while it is on the device.

#include "cholesky/triangular_solve.hpp"

namespace strata {
namespace {

BlockId l(std::int64_t m, std::int64_t k) { return {kFactorFamily, m, k}; }
BlockId x(std::int64_t m, std::int64_t c) { return {kSolutionFamily, m, c}; }

/// Emits the tasks of one row of tiles.
class Emitter {
 public:
  Emitter(const SolveProblem& problem, std::int64_t rows, std::int64_t cols,
          std::vector<Task>& tasks)
      : problem_(problem), rows_(rows), cols_(cols), tasks_(tasks) {}

  void forward(std::int64_t m) {
    if (problem_.point_dimensions > 0) generate(m);
    for (std::int64_t k = 0; k < m; ++k) {
      for (std::int64_t c = 0; c < cols_; ++c) {
        emit(Operation::gemm_left, x(m, c), {l(m, k), x(k, c)}, 2);
      }
    }
    finish(Operation::trsm_left, m);
  }

  void backward(std::int64_t m) {
    for (std::int64_t k = rows_ - 1; k > m; --k) {
      for (std::int64_t c = 0; c < cols_; ++c) {
        emit(Operation::gemm_left_transposed, x(m, c), {l(k, m), x(k, c)}, 2);
      }
    }
    finish(Operation::trsm_left_transposed, m);
  }

 private:
  void generate(std::int64_t m) {
    for (std::int64_t c = 0; c < cols_; ++c) {
      const BlockId row_points(kRowPointsFamily, m, 0);
      const BlockId target_points(kTargetPointsFamily, c, 0);
      emit(Operation::covariance, x(m, c), {row_points, target_points}, 2).access = Access::write;
    }
  }

  void finish(Operation operation, std::int64_t m) {
    for (std::int64_t c = 0; c < cols_; ++c) emit(operation, x(m, c), {l(m, m)}, 1).final = true;
  }

  Task& emit(Operation operation, BlockId out, std::array<BlockId, 2> inputs, int count) {
    Task& task = tasks_.emplace_back();
    task.operation = operation;
    task.device = static_cast<std::uint16_t>(device_of_row(out.row(), problem_.devices));
    task.out = out;
    task.inputs = inputs;
    task.input_count = static_cast<std::uint8_t>(count);
    return task;
  }

  const SolveProblem& problem_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::vector<Task>& tasks_;
};

void add_blocks(const SolveProblem& problem, Schedule& schedule) {
  const std::int64_t d = problem.point_dimensions;
  schedule.blocks.add({.name = "L",
                       .rows = problem.n,
                       .cols = problem.n,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.tile,
                       .shape = Shape::lower,
                       .precision = problem.precision});
  schedule.blocks.add({.name = "X",
                       .rows = problem.n,
                       .cols = problem.rhs,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.rhs_tile,
                       .precision = problem.precision,
                       .origin = d > 0 ? Origin::generated : Origin::stored});
  schedule.operands = {1, problem.tile < problem.n ? 2 : 1};
  if (d == 0) return;
  schedule.blocks.add({.name = "P",
                       .rows = problem.n,
                       .cols = d,
                       .tile_rows = problem.tile,
                       .tile_cols = d,
                       .precision = problem.precision});
  schedule.blocks.add({.name = "Q",
                       .rows = problem.rhs,
                       .cols = d,
                       .tile_rows = problem.rhs_tile,
                       .tile_cols = d,
                       .precision = problem.precision});
  schedule.operands.insert(schedule.operands.end(), {1, 1});
}

}  // namespace

Schedule triangular_solve(const SolveProblem& problem, Sweep sweep) {
  Schedule schedule;
  schedule.devices = problem.devices;
  add_blocks(problem, schedule);
  const std::int64_t rows = schedule.blocks.block_rows(kSolutionFamily);
  const std::int64_t cols = schedule.blocks.block_cols(kSolutionFamily);
  schedule.steps = cols == 0 ? 0 : rows;
  schedule.emit = [problem, rows, cols, sweep](std::int64_t step, std::vector<Task>& tasks) {
    Emitter emitter(problem, rows, cols, tasks);
    sweep == Sweep::forward ? emitter.forward(step) : emitter.backward(rows - 1 - step);
  };
  return schedule;
}

}  // namespace strata
