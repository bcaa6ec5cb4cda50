// lu_back by BLAS.

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/factor_op_host.hpp"
#include "kernels/dense/lu_back.hpp"

namespace strata {

template <class T>
void lu_back_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(lu_back, parameters.variant, kFactorVariants);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const CBLAS_TRANSPOSE op = blas::op_of_factor<T>(variant);
    const auto panel = matrix_of<const T>(x[1]);
    const auto all = matrix_of<T>(x[0]);
    const std::int64_t first = diagonal_row(x[1], x[1]);
    const std::int64_t in_x = diagonal_row(x[1], x[0]);
    const std::int64_t b = panel.cols;
    const auto u = panel.block(first, 0, b, b);
    const auto u_above = panel.block(0, 0, first, b);
    const auto here = all.block(in_x, 0, b, all.cols);
    const auto above = all.block(in_x - first, 0, first, all.cols);
    if (op != CblasNoTrans) {
      if (first > 0) blas::gemm_minus<T>(op, CblasNoTrans, first, u_above, above, here);
      blas::solve_triangle<T>(CblasUpper, op, CblasNonUnit, u, here);
    } else {
      blas::solve_triangle<T>(CblasUpper, op, CblasNonUnit, u, here);
      if (first > 0) blas::gemm_minus<T>(op, CblasNoTrans, b, u_above, here, above);
    }
  });
}

template void lu_back_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                 const KernelParameters&);
template void lu_back_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                const KernelParameters&);

}  // namespace strata
