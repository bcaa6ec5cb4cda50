// Reference scaled_copy, by the library's scalbn.

#include <cmath>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/scaled_copy.hpp"

namespace strata {
namespace {

template <class W>
W by_scalbn(const W& x, int exponent) {
  if constexpr (is_complex_v<W>)
    return {std::scalbn(x.real(), exponent), std::scalbn(x.imag(), exponent)};
  else
    return std::scalbn(x, exponent);
}

}  // namespace

template <class N, class A>
void scaled_copy_reference(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(scaled_copy, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto y = matrix_of<N>(x[0]);
    const auto from = matrix_of<const A>(x[2]);
    const auto exponents = matrix_of<const std::int64_t>(x[3]);
    for (std::int64_t j = 0; j < y.cols; ++j)
      for (std::int64_t i = 0; i < y.rows; ++i)
        y(i, j) = static_cast<N>(
            by_scalbn(static_cast<WideOf<A>>(from(i, j)),
                      static_cast<int>(exponents(x[2].row + i, 0) + exponents(x[2].col + j, 1))));
    *static_cast<double*>(x[1].data) = largest_to_factor<N>(y, 0);
  });
}

#define STRATA_SCALED_COPY(N, A) \
  template void scaled_copy_reference<N, A>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_SCALED_COPY(double, double)
STRATA_SCALED_COPY(float, double)
STRATA_SCALED_COPY(float, float)
STRATA_SCALED_COPY(std::complex<double>, std::complex<double>)
STRATA_SCALED_COPY(std::complex<float>, std::complex<double>)
STRATA_SCALED_COPY(std::complex<float>, std::complex<float>)
#undef STRATA_SCALED_COPY

}  // namespace strata
