// Reference potrf of a batch: the matrices one after another.

#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "kernels/dense/potrf_one.hpp"

namespace strata {

template <class T>
void potrf_batched_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(potrf_batched, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto* entries = static_cast<const BatchEntry*>(x[1].data);
    PivotStatus* statuses = status_of(x[2]);
    for (std::int64_t b = 0; b < x[1].cols; ++b) {
      const BatchEntry& a = entries[b];
      statuses[b] = factor_reference(MatrixView<T>{static_cast<T*>(a.data), a.n, a.n, a.ld});
    }
  });
}

template void potrf_batched_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_batched_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_batched_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                            const KernelParameters&);
template void potrf_batched_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                           const KernelParameters&);

}  // namespace strata
