// copy_rows on the CPU: runs of each column.

#include <algorithm>
#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/copy_rows.hpp"

namespace strata {

template <class T>
void copy_rows_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(copy_rows, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto from = matrix_of<const T>(x[0]);
    const auto to = matrix_of<T>(x[1]);
    const std::int64_t first = x[1].row - x[0].row;
    for (std::int64_t j = 0; j < to.cols; ++j)
      std::copy_n(from.column(j) + first, to.rows, to.column(j));
  });
}

template void copy_rows_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void copy_rows_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void copy_rows_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void copy_rows_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
