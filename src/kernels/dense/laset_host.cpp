// laset on the CPU: columns of zeros, with the one where it falls into them.

#include <algorithm>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/laset.hpp"

namespace strata {

template <class T>
void laset_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(laset, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* operands) {
    const auto x = matrix_of<T>(operands[0]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      std::fill_n(x.column(j), x.rows, T{0});
      const std::int64_t i = operands[0].col + j - operands[0].row;
      if (i >= 0 && i < x.rows) x(i, j) = 1;
    }
  });
}

template void laset_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void laset_host<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
