// Reference of elimination by stripes, in plain loops.

#include <algorithm>
#include <utility>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/row_exchange.hpp"
#include "kernels/dense/stripe.hpp"

namespace strata {
namespace {

/// Column by column; a pivot is sought down to the end of its substripe, rows go to the end of the
/// block.
template <class T>
void eliminate_in_substripes(MatrixView<T> d, std::int64_t substripe, std::int64_t* pivots) {
  for (std::int64_t j = 0; j < d.cols; ++j) {
    const std::int64_t end =
        substripe > 0 ? std::min((j / substripe + 1) * substripe, d.rows) : j + 1;
    std::int64_t p = j;
    for (std::int64_t i = j + 1; i < end; ++i)
      if (pivot_size(d(i, j)) > pivot_size(d(p, j))) p = i;
    pivots[j] = p;
    for (std::int64_t k = 0; k < d.cols; ++k) std::swap(d(j, k), d(p, k));
    if (d(j, j) == T{0}) continue;
    const DivisionBy<T> quotient(d(j, j));
    for (std::int64_t i = j + 1; i < d.rows; ++i) {
      d(i, j) = quotient(d(i, j));
      for (std::int64_t k = j + 1; k < d.cols; ++k) d(i, k) -= product_of(d(i, j), d(j, k));
    }
  }
}

}  // namespace

template <class T>
void stripe_factor_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  submit_each(queue, calls, [substripe = parameters.variant](const BlockView* x) {
    const auto d = matrix_of<T>(x[0]);
    const double before = largest_to_factor<T>(d, 0);
    eliminate_in_substripes(d, substripe, static_cast<std::int64_t*>(x[1].data));
    *static_cast<PanelStatus*>(x[2].data) = status_of_panel<T>(d, 0, before);
  });
}

template <class T>
void stripe_row_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(stripe_row, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto x = matrix_of<T>(b[0]);
    const auto d = matrix_of<const T>(b[2]);
    const double before = largest_to_factor<T>(x, 0);
    exchange_rows(x, static_cast<const std::int64_t*>(b[3].data), d.cols);
    for (std::int64_t c = 0; c < x.cols; ++c)
      for (std::int64_t j = 0; j < d.cols; ++j)
        for (std::int64_t i = j + 1; i < d.rows; ++i) x(i, c) -= product_of(d(i, j), x(j, c));
    *static_cast<PanelStatus*>(b[1].data) = status_of_block<T>(x, before);
  });
}

template <class T>
void stripe_column_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(stripe_column, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto x = matrix_of<T>(b[0]);
    const auto d = matrix_of<const T>(b[2]);
    for (std::int64_t j = 0; j < d.cols; ++j) {
      const DivisionBy<T> quotient(d(j, j));
      for (std::int64_t i = 0; i < x.rows; ++i) {
        x(i, j) = quotient(x(i, j));
        for (std::int64_t k = j + 1; k < d.cols; ++k) x(i, k) -= product_of(x(i, j), d(j, k));
      }
    }
    *static_cast<PanelStatus*>(b[1].data) = status_of_block<T>(x, 0);
  });
}

template void stripe_factor_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_factor_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_factor_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                            const KernelParameters&);
template void stripe_factor_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                           const KernelParameters&);
template void stripe_row_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_row_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_row_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                         const KernelParameters&);
template void stripe_row_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                        const KernelParameters&);
template void stripe_column_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_column_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_column_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                            const KernelParameters&);
template void stripe_column_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                           const KernelParameters&);

}  // namespace strata
