#pragma once
// Numbers of few bits on the GPU: the value of an element of a tile, and rounding to it.
//
// Contract: as tile_scales.hpp; roundings as src/scalar has them, to nearest, ties to even, from
// double or float at once. Only for *_cuda.cu.

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/tile_scales.hpp"

namespace strata::formats {

/// How threads see a tile: the element (i, j) is at i·row_step + j·col_step, and its second plane
/// `plane` elements further.
struct TileLayout {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_step = 1;
  std::int64_t col_step = 1;
  std::int64_t plane = 0;
  double scale = 1;
  double inverse = 1;
};

[[nodiscard]] inline TileLayout layout_of(const BlockView& x, const TileScales& scales) {
  TileLayout tile{x.data, x.rows, x.cols, 1, x.ld, x.rows * x.cols};
  if (x.element == Element::fp8) {
    tile.row_step = x.cols;
    tile.col_step = 1;
  }
  tile.scale = scales.of(x.element);
  tile.inverse = 1 / tile.scale;
  return tile;
}

/// A double or float as what is stored of it, and back. W is the type of the numbers.
template <Element kElement, class W>
__device__ W load(const TileLayout& x, std::int64_t i, std::int64_t j) {
  const std::int64_t at = i * x.row_step + j * x.col_step;
  if constexpr (kElement == Element::fp64) {
    return static_cast<W>(static_cast<const double*>(x.data)[at]);
  } else if constexpr (kElement == Element::fp32) {
    return static_cast<W>(static_cast<const float*>(x.data)[at]);
  } else if constexpr (kElement == Element::fp16) {
    return static_cast<W>(__half2float(static_cast<const __half*>(x.data)[at])) *
           static_cast<W>(x.inverse);
  } else if constexpr (kElement == Element::fp8) {
    const __nv_fp8_e4m3 value = static_cast<const __nv_fp8_e4m3*>(x.data)[at];
    return static_cast<W>(static_cast<float>(value)) * static_cast<W>(x.inverse);
  } else {
    const __half* hi = static_cast<const __half*>(x.data) + at;
    return (static_cast<W>(__half2float(hi[0])) + static_cast<W>(__half2float(hi[x.plane]))) *
           static_cast<W>(x.inverse);
  }
}

__device__ inline __half rounded(double value) { return __double2half(value); }
__device__ inline __half rounded(float value) { return __float2half_rn(value); }
__device__ inline __nv_fp8_storage_t rounded_fp8(double value) {
  return __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}
__device__ inline __nv_fp8_storage_t rounded_fp8(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

template <Element kElement, class W>
__device__ void store(const TileLayout& x, std::int64_t i, std::int64_t j, W value) {
  const std::int64_t at = i * x.row_step + j * x.col_step;
  if constexpr (kElement == Element::fp64) {
    static_cast<double*>(x.data)[at] = static_cast<double>(value);
  } else if constexpr (kElement == Element::fp32) {
    static_cast<float*>(x.data)[at] = static_cast<float>(value);
  } else if constexpr (kElement == Element::fp16) {
    static_cast<__half*>(x.data)[at] = rounded(value * static_cast<W>(x.scale));
  } else if constexpr (kElement == Element::fp8) {
    static_cast<__nv_fp8_storage_t*>(x.data)[at] = rounded_fp8(value * static_cast<W>(x.scale));
  } else {
    const W scaled = value * static_cast<W>(x.scale);
    __half* to = static_cast<__half*>(x.data) + at;
    const __half hi = rounded(scaled);
    const W rest = scaled - static_cast<W>(__half2float(hi));
    to[0] = hi;
    to[x.plane] = isfinite(rest) ? rounded(rest) : __half(0.0F);
  }
}

/// Y ← X. Throws Error{device} for a pair that kConversions does not name.
void convert_tile(cudaStream_t stream, const BlockView& to, const BlockView& from,
                  const TileScales& scales);

}  // namespace strata::formats
