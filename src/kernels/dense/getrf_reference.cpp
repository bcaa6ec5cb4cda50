// Reference getrf: column j gets its pivot, a row exchange, its quotients, and then takes its part
// off every column to its right (kji, right-looking), with plain loops.

#include <utility>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/panel_status.hpp"

namespace strata {
namespace {

template <class T>
void eliminate_by_columns(MatrixView<T> a, std::int64_t* pivots) {
  for (std::int64_t j = 0; j < a.cols; ++j) {
    std::int64_t p = j;
    for (std::int64_t i = j + 1; i < a.rows; ++i)
      if (pivot_size(a(i, j)) > pivot_size(a(p, j))) p = i;
    pivots[j] = p;
    for (std::int64_t k = 0; k < a.cols; ++k) std::swap(a(j, k), a(p, k));
    if (a(j, j) == T{0}) continue;
    const DivisionBy<T> quotient(a(j, j));
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      a(i, j) = quotient(a(i, j));
      for (std::int64_t k = j + 1; k < a.cols; ++k) a(i, k) -= product_of(a(i, j), a(j, k));
    }
  }
}

}  // namespace

template <class T>
void getrf_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(getrf, parameters.variant, 0);
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
