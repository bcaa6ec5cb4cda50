#pragma once
// What elimination looks at before and after it factors a panel, the same on every host backend.
//
// Contract: `a` is the whole panel, n × b, `first` the row of its diagonal.

#include <algorithm>
#include <limits>

#include "kernels/dense/getrf.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// The largest of `count` elements as PanelStatus has it; infinity if one of them is not finite.
template <class T>
[[nodiscard]] double largest_of_column(const T* x, std::int64_t count) noexcept {
  constexpr double kMost = std::numeric_limits<RealOf<T>>::max();
  double largest = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = pivot_size(x[i]);
    if constexpr (is_complex_v<T>) {  // their sum may overflow where both are finite
      finite &= std::abs(x[i].real()) <= kMost;
      finite &= std::abs(x[i].imag()) <= kMost;
    } else {
      finite &= size <= kMost;
    }
    largest = size > largest ? size : largest;
  }
  return finite ? std::min(largest, kMost) : std::numeric_limits<double>::infinity();
}

/// Before: the largest element that is to be eliminated.
template <class T>
[[nodiscard]] double largest_to_factor(MatrixView<const T> a, std::int64_t first) {
  double largest = 0;
  for (std::int64_t j = 0; j < a.cols; ++j)
    largest = std::max(largest, largest_of_column(a.column(j) + first, a.rows - first));
  return largest;
}

/// Afterwards: what was not finite before still is, in U where it was a pivot.
template <class T>
[[nodiscard]] PanelStatus status_of_panel(MatrixView<const T> a, std::int64_t first,
                                          double largest_before) {
  PanelStatus status;
  status.largest = largest_before;
  status.smallest_pivot = std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < a.cols; ++j) {
    const double of_u = largest_of_column(a.column(j), first + j + 1);
    const double of_l = largest_of_column(a.column(j) + first + j + 1, a.rows - first - j - 1);
    const double pivot = pivot_size(a(first + j, j));
    status.largest = std::max(status.largest, of_u);
    status.smallest_pivot = std::min(status.smallest_pivot, pivot);
    if (pivot == 0 && status.zero_pivot < 0) status.zero_pivot = static_cast<double>(j);
    if (std::isinf(std::max(of_u, of_l)) && status.not_finite < 0)
      status.not_finite = static_cast<double>(j);
  }
  return status;
}

/// The same of a block without a diagonal, beside what was met in it before.
template <class T>
[[nodiscard]] PanelStatus status_of_block(MatrixView<const T> x, double largest_before) {
  PanelStatus status;
  status.largest = largest_before;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const double largest = largest_of_column(x.column(j), x.rows);
    status.largest = std::max(status.largest, largest);
    if (std::isinf(largest) && status.not_finite < 0) status.not_finite = static_cast<double>(j);
  }
  return status;
}

/// Statuses of a pair (stripe_pair.hpp) behind its elimination: operands 1, U's, with what was met
/// before, and 5, of multipliers.
template <class T>
void set_statuses_of_pair(MatrixView<const T> d, MatrixView<const T> x, MatrixView<const T> w,
                          const BlockView* operands) {
  auto& of_u = *static_cast<PanelStatus*>(operands[1].data);
  of_u = status_of_panel<T>(d, 0, of_u.largest);
  double largest = 0;
  for (std::int64_t j = 0; j < w.cols; ++j)
    largest = std::max(largest, largest_of_column(w.column(j), w.rows));
  *static_cast<PanelStatus*>(operands[5].data) = status_of_block<T>(x, largest);
}

}  // namespace strata
