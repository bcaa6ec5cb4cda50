// Reference of elimination by pairs, in plain loops, column by column.

#include <algorithm>
#include <complex>
#include <utility>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/stripe_pair.hpp"

namespace strata {
namespace {

/// Row j of the upper stripe and row i of the lower one change places: multipliers of columns
/// q … j − 1, the upper ones of which are in row j − q of W, and all elements from column j on.
template <class T>
void exchange_pair(MatrixView<T> d, MatrixView<T> x, MatrixView<T> w, std::int64_t q,
                   std::int64_t j, std::int64_t i) {
  for (std::int64_t k = q; k < j; ++k) std::swap(w(j - q, k), x(i, k));
  for (std::int64_t k = j; k < x.cols; ++k) std::swap(d(j, k), x(i, k));
}

template <class T>
void eliminate_pair(MatrixView<T> d, MatrixView<T> x, MatrixView<T> w, std::int64_t* pivots) {
  for (std::int64_t j = 0; j < x.cols; ++j) std::fill_n(w.column(j), w.rows, T{});
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const std::int64_t q = j / w.rows * w.rows;
    const std::int64_t width = std::min(w.rows, x.cols - q);
    std::int64_t p = -1;
    for (std::int64_t i = 0; i < x.rows; ++i)
      if (pivot_size(x(i, j)) > pivot_size(p < 0 ? d(j, j) : x(p, j))) p = i;
    pivots[j] = p < 0 ? j - q : width + p;
    // A row of X that goes up takes its multipliers of columns before j with it, and the row that
    // comes down has been multiplied with those of W; columns from j on have been updated.
    if (p >= 0) exchange_pair(d, x, w, q, j, p);
    if (d(j, j) == T{0}) continue;
    const DivisionBy<T> quotient(d(j, j));
    for (std::int64_t i = 0; i < x.rows; ++i) {
      x(i, j) = quotient(x(i, j));
      for (std::int64_t k = j + 1; k < x.cols; ++k) x(i, k) -= product_of(x(i, j), d(j, k));
    }
  }
}

/// For one column of both stripes: exchanges of some columns, then their triangle, then X.
template <class T>
void apply_column(MatrixView<const T> w, MatrixView<const T> x, const std::int64_t* pivots, T* y,
                  T* z) {
  for (std::int64_t q = 0; q < x.cols; q += w.rows) {
    const std::int64_t width = std::min(w.rows, x.cols - q);
    for (std::int64_t j = 0; j < width; ++j)
      if (pivots[q + j] != j) std::swap(y[q + j], z[pivots[q + j] - width]);
    for (std::int64_t j = 0; j < width; ++j) {
      for (std::int64_t i = j + 1; i < width; ++i) y[q + i] -= product_of(w(i, q + j), y[q + j]);
      for (std::int64_t i = 0; i < x.rows; ++i) z[i] -= product_of(x(i, q + j), y[q + j]);
    }
  }
}

template <class T>
void apply_column_adjoint(MatrixView<const T> w, MatrixView<const T> x, const std::int64_t* pivots,
                          T* y, T* z) {
  for (std::int64_t q = (x.cols - 1) / w.rows * w.rows; q >= 0; q -= w.rows) {
    const std::int64_t width = std::min(w.rows, x.cols - q);
    for (std::int64_t j = width; j-- > 0;) {
      for (std::int64_t i = 0; i < x.rows; ++i)
        y[q + j] -= product_of(conjugate<T>(x(i, q + j)), z[i]);
      for (std::int64_t i = j + 1; i < width; ++i)
        y[q + j] -= product_of(conjugate<T>(w(i, q + j)), y[q + i]);
    }
    for (std::int64_t j = width; j-- > 0;)
      if (pivots[q + j] != j) std::swap(y[q + j], z[pivots[q + j] - width]);
  }
}

template <class T>
void apply_columns(const BlockView& w, const BlockView& x, const BlockView& pivots, bool adjoint,
                   MatrixView<T> y, MatrixView<T> z) {
  const auto* exchanged = static_cast<const std::int64_t*>(pivots.data);
  for (std::int64_t c = 0; c < y.cols; ++c) {
    if (adjoint)
      apply_column_adjoint(matrix_of<const T>(w), matrix_of<const T>(x), exchanged, y.column(c),
                           z.column(c));
    else
      apply_column(matrix_of<const T>(w), matrix_of<const T>(x), exchanged, y.column(c),
                   z.column(c));
  }
}

}  // namespace

template <class T>
void stripe_pair_factor_reference(Queue& queue, const KernelCalls& calls,
                                  const KernelParameters& parameters) {
  require_variant(stripe_pair_factor, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto d = matrix_of<T>(b[0]);
    const auto x = matrix_of<T>(b[2]);
    const auto w = matrix_of<T>(b[3]);
    eliminate_pair(d, x, w, static_cast<std::int64_t*>(b[4].data));
    set_statuses_of_pair<T>(d, x, w, b);
  });
}

template <class T>
void stripe_pair_row_reference(Queue& queue, const KernelCalls& calls,
                               const KernelParameters& parameters) {
  require_variant(stripe_pair_row, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* b) {
    const auto y = matrix_of<T>(b[0]);
    apply_columns<T>(b[3], b[4], b[5], false, y, matrix_of<T>(b[1]));
    auto& status = *static_cast<PanelStatus*>(b[2].data);
    status = status_of_block<T>(y, status.largest);
  });
}

template <class T>
void stripe_pair_update_reference(Queue& queue, const KernelCalls& calls,
                                  const KernelParameters& parameters) {
  require_variant(stripe_pair_update, parameters.variant, kAdjointFactor);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* b) {
    apply_columns<T>(b[2], b[3], b[4], variant == kAdjointFactor, matrix_of<T>(b[0]),
                     matrix_of<T>(b[1]));
  });
}

#define STRATA_STRIPE_PAIR(T)                                                                      \
  template void stripe_pair_factor_reference<T>(Queue&, const KernelCalls&,                        \
                                                const KernelParameters&);                          \
  template void stripe_pair_row_reference<T>(Queue&, const KernelCalls&, const KernelParameters&); \
  template void stripe_pair_update_reference<T>(Queue&, const KernelCalls&,                        \
                                                const KernelParameters&);
STRATA_STRIPE_PAIR(double)
STRATA_STRIPE_PAIR(float)
STRATA_STRIPE_PAIR(std::complex<double>)
STRATA_STRIPE_PAIR(std::complex<float>)
#undef STRATA_STRIPE_PAIR

}  // namespace strata
