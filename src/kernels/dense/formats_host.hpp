#pragma once
// Tiles in any element as arrays of float or double, and back, on the host.
//
// Contract: a tile is packed or has an ld; one in fp16x2 is packed, one in fp8 packed row by row
// (tile_scales.hpp). Scales are taken off and put on here. For host memory only.

#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/tile_scales.hpp"
#include "scalar/narrow.hpp"

namespace strata {

/// A tile as numbers of T. `transposed`: the view is of Xᵀ.
template <class T>
struct WideTile {
  MatrixView<const T> view;
  bool transposed = false;
};

/// The tile itself if it holds T, else a copy in `memory`.
template <class T>
[[nodiscard]] WideTile<T> widened(const BlockView& x, const TileScales& scales,
                                  std::vector<T>& memory);

/// Rounds `from`, packed column by column, to the tile's element, once.
template <class T>
void round_tile(const T* from, const BlockView& tile, const TileScales& scales);

}  // namespace strata
