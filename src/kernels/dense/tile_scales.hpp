#pragma once
// TileScales: by which powers of two tiles of few bits are multiplied before they are rounded.
//
// Contract: the values of a run of gemm, syrk, convert and tile_inverse.hpp; absent: all 0. A tile
// in fp16 or fp16x2 holds 2^fp16 times its matrix, a tile in fp8 2^fp8 times: one power for all
// tiles of a run, so that sums over many tiles need no rescaling, and so that scaling is exact. A
// tile in fp8 lies row by row (ld = its columns), as the tensor cores read it; all others column by
// column.
//
// Tensor cores cut off what they add (H200): a sum of 2048 products of one sign comes out too small
// by about 3e-6 of it, and in proportion to its length. Where that matters sums are formed in
// pieces, which are added in fp32, rounded to nearest.

#include <cmath>
#include <cstdint>

#include "kernels/backend/kernel_table.hpp"

namespace strata {

struct TileScales {
  int fp16 = 0;  ///< exponent
  int fp8 = 0;
  int inverse = 0;  ///< of the inverses of diagonal tiles, in fp16x2
  int sum = 0;      ///< of tiles that are multiplied by them
  /// The longest sum at once of products of 22 bits, on tensor cores; see longest_sum().
  std::int64_t longest = 2048;

  /// What a tile in this element is multiplied by.
  [[nodiscard]] double of(Element element) const {
    if (element == Element::fp16 || element == Element::fp16x2) return std::ldexp(1.0, fp16);
    return element == Element::fp8 ? std::ldexp(1.0, fp8) : 1.0;
  }
};

/// Longest sum at once in products below the diagonal, by the accuracy of a factorization: a piece
/// of 512, a quarter of a tile, costs a tenth of the rate. On the diagonal sums are always shorter:
/// there all terms have one sign, and errors add up to a change of the determinant.
[[nodiscard]] constexpr std::int64_t longest_sum(double accuracy) {
  return accuracy < 3e-6 ? 512 : 2048;
}
inline constexpr std::int64_t kLongestDiagonalSum = 128;

[[nodiscard]] inline TileScales scales_of(const KernelParameters& parameters) {
  return parameters.values == nullptr ? TileScales{}
                                      : *static_cast<const TileScales*>(parameters.values);
}

}  // namespace strata
