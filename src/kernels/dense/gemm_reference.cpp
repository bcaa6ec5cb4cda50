// Reference gemm. c_ij ← c_ij − Σ_k op(A)_ik·op(B)_kj, op(X)_ij being x_ij or the conjugate of
// x_ji.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/gemm.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

template <class T>
void compute(MatrixView<T> c, MatrixView<const T> a, MatrixView<const T> b, bool transposed_a,
             bool transposed_b) {
  const auto of_a = [&](std::int64_t i, std::int64_t k) {
    return transposed_a ? conjugate<T>(a(k, i)) : a(i, k);
  };
  const auto of_b = [&](std::int64_t k, std::int64_t j) {
    return transposed_b ? conjugate<T>(b(j, k)) : b(k, j);
  };
  const std::int64_t inner = transposed_a ? a.rows : a.cols;
  for (std::int64_t j = 0; j < c.cols; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i) {
      T sum = c(i, j);
      for (std::int64_t k = 0; k < inner; ++k) sum -= of_a(i, k) * of_b(k, j);
      c(i, j) = sum;
    }
  }
}

}  // namespace

template <class T>
void gemm_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    compute(matrix_of<T>(x[0]), matrix_of<const T>(x[1]), matrix_of<const T>(x[2]),
            (variant & kTransposeA) != 0, (variant & kTransposeB) != 0);
  });
}

template void gemm_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void gemm_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void gemm_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void gemm_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
