// syrk by BLAS.

#include "kernels/dense/syrk.hpp"

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"

namespace strata {

template <class T>
void syrk_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    blas::syrk_minus(matrix_of<const T>(x[1]), matrix_of<T>(x[0]));
  });
}

template void syrk_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
