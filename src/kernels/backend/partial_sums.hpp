#pragma once
// Sums in partial sums beside each other, which the compiler makes vectors of.

#include <array>
#include <cstddef>

namespace strata {

inline constexpr std::size_t kPartialSums = 16;

/// Adds them as a tree; the sum is in the first.
inline void add_as_tree(std::array<double, kPartialSums>& part) {
  for (std::size_t half = kPartialSums / 2; half > 0; half /= 2) {
    for (std::size_t p = 0; p < half; ++p) part[p] += part[p + half];
  }
}

}  // namespace strata
