// Reference lu_update, in plain loops.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/row_exchange.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

/// `l`: rows and columns of L from the diagonal of the panel on; `x`: the same rows of X.
template <class T>
void apply_panel(MatrixView<const T> l, MatrixView<T> x) {
  for (std::int64_t c = 0; c < x.cols; ++c)
    for (std::int64_t j = 0; j < l.cols; ++j)
      for (std::int64_t i = j + 1; i < l.rows; ++i) x(i, c) -= product_of(l(i, j), x(j, c));
}

/// By the conjugate matrix, if `op` conjugates.
template <class T, class F>
void apply_panel_transposed(MatrixView<const T> l, MatrixView<T> x, F op) {
  for (std::int64_t c = 0; c < x.cols; ++c)
    for (std::int64_t j = l.cols; j-- > 0;)
      for (std::int64_t i = j + 1; i < l.rows; ++i) x(j, c) -= product_of(op(l(i, j)), x(i, c));
}

}  // namespace

template <class T>
void lu_update_reference(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters) {
  require_variant(lu_update, parameters.variant, kFactorVariants | kProductsOfHalves);
  submit_each(queue, calls, [variant = parameters.variant & kFactorVariants](const BlockView* x) {
    const std::int64_t first = diagonal_row(x[1], x[0]);
    const auto panel = matrix_of<const T>(x[1]);
    const std::int64_t above = diagonal_row(x[1], x[1]);
    const auto l = panel.block(above, 0, panel.rows - above, panel.cols);
    const auto all = matrix_of<T>(x[0]);
    const auto target = all.block(first, 0, all.rows - first, all.cols);
    const auto* pivots = static_cast<const std::int64_t*>(x[2].data);
    if (variant != 0) {
      (variant & kAdjointFactor) != 0
          ? apply_panel_transposed(l, target, [](const T& value) { return conjugate(value); })
          : apply_panel_transposed(l, target, [](const T& value) { return value; });
      exchange_rows_back(target, pivots, l.cols);
    } else {
      exchange_rows(target, pivots, l.cols);
      apply_panel(l, target);
    }
  });
}

template void lu_update_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_update_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                        const KernelParameters&);
template void lu_update_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);

}  // namespace strata
