// The solve operations by cuBLAS.

#include "kernels/solve.hpp"

#include "kernels/blas_cuda.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void trsm_left_cuda(Queue& queue, const KernelArguments& arguments) {
  blas::trsm_left(static_cast<CudaQueue&>(queue).main(), CUBLAS_OP_N,
                  matrix_of<const T>(arguments.inputs[0]), matrix_of<T>(arguments.out));
}

template <class T>
void trsm_left_transposed_cuda(Queue& queue, const KernelArguments& arguments) {
  blas::trsm_left(static_cast<CudaQueue&>(queue).main(), CUBLAS_OP_T,
                  matrix_of<const T>(arguments.inputs[0]), matrix_of<T>(arguments.out));
}

template <class T>
void gemm_left_cuda(Queue& queue, const KernelArguments& arguments) {
  const auto a = matrix_of<const T>(arguments.inputs[0]);
  blas::gemm_minus(static_cast<CudaQueue&>(queue).main(), CUBLAS_OP_N, CUBLAS_OP_N, a.cols, a,
                   matrix_of<const T>(arguments.inputs[1]), matrix_of<T>(arguments.out));
}

template <class T>
void gemm_left_transposed_cuda(Queue& queue, const KernelArguments& arguments) {
  const auto a = matrix_of<const T>(arguments.inputs[0]);
  blas::gemm_minus(static_cast<CudaQueue&>(queue).main(), CUBLAS_OP_T, CUBLAS_OP_N, a.rows, a,
                   matrix_of<const T>(arguments.inputs[1]), matrix_of<T>(arguments.out));
}

template void trsm_left_cuda<double>(Queue&, const KernelArguments&);
template void trsm_left_cuda<float>(Queue&, const KernelArguments&);
template void trsm_left_transposed_cuda<double>(Queue&, const KernelArguments&);
template void trsm_left_transposed_cuda<float>(Queue&, const KernelArguments&);
template void gemm_left_cuda<double>(Queue&, const KernelArguments&);
template void gemm_left_cuda<float>(Queue&, const KernelArguments&);
template void gemm_left_transposed_cuda<double>(Queue&, const KernelArguments&);
template void gemm_left_transposed_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
