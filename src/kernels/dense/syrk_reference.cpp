// Reference syrk. c_ij ← c_ij − Σ_k a_ik·conj(a_jk) for i ≥ j; of the diagonal the real part.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/syrk.hpp"
#include "scalar/complex.hpp"

namespace strata {

template <class T>
void syrk_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto c = matrix_of<T>(x[0]);
    const auto a = matrix_of<const T>(x[1]);
    for (std::int64_t j = 0; j < c.cols; ++j) {
      RealOf<T> diagonal = real_part(c(j, j));
      for (std::int64_t k = 0; k < a.cols; ++k) diagonal -= square_of(a(j, k));
      c(j, j) = diagonal;
      for (std::int64_t i = j + 1; i < c.rows; ++i) {
        T sum = c(i, j);
        for (std::int64_t k = 0; k < a.cols; ++k) sum -= a(i, k) * conjugate<T>(a(j, k));
        c(i, j) = sum;
      }
    }
  });
}

template void syrk_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void syrk_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
