#pragma once
// Elimination of a block of columns on the host, with or without a search for pivots.
//
// Contract: P·A = L·U of an m × n view, m >= n, in place as getrf leaves it; pivot j says that rows
// j and pivot j were exchanged, counted from 0. A pivot of zero is skipped.
// Method: the left half is factored; its exchanges, its triangle and its rows below update the
// right half, which is factored in turn (Toledo, "Locality of reference in LU decomposition with
// partial pivoting", SIAM J. Matrix Anal. Appl. 18, 1997; Gustavson 1997). So all but columns by
// eights is BLAS.

#include <cstdint>
#include <utility>

#include "kernels/backend/blas_host.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/row_exchange.hpp"

namespace strata {

enum class PivotSearch : std::uint8_t {
  down,  ///< the first of the largest elements of the column, to the last row of the view
  none,  ///< what is on the diagonal
};

/// Columns that are eliminated one by one.
inline constexpr std::int64_t kEliminatedColumns = 8;

/// y ← y − factor·x.
template <class T>
void subtract_multiple(std::int64_t n, T factor, const T* x, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] -= product_of(factor, x[i]);
}

template <class T>
[[nodiscard]] std::int64_t first_largest(std::int64_t n, const T* x) {
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
void eliminate_columns(MatrixView<T> a, std::int64_t* pivots, PivotSearch search) {
  for (std::int64_t j = 0; j < a.cols; ++j) {
    const bool searches = search == PivotSearch::down;
    pivots[j] = searches ? j + first_largest(a.rows - j, a.column(j) + j) : j;
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
void eliminate_by_halves(MatrixView<T> a, std::int64_t* pivots, PivotSearch search) {
  if (a.cols <= kEliminatedColumns) return eliminate_columns(a, pivots, search);
  const std::int64_t h =
      (a.cols / 2 + kEliminatedColumns - 1) / kEliminatedColumns * kEliminatedColumns;
  const std::int64_t w = a.cols - h;
  const MatrixView<T> left = a.block(0, 0, a.rows, h);
  const MatrixView<T> top = a.block(0, h, h, w);
  const MatrixView<T> rest = a.block(h, h, a.rows - h, w);
  eliminate_by_halves(left, pivots, search);
  exchange_rows(a.block(0, h, a.rows, w), pivots, h);
  blas::solve_triangle<T>(CblasLower, CblasNoTrans, CblasUnit, left.block(0, 0, h, h), top);
  blas::gemm_minus<T>(CblasNoTrans, CblasNoTrans, h, left.block(h, 0, a.rows - h, h), top, rest);
  eliminate_by_halves(rest, pivots + h, search);
  exchange_rows(left.block(h, 0, a.rows - h, h), pivots + h, w);
  for (std::int64_t j = h; j < a.cols; ++j) pivots[j] += h;
}

}  // namespace strata
