// syrk by BLAS.

#include "kernels/syrk.hpp"

#include "kernels/blas_host.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void syrk_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    blas::syrk_minus(matrix_of<const T>(arguments.inputs[0]), matrix_of<T>(arguments.out));
  });
}

template void syrk_host<double>(Queue&, const KernelArguments&);
template void syrk_host<float>(Queue&, const KernelArguments&);

}  // namespace strata
