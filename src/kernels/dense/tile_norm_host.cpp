// tile_norm on the CPU: the sum of each column in sixteen partial sums, which the compiler makes
// vectors of, added as a tree; so are those of a block.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/backend/operand.hpp"
#include "kernels/backend/partial_sums.hpp"
#include "kernels/dense/tile_norm.hpp"

namespace strata {
namespace {

template <class T>
void add_column(const T* x, std::int64_t rows, std::array<double, kPartialSums>& sums, T& largest) {
  constexpr auto kStride = static_cast<std::int64_t>(kPartialSums);
  std::array<T, kPartialSums> top{};
  std::int64_t i = 0;
  for (; i + kStride <= rows; i += kStride) {
    for (std::size_t p = 0; p < kPartialSums; ++p) {
      const T value = x[i + static_cast<std::int64_t>(p)];
      sums[p] += static_cast<double>(value) * static_cast<double>(value);
      const T size = std::abs(value);
      top[p] = size > top[p] ? size : top[p];
    }
  }
  for (; i < rows; ++i) {
    sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    top[0] = std::abs(x[i]) > top[0] ? std::abs(x[i]) : top[0];
  }
  largest = std::max(largest, *std::max_element(top.begin(), top.end()));
}

}  // namespace

template <class T>
void tile_norm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(tile_norm, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto tile = matrix_of<const T>(x[1]);
    std::array<double, kPartialSums> sums{};
    T largest{};
    for (std::int64_t j = 0; j < tile.cols; ++j)
      add_column(tile.column(j), tile.rows, sums, largest);
    add_as_tree(sums);
    *static_cast<TileNorm*>(x[0].data) = {sums[0], static_cast<double>(largest)};
  });
}

void block_norms_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  const std::int64_t order = norm_block_order(parameters.variant);
  require_variant(block_norms, order > 0 ? parameters.variant : ~0U, ~(1U << 31));
  const bool lower = (parameters.variant & kBlockNormsLower) != 0;
  submit_each(queue, calls, [order, lower](const BlockView* x) {
    const auto tile = matrix_of<const double>(x[1]);
    auto* norms = static_cast<TileNorm*>(x[0].data);
    const std::int64_t count = norm_blocks(tile.rows, order) * norm_blocks(tile.cols, order);
    for (std::int64_t b = 0; b < count; ++b) {
      const NormBlock block = norm_block(b, tile.rows, tile.cols, order);
      const std::int64_t end = block.row + block.rows;
      std::array<double, kPartialSums> sums{};
      double largest = 0;
      const bool pivots = lower && block.row == block.col;
      double least = pivots ? std::numeric_limits<double>::infinity() : 0;
      for (std::int64_t j = block.col; j < block.col + block.cols; ++j) {
        const std::int64_t first = lower ? std::max(block.row, j) : block.row;
        if (first >= end) continue;
        add_column(tile.column(j) + first, end - first, sums, largest);
        if (pivots) least = std::fmin(least, tile(j, j) * tile(j, j));
      }
      add_as_tree(sums);
      norms[b] = {sums[0], largest, least};
    }
  });
}

template void tile_norm_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void tile_norm_host<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
