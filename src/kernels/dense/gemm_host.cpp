// gemm by BLAS.

#include "kernels/dense/gemm.hpp"

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"

namespace strata {

template <class T>
void gemm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
  const bool transposed = (parameters.variant & kTransposeA) != 0;
  const CBLAS_TRANSPOSE op_a = transposed ? blas::kAdjoint<T> : CblasNoTrans;
  const CBLAS_TRANSPOSE op_b =
      (parameters.variant & kTransposeB) != 0 ? blas::kAdjoint<T> : CblasNoTrans;
  submit_each(queue, calls, [=](const BlockView* x) {
    const auto a = matrix_of<const T>(x[1]);
    blas::gemm_minus(op_a, op_b, transposed ? a.rows : a.cols, a, matrix_of<const T>(x[2]),
                     matrix_of<T>(x[0]));
  });
}

template void gemm_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void gemm_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void gemm_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void gemm_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
