// Reference take_diagonal.

#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/take_diagonal.hpp"

namespace strata {

template <class T>
void take_diagonal_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(take_diagonal, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto d = matrix_of<T>(x[0]);
    const auto a = matrix_of<const T>(x[1]);
    for (std::int64_t j = 0; j < d.cols; ++j) d(0, j) = a(x[1].col + j, j);
  });
}

template void take_diagonal_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void take_diagonal_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void take_diagonal_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                            const KernelParameters&);
template void take_diagonal_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                           const KernelParameters&);

}  // namespace strata
