#pragma once
// What becomes of dependent columns: dropped, or filled by orthonormal ones.
//
// Contract: Q and R are as a method leaves them (methods.hpp): dependent columns of Q are zeros,
// and so are their rows of R. T is double or float.

#include <functional>
#include <vector>

#include "qr/methods.hpp"
#include "qr/tall_place.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// Moves the rows of R of columns that are kept to the top, in their order; zeros below them.
template <class T>
void drop_rows(MatrixView<T> r, const std::vector<std::int64_t>& dependent);

/// The same, and the columns that are kept to the front of Q.
template <class T>
void drop_columns(TallPlace<T>& q, MatrixView<T> r, const std::vector<std::int64_t>& dependent);

/// Random columns in the places of dependent ones, orthonormalized with the others, which are so
/// already and change by rounding alone. `again` orthonormalizes Q, where it lies.
template <class T>
void fill_columns(TallPlace<T>& q, QrInfo& info, const std::function<Orthonormalized()>& again);

}  // namespace strata
