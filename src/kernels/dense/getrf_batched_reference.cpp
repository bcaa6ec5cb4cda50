// Reference getrf of a batch: the matrices one after another.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/eliminate_reference.hpp"
#include "kernels/dense/getrf_batched.hpp"
#include "kernels/dense/panel_status.hpp"

namespace strata {

template <class T>
void getrf_batched_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(getrf_batched, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto* entries = static_cast<const LuBatchEntry*>(x[1].data);
    auto* statuses = static_cast<PanelStatus*>(x[2].data);
    for (std::int64_t m = 0; m < x[1].cols; ++m) {
      const LuBatchEntry& entry = entries[m];
      const MatrixView<T> a{static_cast<T*>(entry.data), entry.n, entry.n, entry.ld};
      const double before = largest_to_factor<T>(a, 0);
      eliminate_by_columns(a, entry.pivots);
      statuses[m] = status_of_panel<T>(a, 0, before);
    }
  });
}

template void getrf_batched_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_batched_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_batched_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                            const KernelParameters&);
template void getrf_batched_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                           const KernelParameters&);

}  // namespace strata
