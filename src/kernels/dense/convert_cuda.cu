// convert on a GPU: squares of 32 × 32 elements, a thread block each, which go through shared
// memory, so that both the reads and the writes of neighbouring threads are neighbours whether a
// tile lies column by column or row by row.

#include <algorithm>
#include <string>

#include "device/device_cuda.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/formats_cuda.hpp"
#include "strata/error.hpp"

namespace strata {
namespace formats {
namespace {

constexpr int kSquare = 32;
constexpr int kThreadRows = 8;
constexpr std::int64_t kGridMax = 65535;

/// 24 bits and fewer fit float, and are faster in it; the two planes of fp16x2 need not.
template <Element kFrom>
using Wide = std::conditional_t<kFrom == Element::fp64 || kFrom == Element::fp16x2, double, float>;

template <Element kTo, Element kFrom>
__global__ void __launch_bounds__(kSquare* kThreadRows)
    convert_kernel(TileLayout to, TileLayout from) {
  using W = Wide<kFrom>;
  __shared__ W square[kSquare][kSquare + 1];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const bool from_rows = from.col_step == 1 && from.row_step != 1;
  const bool to_rows = to.col_step == 1 && to.row_step != 1;
  const std::int64_t i0 = static_cast<std::int64_t>(blockIdx.x) * kSquare;
  for (std::int64_t j0 = static_cast<std::int64_t>(blockIdx.y) * kSquare; j0 < to.cols;
       j0 += static_cast<std::int64_t>(gridDim.y) * kSquare) {
    for (int s = y; s < kSquare; s += kThreadRows) {
      const int i = from_rows ? s : x;  // x runs along what is contiguous
      const int j = from_rows ? x : s;
      if (i0 + i < to.rows && j0 + j < to.cols) square[i][j] = load<kFrom, W>(from, i0 + i, j0 + j);
    }
    __syncthreads();
    for (int s = y; s < kSquare; s += kThreadRows) {
      const int i = to_rows ? s : x;
      const int j = to_rows ? x : s;
      if (i0 + i < to.rows && j0 + j < to.cols) store<kTo, W>(to, i0 + i, j0 + j, square[i][j]);
    }
    __syncthreads();  // before the next square is read
  }
}

template <Element kTo, Element kFrom>
void launch(cudaStream_t stream, const TileLayout& to, const TileLayout& from) {
  const dim3 threads(kSquare, kThreadRows);
  const dim3 blocks(static_cast<unsigned>((to.rows + kSquare - 1) / kSquare),
                    static_cast<unsigned>(std::min((to.cols + kSquare - 1) / kSquare, kGridMax)));
  convert_kernel<kTo, kFrom><<<blocks, threads, 0, stream>>>(to, from);
  require_cuda(cudaGetLastError(), "convert");
}

template <Element kTo>
void launch_from(cudaStream_t stream, const TileLayout& to, const TileLayout& from,
                 Element element) {
  switch (element) {
    case Element::fp64: return launch<kTo, Element::fp64>(stream, to, from);
    case Element::fp32: return launch<kTo, Element::fp32>(stream, to, from);
    case Element::fp16x2: return launch<kTo, Element::fp16x2>(stream, to, from);
    case Element::fp16: return launch<kTo, Element::fp16>(stream, to, from);
    case Element::fp8: return launch<kTo, Element::fp8>(stream, to, from);
    default: break;
  }
  throw Error(ErrorKind::device, "convert",
              "there is no kernel from " + std::string(to_string(element)));
}

}  // namespace

void convert_tile(cudaStream_t stream, const BlockView& to, const BlockView& from,
                  const TileScales& scales) {
  if (to.rows == 0 || to.cols == 0) return;
  const TileLayout y = layout_of(to, scales);
  const TileLayout x = layout_of(from, scales);
  switch (to.element) {
    case Element::fp64: return launch_from<Element::fp64>(stream, y, x, from.element);
    case Element::fp32: return launch_from<Element::fp32>(stream, y, x, from.element);
    case Element::fp16x2: return launch_from<Element::fp16x2>(stream, y, x, from.element);
    case Element::fp16: return launch_from<Element::fp16>(stream, y, x, from.element);
    case Element::fp8: return launch_from<Element::fp8>(stream, y, x, from.element);
    default: break;
  }
  throw Error(ErrorKind::device, "convert",
              "there is no kernel to " + std::string(to_string(to.element)));
}

}  // namespace formats

void convert_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(convert, parameters.variant, 0);
  const TileScales scales = scales_of(parameters);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t i = 0; i < calls.count(); ++i)
    formats::convert_tile(stream, calls[i][0], calls[i][1], scales);
}

}  // namespace strata
