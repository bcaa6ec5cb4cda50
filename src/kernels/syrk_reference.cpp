// Reference syrk. c_ij ← c_ij − Σ_k a_ik·a_jk for i ≥ j.

#include "kernels/operand.hpp"
#include "kernels/syrk.hpp"

namespace strata {

template <class T>
void syrk_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto c = matrix_of<T>(arguments.out);
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    for (std::int64_t j = 0; j < c.cols; ++j) {
      for (std::int64_t i = j; i < c.rows; ++i) {
        T sum = c(i, j);
        for (std::int64_t k = 0; k < a.cols; ++k) sum -= a(i, k) * a(j, k);
        c(i, j) = sum;
      }
    }
  });
}

template void syrk_reference<double>(Queue&, const KernelArguments&);
template void syrk_reference<float>(Queue&, const KernelArguments&);

}  // namespace strata
