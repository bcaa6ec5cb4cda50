#pragma once
// The tasks that tell how large the blocks of a factor are, where its tiles lie.
//
// Contract: emits tasks only. L is in fp64, in tiles of one precision; its blocks are of an order
// that divides the tiles'. What is above its diagonal counts as zeros.

#include "cholesky/tile_cholesky.hpp"
#include "kernels/dense/tile_norm.hpp"

namespace strata {

/// The families of the schedule.
namespace factor_norms {
inline constexpr int kFactor = 0;
inline constexpr int kNorms = 1;  ///< of tile (m, k) block (m, k), TileNorms as of block_norms
}  // namespace factor_norms

/// Throws Error{misuse} for another precision, or an order that is none.
[[nodiscard]] Schedule norms_of_factor(const CholeskyProblem& factor, std::int64_t order);

}  // namespace strata
