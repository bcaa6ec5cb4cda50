// tile_norm on the CPU: the sum of each column in sixteen partial sums, which the compiler makes
// vectors of, added as a tree.

#include <algorithm>
#include <array>
#include <cmath>

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
    *static_cast<TileNorm*>(x[0].data) = {sums[0], static_cast<double>(largest), {}};
  });
}

template void tile_norm_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void tile_norm_host<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
