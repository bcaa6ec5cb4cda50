// trmm on the GPU, by cuBLAS, whose product is in place where the result is the operand itself
// (cuBLAS manual, "cublas<t>trmm").

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/trmm.hpp"

namespace strata {

template <class T>
void trmm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trmm, parameters.variant, kTransposeL);
  const cublasOperation_t op = (parameters.variant & kTransposeL) != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i)
    blas::trmm_minus(cuda.main(), op, matrix_of<const T>(calls[i][1]), matrix_of<T>(calls[i][0]));
}

template void trmm_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void trmm_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
