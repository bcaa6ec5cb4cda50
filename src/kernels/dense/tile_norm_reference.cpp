// Reference tile_norm.

#include <cmath>
#include <limits>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/tile_norm.hpp"

namespace strata {

template <class T>
void tile_norm_reference(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters) {
  require_variant(tile_norm, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto tile = matrix_of<const T>(x[1]);
    TileNorm norm;
    for (std::int64_t j = 0; j < tile.cols; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        const auto value = static_cast<double>(tile(i, j));
        norm.square += value * value;
        norm.largest = std::fmax(norm.largest, std::fabs(value));
      }
    }
    *static_cast<TileNorm*>(x[0].data) = norm;
  });
}

void block_norms_reference(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  const std::int64_t order = norm_block_order(parameters.variant);
  require_variant(block_norms, order > 0 ? parameters.variant : ~0U, ~(1U << 31));
  const bool lower = (parameters.variant & kBlockNormsLower) != 0;
  submit_each(queue, calls, [order, lower](const BlockView* x) {
    const auto tile = matrix_of<const double>(x[1]);
    auto* norms = static_cast<TileNorm*>(x[0].data);
    const std::int64_t count = norm_blocks(tile.rows, order) * norm_blocks(tile.cols, order);
    for (std::int64_t b = 0; b < count; ++b) {
      const NormBlock block = norm_block(b, tile.rows, tile.cols, order);
      TileNorm norm;
      const bool pivots = lower && block.row == block.col;
      if (pivots) norm.least_pivot = std::numeric_limits<double>::infinity();
      for (std::int64_t j = block.col; j < block.col + block.cols; ++j) {
        for (std::int64_t i = block.row; i < block.row + block.rows; ++i) {
          if (lower && i < j) continue;
          const double value = tile(i, j);
          norm.square += value * value;
          norm.largest = std::fmax(norm.largest, std::fabs(value));
          if (i == j && pivots) norm.least_pivot = std::fmin(norm.least_pivot, value * value);
        }
      }
      norms[b] = norm;
    }
  });
}

template void tile_norm_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void tile_norm_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
