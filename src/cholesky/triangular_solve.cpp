// Triangular solves and products, row by row of tiles.
//
// Method: forward, X(m) ← L(m,m)⁻¹·(X(m) − Σ_{k<m} L(m,k)·X(k)); backward, X(m) ← L(m,m)⁻ᵀ·(X(m) −
// Σ_{k>m} L(k,m)ᵀ·X(k)); multiply, from the last row up, so that the rows above are still those of
// the operand, X(m) ← −L(m,m)·X(m) − Σ_{k<m} L(m,k)·X(k), and with Lᵀ from the first row down,
// X(m) ← −L(m,m)ᵀ·X(m) − Σ_{k>m} L(k,m)ᵀ·X(k). The row that is being computed is the accumulator,
// so every block of X is written once and every tile of L is used for all columns of X while it is
// on the device.
//
// Right-looking, column by column of tiles: X(k) is solved, then subtracted from all rows that wait
// for it, in tasks of many products. A row has its products subtracted in the same order, k
// ascending or descending. The next row to be solved comes first, in a task of its own: the chain
// of the solves is the critical path.

#include "cholesky/triangular_solve.hpp"

#include <algorithm>
#include <vector>

#include "kernels/dense/gemm.hpp"
#include "kernels/dense/trmm.hpp"
#include "kernels/dense/trsm.hpp"
#include "schedule/row_owners.hpp"

namespace strata {
namespace {

/// Emits the tasks of one row of tiles.
class TriangularSolveEmitter {
 public:
  TriangularSolveEmitter(const RowOwners& owners, const SolveProblem& problem, std::int64_t rows,
                         std::int64_t cols, TaskList& tasks)
      : owners_(owners),
        formats_(problem.formats),
        devices_(problem.devices),
        at_once_(static_cast<std::size_t>(problem.products_at_once)),
        rows_(rows),
        cols_(cols),
        tasks_(tasks) {}

  /// `last`: X is not written again by another sweep.
  void forward(std::int64_t m, bool last) {
    for (std::int64_t k = 0; k < m; ++k) {
      if (!formats_.exists(m, k)) continue;
      for (std::int64_t c = 0; c < cols_; ++c) {
        emit(gemm, m, {x(m, c), l(m, k), x(k, c)});
      }
    }
    finish(m, 0, last);
  }

  void backward(std::int64_t m) {
    for (std::int64_t k = rows_ - 1; k > m; --k) {
      if (!formats_.exists(k, m)) continue;
      for (std::int64_t c = 0; c < cols_; ++c) {
        emit(gemm, m, {x(m, c), l(k, m), x(k, c)}, kTransposeA);
      }
    }
    finish(m, kTransposeL, true);
  }

  /// Right-looking: what is after row k in the substitution waits for it.
  void forward_column(std::int64_t k, bool last) {
    finish(k, 0, last);
    if (k + 1 < rows_) subtract(k, k + 1, k + 2, 0);
    if (k + 2 < rows_) subtract(k, k + 2, rows_, 0);
  }

  void backward_column(std::int64_t k) {
    finish(k, kTransposeL, true);
    if (k > 0) subtract(k, k - 1, k, kTransposeA);
    if (k > 1) subtract(k, 0, k - 1, kTransposeA);
  }

  void multiply(std::int64_t m) {
    std::int64_t last = m - 1;
    while (last >= 0 && !formats_.exists(m, last)) --last;
    const auto hint = [last](std::int64_t k) { return k == last ? Hint::last_write : Hint::none; };
    for (std::int64_t c = 0; c < cols_; ++c) emit(trmm, m, {{x(m, c), hint(-1)}, l(m, m)});
    for (std::int64_t k = 0; k <= last; ++k) {
      if (!formats_.exists(m, k)) continue;
      for (std::int64_t c = 0; c < cols_; ++c)
        emit(gemm, m, {{x(m, c), hint(k)}, l(m, k), x(k, c)});
    }
  }

  void multiply_transposed(std::int64_t m) {
    std::int64_t last = rows_;
    for (std::int64_t k = m + 1; k < rows_; ++k) {
      if (formats_.exists(k, m)) last = k;
    }
    const auto hint = [&](bool ends) { return ends ? Hint::last_write : Hint::none; };
    for (std::int64_t c = 0; c < cols_; ++c)
      emit(trmm, m, {{x(m, c), hint(last == rows_)}, l(m, m)}, kTransposeL);
    for (std::int64_t k = m + 1; k < rows_; ++k) {
      if (!formats_.exists(k, m)) continue;
      for (std::int64_t c = 0; c < cols_; ++c)
        emit(gemm, m, {{x(m, c), hint(k == last)}, l(k, m), x(k, c)}, kTransposeA);
    }
  }

