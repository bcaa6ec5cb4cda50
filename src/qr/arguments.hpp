#pragma once
// What is common to the calls of strata/qr.hpp before and after a method.
//
// Contract: T is double or float. Throws Error{misuse} as strata/qr.hpp says.

#include <algorithm>
#include <limits>

#include "dense/square_matrix.hpp"
#include "strata/qr.hpp"

namespace strata {

template <class T>
void check_arguments(const TallInput<T>& v, MatrixView<T> r, const QrOptions& options);

/// What is known of a V without columns.
[[nodiscard]] QrInfo info_of_nothing(const QrOptions& options);

/// R in the caller's precision, zeros below its diagonal. An element is beyond the largest number
/// by rounding alone: lengths that are beyond it were refused.
template <class T>
void round_triangle(const SquareMatrix<DoubleDouble>& wide, MatrixView<T> r) {
  constexpr auto kMost = static_cast<double>(std::numeric_limits<T>::max());
  for (std::int64_t j = 0; j < r.cols; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i)
      r(i, j) = i <= j ? static_cast<T>(std::clamp(wide(i, j).hi, -kMost, kMost)) : T(0);
  }
}

}  // namespace strata
