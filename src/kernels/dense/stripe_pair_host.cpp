// Elimination of stripes by pairs, with BLAS.
//
// Method: the panel of some columns, U's triangle upon the rows of X, is put together and factored
// by halves; the columns behind take its exchanges, its triangle and its products, as blocks beside
// do.

#include <algorithm>
#include <complex>
#include <vector>

#include "base/index.hpp"
#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/eliminate_host.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/row_exchange.hpp"
#include "kernels/dense/stripe_pair.hpp"

namespace strata {
namespace {

/// What is exchanged and multiplied for some columns of a pair.
template <class T>
struct PairPanel {
  MatrixView<const T> triangle;     ///< of W, w × w
  MatrixView<const T> multipliers;  ///< r × w
  const std::int64_t* pivots = nullptr;
};

/// Rows j of `upper` and pivots[j] of both, upper rows first.
template <class T>
void exchange_with(std::int64_t j, std::int64_t pivot, MatrixView<T> upper, MatrixView<T> lower) {
  if (pivot == j) return;
  for (std::int64_t c = 0; c < upper.cols; ++c)
    std::swap(upper(j, c), lower(pivot - upper.rows, c));
}

template <class T>
void apply(const PairPanel<T>& panel, MatrixView<T> upper, MatrixView<T> lower) {
  const std::int64_t w = upper.rows;
  for (std::int64_t j = 0; j < w; ++j) exchange_with(j, panel.pivots[j], upper, lower);
  blas::solve_triangle<T>(CblasLower, CblasNoTrans, CblasUnit, panel.triangle, upper);
  blas::gemm_minus<T>(CblasNoTrans, CblasNoTrans, w, panel.multipliers, upper, lower);
}

template <class T>
void apply_adjoint(const PairPanel<T>& panel, MatrixView<T> upper, MatrixView<T> lower) {
  const std::int64_t w = upper.rows;
  blas::gemm_minus<T>(blas::kAdjoint<T>, CblasNoTrans, lower.rows, panel.multipliers, lower, upper);
  blas::solve_triangle<T>(CblasLower, blas::kAdjoint<T>, CblasUnit, panel.triangle, upper);
  for (std::int64_t j = w; j-- > 0;) exchange_with(j, panel.pivots[j], upper, lower);
}

template <class T>
PairPanel<T> panel_of(MatrixView<const T> w, MatrixView<const T> x, const std::int64_t* pivots,
                      std::int64_t first, std::int64_t width) {
  return {w.block(0, first, width, width), x.block(0, first, x.rows, width), pivots + first};
}

template <class T>
void apply_all(MatrixView<const T> w, MatrixView<const T> x, const std::int64_t* pivots,
               bool adjoint, MatrixView<T> y, MatrixView<T> z) {
  const std::int64_t panels = (x.cols + w.rows - 1) / w.rows;
  for (std::int64_t p = 0; p < panels; ++p) {
    const std::int64_t first = (adjoint ? panels - 1 - p : p) * w.rows;
    const std::int64_t width = std::min(w.rows, x.cols - first);
    const PairPanel<T> panel = panel_of<T>(w, x, pivots, first, width);
    const MatrixView<T> upper = y.block(first, 0, width, y.cols);
    adjoint ? apply_adjoint(panel, upper, z) : apply(panel, upper, z);
  }
}

/// Columns first … first + width − 1 of the pair, alone.
template <class T>
void factor_columns(MatrixView<T> d, MatrixView<T> x, MatrixView<T> w, std::int64_t* pivots,
                    std::int64_t first, std::int64_t width, std::vector<T>& memory) {
  const std::int64_t rows = width + x.rows;
  memory.assign(at(rows * width), T{});
  const MatrixView<T> panel{memory.data(), rows, width, rows};
  for (std::int64_t j = 0; j < width; ++j) {
    std::copy_n(d.column(first + j) + first, j + 1, panel.column(j));
    std::copy_n(x.column(first + j), x.rows, panel.column(j) + width);
  }
  eliminate_by_halves(panel, pivots + first, PivotSearch::down);
  for (std::int64_t j = 0; j < width; ++j) {
    std::copy_n(panel.column(j), j + 1, d.column(first + j) + first);
    std::copy_n(panel.column(j) + width, x.rows, x.column(first + j));
    std::fill_n(w.column(first + j), w.rows, T{});
    std::copy_n(panel.column(j) + j + 1, width - j - 1, w.column(first + j) + j + 1);
  }
}

template <class T>
void factor_pair(MatrixView<T> d, MatrixView<T> x, MatrixView<T> w, std::int64_t* pivots) {
  std::vector<T> memory;
  for (std::int64_t first = 0; first < x.cols; first += w.rows) {
    const std::int64_t width = std::min(w.rows, x.cols - first);
    const std::int64_t right = x.cols - first - width;
    factor_columns(d, x, w, pivots, first, width, memory);
    if (right == 0) continue;
    apply<T>(panel_of<T>(w, x, pivots, first, width), d.block(first, first + width, width, right),
             x.block(0, first + width, x.rows, right));
  }
}

}  // namespace

template <class T>
void stripe_pair_factor_host(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(stripe_pair_factor, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto d = matrix_of<T>(b[0]);
    const auto x = matrix_of<T>(b[2]);
    const auto w = matrix_of<T>(b[3]);
    factor_pair(d, x, w, static_cast<std::int64_t*>(b[4].data));
    set_statuses_of_pair<T>(d, x, w, b);
  });
}

template <class T>
void stripe_pair_row_host(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(stripe_pair_row, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto y = matrix_of<T>(b[0]);
    apply_all<T>(matrix_of<const T>(b[3]), matrix_of<const T>(b[4]),
                 static_cast<const std::int64_t*>(b[5].data), false, y, matrix_of<T>(b[1]));
    auto& status = *static_cast<PanelStatus*>(b[2].data);
    status = status_of_block<T>(y, status.largest);
  });
}

template <class T>
void stripe_pair_update_host(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(stripe_pair_update, parameters.variant, kAdjointFactor);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* b) {
    apply_all<T>(matrix_of<const T>(b[2]), matrix_of<const T>(b[3]),
                 static_cast<const std::int64_t*>(b[4].data), variant == kAdjointFactor,
                 matrix_of<T>(b[0]), matrix_of<T>(b[1]));
  });
}

#define STRATA_STRIPE_PAIR(T)                                                                    \
  template void stripe_pair_factor_host<T>(Queue&, const KernelCalls&, const KernelParameters&); \
  template void stripe_pair_row_host<T>(Queue&, const KernelCalls&, const KernelParameters&);    \
  template void stripe_pair_update_host<T>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_STRIPE_PAIR(double)
STRATA_STRIPE_PAIR(float)
STRATA_STRIPE_PAIR(std::complex<double>)
STRATA_STRIPE_PAIR(std::complex<float>)
#undef STRATA_STRIPE_PAIR

}  // namespace strata
