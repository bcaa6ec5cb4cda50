// trsm by BLAS, mostly GEMM.

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/trsm.hpp"

namespace strata {

template <class T>
void trsm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trsm, parameters.variant, kTransposeL | kRightSide);
  const CBLAS_SIDE side = (parameters.variant & kRightSide) != 0 ? CblasRight : CblasLeft;
  const CBLAS_TRANSPOSE op =
      (parameters.variant & kTransposeL) != 0 ? blas::kAdjoint<T> : CblasNoTrans;
  submit_each(queue, calls, [=](const BlockView* x) {
    const auto l = matrix_of<const T>(x[1]);
    // By halves on the right is for the adjoint.
    side == CblasRight&& op == CblasNoTrans ? blas::trsm(side, op, l, matrix_of<T>(x[0]))
                                            : blas::trsm_by_halves(side, op, l, matrix_of<T>(x[0]));
  });
}

template void trsm_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void trsm_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void trsm_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void trsm_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
