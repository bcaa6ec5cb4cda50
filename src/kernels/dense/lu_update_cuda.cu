// lu_update on the GPU: exchanges of up to kMovesMost columns of the panel at once, solves and
// products by lu_columns_cuda.cu, of transposed panels by cuBLAS; solves of few columns by
// solve_columns_cuda.cu.

#include "kernels/dense/lu_update.hpp"

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/factor_op_cuda.hpp"
#include "kernels/dense/lu_columns_cuda.hpp"

namespace strata {

template <class T>
void lu_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  using lu_cuda::kMovesMost;
  require_variant(lu_update, parameters.variant, kFactorVariants | kProductsOfHalves);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const bool halves = (parameters.variant & kProductsOfHalves) != 0;
  const cublasOperation_t op = blas::op_of_factor<T>(parameters.variant & kFactorVariants);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    const std::int64_t first = diagonal_row(x[1], x[0]);
    const auto panel = matrix_of<const T>(x[1]);
    const auto all = matrix_of<T>(x[0]);
    const std::int64_t b = panel.cols;
    if (b == 0 || all.cols == 0) continue;
    const std::int64_t above = diagonal_row(x[1], x[1]);
    const auto l = panel.block(above, 0, panel.rows - above, b);
    const auto target = all.block(first, 0, all.rows - first, all.cols);
    const auto* pivots = static_cast<const std::int64_t*>(x[2].data);
    const auto scratch = [&] {
      return static_cast<lu_cuda::RowMoves*>(
          cuda.scratch(static_cast<std::int64_t>(sizeof(lu_cuda::RowMoves))));
    };
    const auto move = [&](std::int64_t from, lu_cuda::MoveDirection direction) {
      lu_cuda::RowMoves* const moves = scratch();
      const std::int64_t width = std::min(kMovesMost, b - from);
      lu_cuda::make_moves(cuda.main(), pivots, from, width, moves);
      lu_cuda::move_rows(cuda.main(), moves, from, width, target, direction);
    };
    if (op == CUBLAS_OP_N) {
      const bool few = blas::is_few_columns<T>(all.cols) && b > lu_cuda::kSolvedAtOnce;
      if (b <= kMovesMost && !few) {
        lu_cuda::RowMoves* const moves = scratch();
        lu_cuda::make_moves(cuda.main(), pivots, 0, b, moves);
        lu_cuda::apply_panel(cuda.main(), l, 0, moves, target, halves);
        continue;
      }
      for (std::int64_t from = 0; from < b; from += kMovesMost)
        move(from, lu_cuda::MoveDirection::forward);
      if (few) {
        blas::solve_factor(cuda, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_UNIT, l.block(0, 0, b, b),
                           target.block(0, 0, b, all.cols));
        lu_cuda::subtract_panel(cuda.main(), l, 0, target, halves);
      } else {
        lu_cuda::apply_panel<T>(cuda.main(), l, 0, nullptr, target, halves);
      }
      continue;
    }
    const auto top = target.block(0, 0, b, all.cols);
    if (b < l.rows)
      blas::gemm_minus(cuda.main(), op, CUBLAS_OP_N, l.rows - b, l.block(b, 0, l.rows - b, b),
                       MatrixView<const T>(target.block(b, 0, l.rows - b, all.cols)), top);
    blas::solve_factor(cuda, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_UNIT, l.block(0, 0, b, b),
                       top);
    for (std::int64_t from = (b - 1) / kMovesMost * kMovesMost; from >= 0; from -= kMovesMost)
      move(from, lu_cuda::MoveDirection::back);
  }
}

template void lu_update_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_cuda<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void lu_update_cuda<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
