#pragma once
// A triangle without the directions of some of its columns.
//
// Contract: R = C·R' + what is left, C of n columns, orthonormal but for zeros in the places of
// those that are dropped, R' upper triangular with zeros in their rows. Columns that are kept leave
// nothing but rounding.

#include <vector>

#include "dense/square_matrix.hpp"

namespace strata {

struct NarrowedFactor {
  SquareMatrix<DoubleDouble> c;
  SquareMatrix<DoubleDouble> r;  ///< its diagonal is not negative
  std::vector<std::int64_t> dropped;
  double left = 0;  ///< the most that is left of a column, beside its length
};

/// R: upper triangular. dropped: by number, columns that depend on those before them in a matrix
/// that R is the triangle of, but for its own rounding. What is left is of the size of that.
[[nodiscard]] NarrowedFactor narrowed_factor(const SquareMatrix<DoubleDouble>& r,
                                             const std::vector<std::int64_t>& dropped);

/// Drops each column at a distance of tolerance·lengths[j] or less from those kept before it, or
/// without lengths at `tolerance` beside its own. Its distance is left of it.
[[nodiscard]] NarrowedFactor narrowed_factor(const SquareMatrix<DoubleDouble>& r,
                                             const std::vector<double>& lengths, double tolerance);

}  // namespace strata
