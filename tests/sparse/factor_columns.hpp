#pragma once
// Columns of a factor, whatever its supernodes, and matrices that are not definite.

#include <algorithm>
#include <vector>

#include "sparse/fronts/front_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"

namespace strata::test {

/// Column c of L, from the diagonal on. T is the C++ type of the factor's element.
template <class T>
std::vector<T> column_of(const FrontFactor& factor, std::int32_t c) {
  const SparseAnalysis& a = factor.analysis();
  const auto s = static_cast<std::int32_t>(std::upper_bound(a.first.begin(), a.first.end(), c) -
                                           a.first.begin() - 1);
  const MatrixView<const T> panel = factor.panel<T>(s);
  const T* column = panel.column(c - a.first[at(s)]);
  return {column + (c - a.first[at(s)]), column + panel.rows};
}

/// `a` with -3 on the diagonal of a row.
inline SparseMatrix with_bad_row(SparseMatrix a, std::int64_t row) {
  for (std::int64_t k = a.start[at(row)]; k < a.start[at(row + 1)]; ++k)
    if (a.column[at(k)] == row) a.value[at(k)] = -3;
  return a;
}

}  // namespace strata::test
