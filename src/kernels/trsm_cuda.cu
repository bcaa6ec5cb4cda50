// trsm by cuBLAS: right side, lower, transposed.

#include "kernels/blas_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/trsm.hpp"

namespace strata {

template <class T>
void trsm_cuda(Queue& queue, const KernelArguments& arguments) {
  blas::trsm(static_cast<CudaQueue&>(queue), CUBLAS_SIDE_RIGHT, CUBLAS_OP_T,
             matrix_of<const T>(arguments.inputs[0]), matrix_of<T>(arguments.out));
}

template void trsm_cuda<double>(Queue&, const KernelArguments&);
template void trsm_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
