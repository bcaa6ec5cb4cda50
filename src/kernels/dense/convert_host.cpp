// convert on the CPU. What is to be rounded is widened to double first, if it is in few bits:
// exactly, so that there is one rounding.

#include <vector>

#include "kernels/dense/convert.hpp"
#include "kernels/dense/formats_host.hpp"

namespace strata {
namespace {

template <class T>
void convert_from(const BlockView& to, const BlockView& from, const TileScales& scales) {
  thread_local std::vector<T> wide;
  thread_local std::vector<T> columns;
  const WideTile<T> tile = widened(from, scales, wide);
  const bool packed = !tile.transposed && tile.view.ld == from.rows;
  if (packed) return round_tile(tile.view.data, to, scales);
  columns.resize(static_cast<std::size_t>(from.rows * from.cols));
  for (std::int64_t j = 0; j < from.cols; ++j) {
    for (std::int64_t i = 0; i < from.rows; ++i)
      columns[static_cast<std::size_t>(i + j * from.rows)] =
          tile.transposed ? tile.view(j, i) : tile.view(i, j);
  }
  round_tile(columns.data(), to, scales);
}

}  // namespace

void convert_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(convert, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    if (x[0].rows == 0 || x[0].cols == 0) return;
    // fp16x2 has up to 22 bits, but its planes may be far apart: only double holds all of it.
    if (x[1].element == Element::fp64 || x[1].element == Element::fp16x2) {
      convert_from<double>(x[0], x[1], scales);
    } else {
      convert_from<float>(x[0], x[1], scales);
    }
  });
}

}  // namespace strata
