#pragma once
// The matrix of the benchmarks, element by element, on the host and on a GPU.

#include <cstdint>

#include "base/random.hpp"

namespace strata::bench {

/// Symmetric positive definite: uniform in [−1, 1) off the diagonal, n on it. Indices count from 0.
constexpr double random_element(std::int64_t n, std::uint64_t seed, std::int64_t i,
                                std::int64_t j) noexcept {
  if (i == j) return static_cast<double>(n);
  const auto lo = static_cast<std::uint64_t>(i < j ? i : j);
  const auto hi = static_cast<std::uint64_t>(i < j ? j : i);
  return 2 * random_uniform(seed, hi * (hi + 1) / 2 + lo) - 1;
}

}  // namespace strata::bench
