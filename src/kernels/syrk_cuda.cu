// syrk by cuBLAS.

#include "kernels/syrk.hpp"

#include "kernels/blas_cuda.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void syrk_cuda(Queue& queue, const KernelArguments& arguments) {
  blas::syrk_minus(static_cast<CudaQueue&>(queue).main(), matrix_of<const T>(arguments.inputs[0]),
                   matrix_of<T>(arguments.out));
}

template void syrk_cuda<double>(Queue&, const KernelArguments&);
template void syrk_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
