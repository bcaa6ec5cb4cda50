// lu_update on the GPU: exchanges and solves kPanelColumns columns of the panel at a time, products
// by cuBLAS.

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
  using lu_cuda::kPanelColumns;
  require_variant(lu_update, parameters.variant, kFactorVariants);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const cublasOperation_t op = blas::op_of_factor<T>(parameters.variant);
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
    const std::int64_t panels = (b + kPanelColumns - 1) / kPanelColumns;
    auto* moves = static_cast<lu_cuda::RowMoves*>(
        cuda.scratch(panels * static_cast<std::int64_t>(sizeof(lu_cuda::RowMoves))));
    const auto width = [&](std::int64_t p) {
      return std::min(kPanelColumns, b - p * kPanelColumns);
    };
    for (std::int64_t p = 0; p < panels; ++p)
      lu_cuda::make_moves(cuda.main(), pivots, p * kPanelColumns, width(p), moves + p);
    if (op == CUBLAS_OP_N) {
      lu_cuda::apply_panel(cuda.main(), l, 0, moves, target);
      continue;
    }
    const auto top = target.block(0, 0, b, all.cols);
    if (b < l.rows)
      blas::gemm_minus(cuda.main(), op, CUBLAS_OP_N, l.rows - b, l.block(b, 0, l.rows - b, b),
                       MatrixView<const T>(target.block(b, 0, l.rows - b, all.cols)), top);
    blas::solve_triangle(cuda.main(), CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_UNIT,
                         l.block(0, 0, b, b), top);
    for (std::int64_t p = panels; p-- > 0;)
      lu_cuda::move_rows(cuda.main(), moves + p, p * kPanelColumns, width(p), target,
                         lu_cuda::MoveDirection::back);
  }
}

template void lu_update_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_cuda<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void lu_update_cuda<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
