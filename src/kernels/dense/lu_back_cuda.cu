// lu_back by cuBLAS, with few columns the triangle by solve_columns_cuda.cu.

#include "kernels/dense/lu_back.hpp"

#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/factor_op_cuda.hpp"

namespace strata {

template <class T>
void lu_back_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(lu_back, parameters.variant, kFactorVariants);
  const cublasOperation_t op = blas::op_of_factor<T>(parameters.variant);
  auto& cuda = static_cast<CudaQueue&>(queue);
  CudaStream& stream = cuda.main();
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    const auto panel = matrix_of<const T>(x[1]);
    const auto all = matrix_of<T>(x[0]);
    const std::int64_t first = diagonal_row(x[1], x[1]);
    const std::int64_t in_x = diagonal_row(x[1], x[0]);
    const std::int64_t b = panel.cols;
    if (b == 0 || all.cols == 0) continue;
    const auto u = panel.block(first, 0, b, b);
    const auto u_above = panel.block(0, 0, first, b);
    const auto here = all.block(in_x, 0, b, all.cols);
    const auto above = all.block(in_x - first, 0, first, all.cols);
    const auto solve = [&] {
      blas::solve_factor(cuda, CUBLAS_FILL_MODE_UPPER, op, CUBLAS_DIAG_NON_UNIT, u, here);
    };
    if (op != CUBLAS_OP_N) {
      if (first > 0)
        blas::gemm_minus(stream, op, CUBLAS_OP_N, first, u_above, MatrixView<const T>(above), here);
      solve();
    } else {
      solve();
      if (first > 0)
        blas::gemm_minus(stream, op, CUBLAS_OP_N, b, u_above, MatrixView<const T>(here), above);
    }
  }
}

template void lu_back_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_cuda<std::complex<double>>(Queue&, const KernelCalls&,
                                                 const KernelParameters&);
template void lu_back_cuda<std::complex<float>>(Queue&, const KernelCalls&,
                                                const KernelParameters&);

}  // namespace strata
