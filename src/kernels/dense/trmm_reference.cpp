// Reference trmm: columns of X by themselves, from the last row up, x_i = −Σ_{k<=i} l_ik·x_k, so
// that the x_k above are still what they were; transposed, from the first row down,
// x_i = −Σ_{k>=i} conj(l_ki)·x_k.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/trmm.hpp"
#include "scalar/complex.hpp"

namespace strata {

template <class T>
void trmm_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trmm, parameters.variant, kTransposeL);
  const bool transposed = (parameters.variant & kTransposeL) != 0;
  submit_each(queue, calls, [transposed](const BlockView* operands) {
    const auto x = matrix_of<T>(operands[0]);
    const auto l = matrix_of<const T>(operands[1]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t step = 0; step < x.rows; ++step) {
        const std::int64_t i = transposed ? step : x.rows - 1 - step;
        T sum = 0;
        for (std::int64_t k = transposed ? i : 0; k <= (transposed ? x.rows - 1 : i); ++k)
          sum -= (transposed ? conjugate<T>(l(k, i)) : l(i, k)) * x(k, j);
        x(i, j) = sum;
      }
    }
  });
}

template void trmm_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void trmm_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void trmm_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void trmm_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
