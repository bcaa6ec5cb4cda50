#pragma once
// Elimination as the reference has it: column j gets its pivot, a row exchange, its quotients, and
// then takes its part off every column to its right (kji, right-looking), with plain loops.

#include <cstdint>
#include <utility>

#include "kernels/dense/getrf.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// P·A = L·U of an m × n view, m >= n, as getrf leaves it; pivots are counted from 0.
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

}  // namespace strata
