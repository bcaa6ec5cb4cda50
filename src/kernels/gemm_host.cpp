// gemm by BLAS: A as it is, B transposed.

#include "kernels/gemm.hpp"

#include "kernels/blas_host.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void gemm_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    blas::gemm_minus(CblasNoTrans, CblasTrans, a.cols, a, matrix_of<const T>(arguments.inputs[1]),
                     matrix_of<T>(arguments.out));
  });
}

template void gemm_host<double>(Queue&, const KernelArguments&);
template void gemm_host<float>(Queue&, const KernelArguments&);

}  // namespace strata
