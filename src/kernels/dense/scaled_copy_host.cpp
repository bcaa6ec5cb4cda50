// scaled_copy on the CPU, column by column.

#include <algorithm>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/scaled_copy.hpp"

namespace strata {

template <class N, class A>
void scaled_copy_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(scaled_copy, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto y = matrix_of<N>(x[0]);
    const auto from = matrix_of<const A>(x[2]);
    const auto exponents = matrix_of<const std::int64_t>(x[3]);
    const std::int64_t* const of_rows = exponents.column(0) + x[2].row;
    double largest = 0;
    for (std::int64_t j = 0; j < y.cols; ++j) {
      const std::int64_t of_column = exponents(x[2].col + j, 1);
      for (std::int64_t i = 0; i < y.rows; ++i)
        y(i, j) = scaled_element<N>(from(i, j), of_rows[i] + of_column);
      largest = std::max(largest, largest_of_column(y.column(j), y.rows));
    }
    *static_cast<double*>(x[1].data) = largest;
  });
}

#define STRATA_SCALED_COPY(N, A) \
  template void scaled_copy_host<N, A>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_SCALED_COPY(double, double)
STRATA_SCALED_COPY(float, double)
STRATA_SCALED_COPY(float, float)
STRATA_SCALED_COPY(std::complex<double>, std::complex<double>)
STRATA_SCALED_COPY(std::complex<float>, std::complex<double>)
STRATA_SCALED_COPY(std::complex<float>, std::complex<float>)
#undef STRATA_SCALED_COPY

}  // namespace strata
