// Reference trsm. X·Lᵀ = A row by row: x_ij = (a_ij − Σ_k<j x_ik·l_jk) / l_jj, forward
// substitution.

#include "kernels/operand.hpp"
#include "kernels/trsm.hpp"

namespace strata {

template <class T>
void trsm_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto a = matrix_of<T>(arguments.out);
    const auto l = matrix_of<const T>(arguments.inputs[0]);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < a.cols; ++j) {
        T sum = a(i, j);
        for (std::int64_t k = 0; k < j; ++k) sum -= a(i, k) * l(j, k);
        a(i, j) = sum / l(j, j);
      }
    }
  });
}

template void trsm_reference<double>(Queue&, const KernelArguments&);
template void trsm_reference<float>(Queue&, const KernelArguments&);

}  // namespace strata
