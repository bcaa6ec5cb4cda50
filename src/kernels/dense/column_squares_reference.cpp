// Reference column_squares. s_j ← s_j + Σ_i w_ij².

#include "kernels/backend/operand.hpp"
#include "kernels/dense/column_squares.hpp"

namespace strata {

template <class T>
void column_squares_reference(Queue& queue, const KernelCalls& calls,
                              const KernelParameters& parameters) {
  require_variant(column_squares, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto s = matrix_of<double>(x[0]);
    const auto w = matrix_of<const T>(x[1]);
    for (std::int64_t j = 0; j < w.cols; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < w.rows; ++i) {
        const auto value = static_cast<double>(w(i, j));
        sum += value * value;
      }
      s(j, 0) += sum;
    }
  });
}

template void column_squares_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void column_squares_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
