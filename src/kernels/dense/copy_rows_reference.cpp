// Reference copy_rows, element by element.

#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/copy_rows.hpp"

namespace strata {

template <class T>
void copy_rows_reference(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters) {
  require_variant(copy_rows, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto from = matrix_of<const T>(x[0]);
    const auto to = matrix_of<T>(x[1]);
    const std::int64_t first = x[1].row - x[0].row;
    for (std::int64_t j = 0; j < to.cols; ++j)
      for (std::int64_t i = 0; i < to.rows; ++i) to(i, j) = from(first + i, j);
  });
}

template void copy_rows_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void copy_rows_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void copy_rows_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                        const KernelParameters&);
template void copy_rows_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);

}  // namespace strata
