// trsm by BLAS: right side, lower, transposed; mostly GEMM.

#include "kernels/blas_host.hpp"
#include "kernels/operand.hpp"
#include "kernels/trsm.hpp"

namespace strata {

template <class T>
void trsm_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    blas::trsm_by_halves(CblasRight, CblasTrans, matrix_of<const T>(arguments.inputs[0]),
                         matrix_of<T>(arguments.out));
  });
}

template void trsm_host<double>(Queue&, const KernelArguments&);
template void trsm_host<float>(Queue&, const KernelArguments&);

}  // namespace strata
