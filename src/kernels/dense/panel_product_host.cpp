// panel_product on the CPU: what residuals of matrices in host memory are made with; long sums as
// the reference has them, for a CPU's own come by subtract_dd() (general_residual.hpp).

#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/general_residual.hpp"
#include "kernels/dense/panel_product.hpp"

namespace strata {

template <class A>
void panel_product_host(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  if (parameters.variant == kLongProduct)
    return panel_product_reference<A>(queue, calls, parameters);
  require_variant(panel_product, parameters.variant, kAdjointPanel | kMagnitudesOfPanel);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    using W = WideOf<A>;
    const auto a = matrix_of<const A>(x[1]);
    const std::int64_t first = x[1].col;
    if (variant == kMagnitudesOfPanel) {
      const auto v = matrix_of<const double>(x[2]);
      add_magnitudes(a, v.block(first, 0, a.cols, v.cols), matrix_of<double>(x[0]));
      return;
    }
    const auto y = matrix_of<W>(x[0]);
    const auto v = matrix_of<const W>(x[2]);
    if (variant == kAdjointPanel)
      general_residual(a, true, v, y.block(first, 0, a.cols, y.cols));
    else
      general_residual(a, false, v.block(first, 0, a.cols, v.cols), y);
  });
}

template void panel_product_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void panel_product_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void panel_product_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);
template void panel_product_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                      const KernelParameters&);

}  // namespace strata
