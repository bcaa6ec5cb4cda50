// lu_update by BLAS, mostly GEMM.

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/factor_op_host.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/row_exchange.hpp"

namespace strata {

template <class T>
void lu_update_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(lu_update, parameters.variant, kFactorVariants | kProductsOfHalves);
  submit_each(queue, calls, [variant = parameters.variant & kFactorVariants](const BlockView* x) {
    const CBLAS_TRANSPOSE op = blas::op_of_factor<T>(variant);
    const auto panel = matrix_of<const T>(x[1]);
    const auto all = matrix_of<T>(x[0]);
    const std::int64_t first = diagonal_row(x[1], x[0]);
    const std::int64_t diagonal = diagonal_row(x[1], x[1]);
    const std::int64_t b = panel.cols;
    const std::int64_t below = panel.rows - diagonal - b;
    const auto l11 = panel.block(diagonal, 0, b, b);
    const auto l21 = panel.block(diagonal + b, 0, below, b);
    const auto target = all.block(first, 0, all.rows - first, all.cols);
    const auto top = target.block(0, 0, b, all.cols);
    const auto rest = target.block(b, 0, below, all.cols);
    const auto* pivots = static_cast<const std::int64_t*>(x[2].data);
    if (op != CblasNoTrans) {
      if (below > 0) blas::gemm_minus<T>(op, CblasNoTrans, below, l21, rest, top);
      blas::solve_triangle<T>(CblasLower, op, CblasUnit, l11, top);
      exchange_rows_back(target, pivots, b);
    } else {
      exchange_rows(target, pivots, b);
      blas::solve_triangle<T>(CblasLower, op, CblasUnit, l11, top);
      if (below > 0) blas::gemm_minus<T>(op, CblasNoTrans, b, l21, top, rest);
    }
  });
}

template void lu_update_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void lu_update_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
