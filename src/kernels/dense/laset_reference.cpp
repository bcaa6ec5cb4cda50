// Reference laset: x_ij ← 1 if row + i = col + j, else 0.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/laset.hpp"

namespace strata {

template <class T>
void laset_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(laset, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* operands) {
    const auto x = matrix_of<T>(operands[0]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i)
        x(i, j) = operands[0].row + i == operands[0].col + j ? T{1} : T{0};
    }
  });
}

template void laset_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void laset_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
