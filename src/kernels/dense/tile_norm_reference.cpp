// Reference tile_norm.

#include <cmath>

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

template void tile_norm_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void tile_norm_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
