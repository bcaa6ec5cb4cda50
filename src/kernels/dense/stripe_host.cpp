// Elimination by stripes, with BLAS.
//
// Method: a substripe's own block is eliminated by halves of its columns, then its exchanges and
// its triangle go through the rest of its rows, and rows below take quotients and products. Without
// exchanges the whole block is one substripe.

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/eliminate_host.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/row_exchange.hpp"
#include "kernels/dense/stripe.hpp"

namespace strata {
namespace {

/// The rest of rows first … first + s − 1, and rows below, of whose block `d` the diagonal block is
/// factored; `pivots` are of these rows.
template <class T>
void finish_substripe(MatrixView<T> d, std::int64_t first, std::int64_t s,
                      const std::int64_t* pivots) {
  const std::int64_t right = d.cols - first - s;
  const std::int64_t below = d.rows - first - s;
  const MatrixView<T> own = d.block(first, first, s, s);
  const MatrixView<T> beside = d.block(first, first + s, s, right);
  const MatrixView<T> under = d.block(first + s, first, below, s);
  exchange_rows(d.block(first, 0, s, first), pivots, s);
  if (right == 0) return;
  exchange_rows(beside, pivots, s);
  blas::solve_triangle<T>(CblasLower, CblasNoTrans, CblasUnit, own, beside);
  blas::solve_upper_on_right<T>(own, under);
  blas::gemm_minus<T>(CblasNoTrans, CblasNoTrans, s, under, beside,
                      d.block(first + s, first + s, below, right));
}

template <class T>
void factor_substripes(MatrixView<T> d, std::int64_t substripe, std::int64_t* pivots) {
  if (substripe == 0) return eliminate_by_halves(d, pivots, PivotSearch::none);
  for (std::int64_t first = 0; first < d.cols; first += substripe) {
    const std::int64_t s = std::min(substripe, d.cols - first);
    eliminate_by_halves(d.block(first, first, s, s), pivots + first, PivotSearch::down);
    finish_substripe(d, first, s, pivots + first);
    for (std::int64_t j = first; j < first + s; ++j) pivots[j] += first;
  }
}

}  // namespace

template <class T>
void stripe_factor_host(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  submit_each(queue, calls, [substripe = parameters.variant](const BlockView* x) {
    const auto d = matrix_of<T>(x[0]);
    const double before = largest_to_factor<T>(d, 0);
    factor_substripes(d, substripe, static_cast<std::int64_t*>(x[1].data));
    *static_cast<PanelStatus*>(x[2].data) = status_of_panel<T>(d, 0, before);
  });
}

template <class T>
void stripe_row_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(stripe_row, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto x = matrix_of<T>(b[0]);
    const auto d = matrix_of<const T>(b[2]);
    const double before = largest_to_factor<T>(x, 0);
    exchange_rows(x, static_cast<const std::int64_t*>(b[3].data), d.cols);
    blas::solve_triangle<T>(CblasLower, CblasNoTrans, CblasUnit, d, x);
    *static_cast<PanelStatus*>(b[1].data) = status_of_block<T>(x, before);
  });
}

template <class T>
void stripe_column_host(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(stripe_column, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto x = matrix_of<T>(b[0]);
    blas::solve_upper_on_right<T>(matrix_of<const T>(b[2]), x);
    *static_cast<PanelStatus*>(b[1].data) = status_of_block<T>(x, 0);
  });
}

template void stripe_factor_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_factor_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_factor_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);
template void stripe_factor_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                      const KernelParameters&);
template void stripe_row_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_row_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_row_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                    const KernelParameters&);
template void stripe_row_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void stripe_column_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_column_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void stripe_column_host<std::complex<double>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);
template void stripe_column_host<std::complex<float>>(Queue&, const KernelCalls&,
                                                      const KernelParameters&);

}  // namespace strata
