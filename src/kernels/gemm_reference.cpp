// Reference gemm. c_ij ← c_ij − Σ_k a_ik·b_jk.

#include "kernels/gemm.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void gemm_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto c = matrix_of<T>(arguments.out);
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    const auto b = matrix_of<const T>(arguments.inputs[1]);
    for (std::int64_t j = 0; j < c.cols; ++j) {
      for (std::int64_t i = 0; i < c.rows; ++i) {
        T sum = c(i, j);
        for (std::int64_t k = 0; k < a.cols; ++k) sum -= a(i, k) * b(j, k);
        c(i, j) = sum;
      }
    }
  });
}

template void gemm_reference<double>(Queue&, const KernelArguments&);
template void gemm_reference<float>(Queue&, const KernelArguments&);

}  // namespace strata
