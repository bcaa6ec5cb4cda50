// getrf by halves of the columns (eliminate_host.hpp). LAPACK's own ?getrf is not asked, because
// builds differ in what they do with pivots that are subnormal or no numbers.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/eliminate_host.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"

namespace strata {

template <class T>
void getrf_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(getrf, parameters.variant, kProductsOfHalves);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto a = matrix_of<T>(x[0]);
    const std::int64_t first = x[0].col;
    const double before = largest_to_factor<T>(a, first);
    eliminate_by_halves(a.block(first, 0, a.rows - first, a.cols),
                        static_cast<std::int64_t*>(x[1].data), PivotSearch::down);
    *static_cast<PanelStatus*>(x[2].data) = status_of_panel<T>(a, first, before);
  });
}

template void getrf_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