 private:
  static BlockId l(std::int64_t m, std::int64_t k) { return {kFactorFamily, m, k}; }
  static BlockId x(std::int64_t m, std::int64_t c) { return {kSolutionFamily, m, c}; }

  void finish(std::int64_t m, std::uint32_t variant, bool last) {
    const Hint hint = last ? Hint::last_write : Hint::none;
    for (std::int64_t c = 0; c < cols_; ++c) emit(trsm, m, {{x(m, c), hint}, l(m, m)}, variant);
  }

  /// X(m) ← X(m) − op(L)·X(k) for rows begin ≤ m < end: a task has calls of one device and one
  /// element of L.
  void subtract(std::int64_t k, std::int64_t begin, std::int64_t end, std::uint32_t variant) {
    const bool transposed = variant == kTransposeA;
    std::vector<TaskOperand> calls;
    const auto flush = [&](int device) {
      if (!calls.empty()) tasks_.add_calls(gemm, device, calls, variant);
      calls.clear();
    };
    for (int device = 0; device < devices_; ++device) {
      for (int p = 0; p < static_cast<int>(TilePrecision::none); ++p) {
        for (std::int64_t m = begin; m < end; ++m) {
          const BlockId tile = transposed ? l(k, m) : l(m, k);
          if (owners_[m] != device || static_cast<int>(precision_of(m, k)) != p) continue;
          for (std::int64_t c = 0; c < cols_; ++c) {
            calls.insert(calls.end(), {x(m, c), tile, x(k, c)});
            if (calls.size() >= 3 * at_once_) flush(device);
          }
        }
        flush(device);
      }
    }
  }
  [[nodiscard]] TilePrecision precision_of(std::int64_t m, std::int64_t k) const {
    if (formats_.map == nullptr) return TilePrecision::fp64;
    return formats_.map->stored(std::max(m, k), std::min(m, k));
  }

  void emit(const Operation& operation, std::int64_t m, std::initializer_list<TaskOperand> operands,
            std::uint32_t variant = 0) {
    tasks_.add(operation, owners_[m], operands, variant);
  }

  const RowOwners& owners_;
  const TileFormats& formats_;
  int devices_;
  std::size_t at_once_;
  std::int64_t rows_;
  std::int64_t cols_;
  TaskList& tasks_;
};

void add_blocks(const SolveProblem& problem, Schedule& schedule) {
  schedule.blocks.add(family_of_factor(problem.n, problem.tile, problem.precision, problem.formats,
                                       problem.factor_identity));
  schedule.blocks.add({.name = "X",
                       .rows = problem.n,
                       .cols = problem.rhs,
                       .tile_rows = problem.tile,
                       .tile_cols = problem.rhs_tile,
                       .element = problem.precision});
  schedule.operands = {1, problem.tile < problem.n ? 2 : 1};
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

Schedule triangular_solve(const SolveProblem& problem, Sweep sweep) {
  Schedule schedule;
  schedule.devices = problem.devices;
  add_blocks(problem, schedule);
  const std::int64_t rows = schedule.blocks.block_rows(kSolutionFamily);
  const std::int64_t cols = schedule.blocks.block_cols(kSolutionFamily);
  const bool both = sweep == Sweep::both;
  schedule.steps = cols == 0 ? 0 : both ? 2 * rows : rows;
  const RowOwners owners(rows, problem.devices, problem.rates);
  const bool looks_right = problem.products_at_once > 0;
  if (looks_right && sweep != Sweep::multiply && sweep != Sweep::multiply_transposed) {
    const std::int64_t calls = std::min(problem.products_at_once, rows * cols);
    schedule.operands[kFactorFamily] = static_cast<int>(std::max<std::int64_t>(calls, 1));
    schedule.operands[kSolutionFamily] = static_cast<int>(calls + cols);
  }
  schedule.emit = [owners, problem, rows, cols, sweep, both, looks_right](std::int64_t step,
                                                                          TaskList& tasks) {
    TriangularSolveEmitter emitter(owners, problem, rows, cols, tasks);
    const std::int64_t back = rows - 1 - step % rows;
    if (sweep == Sweep::multiply) {
      emitter.multiply(rows - 1 - step);
    } else if (sweep == Sweep::multiply_transposed) {
      emitter.multiply_transposed(step);
    } else if (sweep == Sweep::forward || (both && step < rows)) {
      looks_right ? emitter.forward_column(step, !both) : emitter.forward(step, !both);
    } else {
      looks_right ? emitter.backward_column(back) : emitter.backward(back);
    }
  };
  return schedule;
}

}  // namespace strata
