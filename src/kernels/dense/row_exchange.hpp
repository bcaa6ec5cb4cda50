#pragma once
// Row exchanges of partial pivoting, as LAPACK's ?laswp.
//
// Contract: exchange j is of rows j and pivots[j] of `x`, counted from 0.

#include <utility>

#include "strata/matrix_view.hpp"

namespace strata {

/// Exchanges 0 … count − 1, in this order. Column by column: each stays in the cache meanwhile.
template <class T>
void exchange_rows(MatrixView<T> x, const std::int64_t* pivots, std::int64_t count) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    T* column = x.column(c);
    for (std::int64_t j = 0; j < count; ++j) std::swap(column[j], column[pivots[j]]);
  }
}

/// The same exchanges, the last first.
template <class T>
void exchange_rows_back(MatrixView<T> x, const std::int64_t* pivots, std::int64_t count) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    T* column = x.column(c);
    for (std::int64_t j = count; j-- > 0;) std::swap(column[j], column[pivots[j]]);
  }
}

}  // namespace strata
