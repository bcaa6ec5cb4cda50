#pragma once
// One element of a tile in any format, as it is written in tile_scales.hpp. Only for
// *_reference.cpp and tests.

#include <cmath>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/tile_scales.hpp"
#include "scalar/fp8.hpp"
#include "scalar/half.hpp"

namespace strata {

/// The value of element (i, j).
[[nodiscard]] inline double element_at(const BlockView& x, const TileScales& scales, std::int64_t i,
                                       std::int64_t j) {
  const double scale = scales.of(x.element);
  switch (x.element) {
    case Element::fp64: return matrix_of<const double>(x)(i, j);
    case Element::fp32: return static_cast<double>(matrix_of<const float>(x)(i, j));
    case Element::fp16:
      return static_cast<double>(static_cast<const Half*>(x.data)[i + j * x.ld]) / scale;
    case Element::fp8:
      return static_cast<double>(static_cast<const Fp8*>(x.data)[j + i * x.cols]) / scale;
    case Element::fp16x2: {
      const Half* hi = static_cast<const Half*>(x.data) + i + j * x.rows;
      return (static_cast<double>(hi[0]) + static_cast<double>(hi[x.rows * x.cols])) / scale;
    }
    default: return std::nan("");
  }
}

/// Rounds to it.
inline void set_element(const BlockView& x, const TileScales& scales, std::int64_t i,
                        std::int64_t j, double value) {
  const double scaled = value * scales.of(x.element);
  switch (x.element) {
    case Element::fp64: matrix_of<double>(x)(i, j) = value; return;
    case Element::fp32: matrix_of<float>(x)(i, j) = static_cast<float>(value); return;
    case Element::fp16: static_cast<Half*>(x.data)[i + j * x.ld] = Half(scaled); return;
    case Element::fp8: static_cast<Fp8*>(x.data)[j + i * x.cols] = Fp8(scaled); return;
    case Element::fp16x2: {
      Half* hi = static_cast<Half*>(x.data) + i + j * x.rows;
      hi[0] = Half(scaled);
      const double rest = scaled - static_cast<double>(hi[0]);
      hi[x.rows * x.cols] = std::isfinite(rest) ? Half(rest) : Half();
      return;
    }
    default: return;
  }
}

}  // namespace strata
