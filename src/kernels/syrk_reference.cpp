// Reference syrk. c_ij ← c_ij − Σ_k a_ik·a_jk for i ≥ j.

#include "kernels/operand.hpp"
#include "kernels/syrk.hpp"

namespace strata {

template <class T>
void syrk_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto c = matrix_of<T>(x[0]);
    const auto a = matrix_of<const T>(x[1]);
    for (std::int64_t j = 0; j < c.cols; ++j) {
      for (std::int64_t i = j; i < c.rows; ++i) {
        T sum = c(i, j);
        for (std::int64_t k = 0; k < a.cols; ++k) sum -= a(i, k) * a(j, k);
        c(i, j) = sum;
      }
    }
  });
}

template void syrk_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void syrk_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
