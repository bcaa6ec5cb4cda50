#pragma once
// A triangle without the directions of some of its columns.
//
// Contract: R = C·R' + what is left, C of n columns, orthonormal but for zeros in the places of
// those that are dropped, R' upper triangular with zeros in their rows. Columns that are kept leave
// nothing but rounding; one that is dropped leaves its distance from those before it. In
// double-double, by Householder's reflections (Golub and Van Loan, Matrix Computations, 5.2).

#include <vector>

#include "qr/square_matrix.hpp"

namespace strata {

struct NarrowedFactor {
  SquareMatrix<DoubleDouble> c;
  SquareMatrix<DoubleDouble> r;
  double left = 0;  ///< the most that is left of a column, beside its length
};

/// R: upper triangular. dropped: by number. The diagonal of R' is not negative.
[[nodiscard]] NarrowedFactor narrowed_factor(const SquareMatrix<DoubleDouble>& r,
                                             const std::vector<std::int64_t>& dropped);

}  // namespace strata
