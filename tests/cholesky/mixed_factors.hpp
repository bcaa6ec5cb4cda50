#pragma once
// What tests of mixed factors share.

#include <cmath>
#include <cstdint>

#include "cholesky/tile_factor.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {

/// ‖A − L·Lᵀ‖_F is ε‖A‖_F for what is rounded before the run, as much again for what rounds
/// products, and what that does to the tiles after them: up to 3.7 was measured.
inline constexpr double kTotal = 4;

/// Small problems whose last tile is not full.
inline constexpr std::int64_t kMixedTile = 16;
inline constexpr std::int64_t kMixedOrder = 11 * kMixedTile - 5;

inline Matrix<double> lower_of(TileFactor& factor) {
  Matrix<double> m(factor.problem().n, factor.problem().n);
  factor.copy_lower(m.view());
  return m;
}

}  // namespace strata::test
