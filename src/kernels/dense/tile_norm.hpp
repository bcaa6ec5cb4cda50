#pragma once
// tile_norm: how large a tile is.
//
// Contract: operands T (2 × 2 fp64, written: TileNorm) and X (m × n in fp64 or fp32). Squares and
// sums are fp64. The order of the sum follows from m and n alone. A unit of work is a
// floating-point operation; reading X is what takes time.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// What tile_norm tells about a tile.
struct TileNorm {
  double square = 0;   ///< Σ x_ij²; not finite if the tile is not
  double largest = 0;  ///< max |x_ij|, over the entries that are not NaN
  double unused[2] = {0, 0};
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
