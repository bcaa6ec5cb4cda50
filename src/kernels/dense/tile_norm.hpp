#pragma once
// tile_norm: how large a tile is. block_norms: how large the blocks are that it is cut into.
//
// Contract: operands T (2 × 2 fp64, written: TileNorm) and X (m × n in fp64 or fp32). Squares and
// sums are fp64. The order of the sum follows from m and n alone. A unit of work is a
// floating-point operation; reading X is what takes time.
//
// With block_norms T is 2 × 2·b or wider, packed, and holds a TileNorm for each of the b blocks of
// X, column of blocks by column; X is fp64. Its variant is the order of a block, at least 1; those
// at the end of X are smaller. With kBlockNormsLower X is lower triangular: what is above its
// diagonal is not read, the norm of a block that lies there is 0, and those on the diagonal tell
// the least pivot. The sum of a block follows from X's extents and its place in X.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// What tile_norm tells about a tile.
struct TileNorm {
  double square = 0;   ///< Σ x_ij²; not finite if the tile is not
  double largest = 0;  ///< max |x_ij|, over the entries that are not NaN
  /// min x_ii², where block_norms is told that the block is on the diagonal of a factor; else 0.
  double least_pivot = 0;
  double unused = 0;
};
inline constexpr std::int64_t kTileNormOrder = 2;
static_assert(sizeof(TileNorm) == kTileNormOrder * kTileNormOrder * sizeof(double));

inline constexpr Operation tile_norm{.name = "tile_norm",
                                     .operands = 2,
                                     .access = {Access::write, Access::read},
                                     .work =
                                         [](std::span<const BlockExtent> x, std::uint32_t) {
                                           return 2 * static_cast<double>(x[1].rows) *
                                                  static_cast<double>(x[1].cols);
                                         },
                                     .flops_per_work = 0,
                                     .nominal_cost = 25};

inline constexpr std::uint32_t kBlockNormsLower = 1U << 30;
inline constexpr Operation block_norms{.name = "block_norms",
                                       .operands = 2,
                                       .access = {Access::write, Access::read},
                                       .work = tile_norm.work,
                                       .flops_per_work = 0,
                                       .nominal_cost = 25};

/// A block of a tile, for block_norms.
struct NormBlock {
  std::int64_t row = 0;  ///< of its first element, in X
  std::int64_t col = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
/// How many blocks a side of so many elements is cut into.
[[nodiscard]] constexpr std::int64_t norm_blocks(std::int64_t elements,
                                                 std::int64_t order) noexcept {
  return (elements + order - 1) / order;
}
/// Block number b of an m × n tile.
[[nodiscard]] constexpr NormBlock norm_block(std::int64_t b, std::int64_t m, std::int64_t n,
                                             std::int64_t order) noexcept {
  const std::int64_t row = b % norm_blocks(m, order) * order;
  const std::int64_t col = b / norm_blocks(m, order) * order;
  return {row, col, row + order < m ? order : m - row, col + order < n ? order : n - col};
}
/// The order that a variant names.
[[nodiscard]] constexpr std::int64_t norm_block_order(std::uint32_t variant) noexcept {
  return variant & (kBlockNormsLower - 1);
}

void block_norms_reference(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);
void block_norms_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void block_norms_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

/// In plain loops. T: double, float.
template <class T>
void tile_norm_reference(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters);
/// For the CPU. T: double, float.
template <class T>
void tile_norm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For a GPU. T: double, float.
template <class T>
void tile_norm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
