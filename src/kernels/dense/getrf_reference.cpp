// Reference getrf: eliminate_reference.hpp.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/eliminate_reference.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"

namespace strata {
template <class T>
void getrf_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(getrf, parameters.variant, kProductsOfHalves);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto a = matrix_of<T>(x[0]);
    const std::int64_t first = x[0].col;
    const double before = largest_to_factor<T>(a, first);
    eliminate_by_columns(a.block(first, 0, a.rows - first, a.cols),
                         static_cast<std::int64_t*>(x[1].data));
    *static_cast<PanelStatus*>(x[2].data) = status_of_panel<T>(a, first, before);
  });
}

template void getrf_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                    const KernelParameters&);
template void getrf_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);

}  // namespace strata
