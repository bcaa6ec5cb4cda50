// gemm by cuBLAS: A as it is, B transposed.

#include "kernels/gemm.hpp"

#include "kernels/blas_cuda.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void gemm_cuda(Queue& queue, const KernelArguments& arguments) {
  const auto a = matrix_of<const T>(arguments.inputs[0]);
  blas::gemm_minus(static_cast<CudaQueue&>(queue).main(), CUBLAS_OP_N, CUBLAS_OP_T, a.cols, a,
                   matrix_of<const T>(arguments.inputs[1]), matrix_of<T>(arguments.out));
}

template void gemm_cuda<double>(Queue&, const KernelArguments&);
template void gemm_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
