// gemm by cuBLAS.

#include "kernels/dense/gemm.hpp"

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"

namespace strata {

template <class T>
void gemm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
  const bool transposed = (parameters.variant & kTransposeA) != 0;
  const cublasOperation_t op_a = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b =
      (parameters.variant & kTransposeB) != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  CudaStream& stream = static_cast<CudaQueue&>(queue).main();
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    const auto a = matrix_of<const T>(x[1]);
    blas::gemm_minus(stream, op_a, op_b, transposed ? a.rows : a.cols, a, matrix_of<const T>(x[2]),
                     matrix_of<T>(x[0]));
  }
}

template void gemm_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void gemm_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
