// syrk by cuBLAS.

#include "kernels/dense/syrk.hpp"

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"

namespace strata {

template <class T>
void syrk_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  CudaStream& stream = static_cast<CudaQueue&>(queue).main();
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    blas::syrk_minus(stream, matrix_of<const T>(calls[i][1]), matrix_of<T>(calls[i][0]));
  }
}

template void syrk_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
