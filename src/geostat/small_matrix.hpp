#pragma once
// Symmetric positive definite matrices of an order that fits one hand.
//
// Contract: of order k, packed by columns; nothing comes back unless the matrix is positive
// definite by more than rounding.

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace strata {

/// L in the lower triangle, zeros above.
template <class Real>
[[nodiscard]] std::optional<std::vector<Real>> factor_of_spd(std::vector<Real> a, std::size_t k) {
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = j; i < k; ++i) {
      Real sum = a[i + j * k];
      for (std::size_t m = 0; m < j; ++m) sum -= a[i + m * k] * a[j + m * k];
      if (i > j) {
        a[i + j * k] = sum / a[j + j * k];
        continue;
      }
      // What is left of a pivot that cancels is rounding.
      const Real rounding = 500 * std::numeric_limits<Real>::epsilon() * a[j + j * k];
      if (!(sum > rounding) || !std::isfinite(sum)) return std::nullopt;
      a[j + j * k] = std::sqrt(sum);
    }
    for (std::size_t i = 0; i < j; ++i) a[i + j * k] = 0;
  }
  return a;
}

/// A⁻¹·x from the factor.
template <class Real>
[[nodiscard]] std::vector<Real> solve_spd(const std::vector<Real>& l, std::vector<Real> x) {
  const std::size_t k = x.size();
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t m = 0; m < i; ++m) x[i] -= l[i + m * k] * x[m];
    x[i] /= l[i + i * k];
  }
  for (std::size_t i = k; i-- > 0;) {
    for (std::size_t m = i + 1; m < k; ++m) x[i] -= l[m + i * k] * x[m];
    x[i] /= l[i + i * k];
  }
  return x;
}

template <class Real>
[[nodiscard]] std::optional<std::vector<Real>> inverse_of_spd(std::vector<Real> a, std::size_t k) {
  const auto factor = factor_of_spd(std::move(a), k);
  if (!factor) return std::nullopt;
  std::vector<Real> inverse;
  for (std::size_t c = 0; c < k; ++c) {
    std::vector<Real> unit(k);
    unit[c] = 1;
    const std::vector<Real> column = solve_spd(*factor, std::move(unit));
    inverse.insert(inverse.end(), column.begin(), column.end());
  }
  return inverse;
}

}  // namespace strata
