#pragma once
// The triangular factor that least squares are solved and refined with.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dense/square_matrix.hpp"

namespace strata {

/// A triangle of A's scaled columns, and how good it is.
struct LeastSquaresFactor {
  SquareMatrix<DoubleDouble> r;  ///< n × n; rows of dependent columns are zeros
  std::vector<std::int64_t> dependent;
  double condition = 1;    ///< of A, from above
  double contraction = 0;  ///< ‖I − R⁻ᵀAᵀA·R⁻¹‖, from above

  [[nodiscard]] bool is_dropped(std::int64_t j) const {
    return std::binary_search(dependent.begin(), dependent.end(), j);
  }
  /// z ← R⁻¹·z, zeros where columns are dependent.
  void substitute_back(std::vector<DoubleDouble>& z) const {
    for (std::int64_t i = r.n - 1; i >= 0; --i) {
      DoubleDouble& value = z[static_cast<std::size_t>(i)];
      if (is_dropped(i)) {
        value = DoubleDouble();
        continue;
      }
      for (std::int64_t j = i + 1; j < r.n; ++j)
        value = subtract_product(value, r(i, j), z[static_cast<std::size_t>(j)]);
      value = value / r(i, i);
    }
  }
  /// z ← R⁻ᵀ·z, the same.
  void substitute_forward(std::vector<DoubleDouble>& z) const {
    for (std::int64_t i = 0; i < r.n; ++i) {
      DoubleDouble& value = z[static_cast<std::size_t>(i)];
      if (is_dropped(i)) {
        value = DoubleDouble();
        continue;
      }
      for (std::int64_t j = 0; j < i; ++j)
        value = subtract_product(value, r(j, i), z[static_cast<std::size_t>(j)]);
      value = value / r(i, i);
    }
  }
};

}  // namespace strata
