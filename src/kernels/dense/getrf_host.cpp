// getrf by halves of the columns.
//
// Method: the left half is factored; its exchanges, its triangle and its rows below update the
// right half, which is factored in turn (Toledo, "Locality of reference in LU decomposition with
// partial pivoting", SIAM J. Matrix Anal. Appl. 18, 1997; Gustavson 1997). So all but columns by
// eights is BLAS. LAPACK's own ?getrf is not asked, because builds differ in what they do with
// pivots that are subnormal or no numbers.

#include <utility>

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/row_exchange.hpp"

namespace strata {
namespace {

constexpr std::int64_t kLeafColumns = 8;

/// y ← y − factor·x.
template <class T>
void subtract_multiple(std::int64_t n, T factor, const T* x, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] -= product_of(factor, x[i]);
}

template <class T>
std::int64_t first_largest(std::int64_t n, const T* x) {
  std::int64_t place = 0;
  double largest = pivot_size(x[0]);
  for (std::int64_t i = 1; i < n; ++i) {
    const double size = pivot_size(x[i]);
    if (size > largest) {
      largest = size;
      place = i;
    }
  }
  return place;
}

template <class T>
void factor_leaf(MatrixView<T> a, std::int64_t* pivots) {
  for (std::int64_t j = 0; j < a.cols; ++j) {
    pivots[j] = j + first_largest(a.rows - j, a.column(j) + j);
    if (pivots[j] != j)
      for (std::int64_t k = 0; k < a.cols; ++k) std::swap(a(j, k), a(pivots[j], k));
    const T pivot = a(j, j);
    if (pivot == T{0}) continue;
    const std::int64_t below = a.rows - j - 1;
    T* l = a.column(j) + j + 1;
    const DivisionBy<T> quotient(pivot);
    for (std::int64_t i = 0; i < below; ++i) l[i] = quotient(l[i]);
    for (std::int64_t k = j + 1; k < a.cols; ++k)
      subtract_multiple(below, a(j, k), l, a.column(k) + j + 1);
  }
}

template <class T>
void factor_by_halves(MatrixView<T> a, std::int64_t* pivots) {
  if (a.cols <= kLeafColumns) return factor_leaf(a, pivots);
  const std::int64_t h = (a.cols / 2 + kLeafColumns - 1) / kLeafColumns * kLeafColumns;
  const std::int64_t w = a.cols - h;
  const MatrixView<T> left = a.block(0, 0, a.rows, h);
  const MatrixView<T> top = a.block(0, h, h, w);
  const MatrixView<T> rest = a.block(h, h, a.rows - h, w);
  factor_by_halves(left, pivots);
  exchange_rows(a.block(0, h, a.rows, w), pivots, h);
  blas::solve_triangle<T>(CblasLower, CblasNoTrans, CblasUnit, left.block(0, 0, h, h), top);
  blas::gemm_minus<T>(CblasNoTrans, CblasNoTrans, h, left.block(h, 0, a.rows - h, h), top, rest);
  factor_by_halves(rest, pivots + h);
  exchange_rows(left.block(h, 0, a.rows - h, h), pivots + h, w);
  for (std::int64_t j = h; j < a.cols; ++j) pivots[j] += h;
}

}  // namespace

template <class T>
void getrf_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(getrf, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto a = matrix_of<T>(x[0]);
    const std::int64_t first = x[0].col;
    const double before = largest_to_factor<T>(a, first);
    factor_by_halves(a.block(first, 0, a.rows - first, a.cols),
                     static_cast<std::int64_t*>(x[1].data));
    *static_cast<PanelStatus*>(x[2].data) = status_of_panel<T>(a, first, before);
  });
}

template void getrf_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
