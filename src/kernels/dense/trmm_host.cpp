// trmm by BLAS, by halves so that most of it is GEMM, as trsm (blas_host.hpp): with
// L = [L11 0; L21 L22] and X = [X1; X2], X2 ← −L22·X2 − L21·X1, then X1 ← −L11·X1; transposed,
// X1 ← −L11ᴴ·X1 − L21ᴴ·X2, then X2 ← −L22ᴴ·X2.

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/trmm.hpp"

namespace strata {
namespace {

template <class T>
void multiply(CBLAS_TRANSPOSE op, MatrixView<const T> l, MatrixView<T> x) {
  constexpr std::int64_t kLeaf = 64;
  const std::int64_t n = l.rows;
  if (n <= kLeaf) return blas::trmm_minus(op, l, x);
  const std::int64_t h = (n / 2 + kLeaf - 1) / kLeaf * kLeaf;
  const MatrixView<T> x1 = x.block(0, 0, h, x.cols);
  const MatrixView<T> x2 = x.block(h, 0, n - h, x.cols);
  const MatrixView<const T> below = l.block(h, 0, n - h, h);
  if (op != CblasNoTrans) {
    multiply<T>(op, l.block(0, 0, h, h), x1);
    blas::gemm_minus<T>(op, CblasNoTrans, n - h, below, x2, x1);
    multiply<T>(op, l.block(h, h, n - h, n - h), x2);
  } else {
    multiply<T>(op, l.block(h, h, n - h, n - h), x2);
    blas::gemm_minus<T>(op, CblasNoTrans, h, below, x1, x2);
    multiply<T>(op, l.block(0, 0, h, h), x1);
  }
}

}  // namespace

template <class T>
void trmm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trmm, parameters.variant, kTransposeL);
  const CBLAS_TRANSPOSE op =
      (parameters.variant & kTransposeL) != 0 ? blas::kAdjoint<T> : CblasNoTrans;
  submit_each(queue, calls, [op](const BlockView* x) {
    multiply<T>(op, matrix_of<const T>(x[1]), matrix_of<T>(x[0]));
  });
}

template void trmm_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void trmm_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void trmm_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void trmm_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
