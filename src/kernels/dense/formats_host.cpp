#include "kernels/dense/formats_host.hpp"

#include <algorithm>
#include <type_traits>

#include "base/check.hpp"

namespace strata {
namespace {

/// Xᵀ of a packed rows × cols matrix, in blocks that stay in the cache.
template <class T>
void transpose(const T* from, T* to, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t jb = 0; jb < cols; jb += kBlock) {
    for (std::int64_t ib = 0; ib < rows; ib += kBlock) {
      for (std::int64_t j = jb; j < std::min(jb + kBlock, cols); ++j) {
        for (std::int64_t i = ib; i < std::min(ib + kBlock, rows); ++i)
          to[j + i * cols] = from[i + j * rows];
      }
    }
  }
}

/// The other of float and double.
template <class T>
using Other = std::conditional_t<std::is_same_v<T, double>, float, double>;

}  // namespace

template <class T>
WideTile<T> widened(const BlockView& x, const TileScales& scales, std::vector<T>& memory) {
  if (x.element == element_of<T>) return {matrix_of<const T>(x), false};
  const std::int64_t n = x.rows * x.cols;
  memory.resize(static_cast<std::size_t>(n));
  T* to = memory.data();
  const double scale = scales.of(x.element);
  const auto unscale = [&] {
    if (scale == 1) return;
    const T factor = static_cast<T>(1 / scale);
    for (std::int64_t i = 0; i < n; ++i) to[i] *= factor;
  };
  const MatrixView<const T> columns{to, x.rows, x.cols, std::max<std::int64_t>(x.rows, 1)};
  switch (x.element) {
    case Element::fp8:
      widen(static_cast<const Fp8*>(x.data), to, n);
      unscale();
      return {{to, x.cols, x.rows, std::max<std::int64_t>(x.cols, 1)}, true};
    case Element::fp16:
      for (std::int64_t j = 0; j < x.cols; ++j)
        widen(static_cast<const Half*>(x.data) + j * x.ld, to + j * x.rows, x.rows);
      unscale();
      return {columns, false};
    case Element::fp16x2: {
      const auto* hi = static_cast<const Half*>(x.data);
      join(hi, hi + n, scale, to, n);
      return {columns, false};
    }
    case Element::fp64:
    case Element::fp32: {
      const auto from = matrix_of<const Other<T>>(x);
      for (std::int64_t j = 0; j < x.cols; ++j)
        std::transform(from.column(j), from.column(j) + x.rows, to + j * x.rows,
                       [](Other<T> value) { return static_cast<T>(value); });
      return {columns, false};
    }
    default: break;
  }
  fail(ErrorKind::misuse, "kernels", "a tile in {} is not for arithmetic", to_string(x.element));
}

template <class T>
void round_tile(const T* from, const BlockView& tile, const TileScales& scales) {
  const std::int64_t n = tile.rows * tile.cols;
  const double scale = scales.of(tile.element);
  const auto each_column = [&]<class To>(To* to) {
    for (std::int64_t j = 0; j < tile.cols; ++j)
      std::transform(from + j * tile.rows, from + (j + 1) * tile.rows, to + j * tile.ld,
                     [](T value) { return static_cast<To>(value); });
  };
  switch (tile.element) {
    case Element::fp8: {
      thread_local std::vector<T> rows;
      rows.resize(static_cast<std::size_t>(n));
      transpose(from, rows.data(), tile.rows, tile.cols);
      (void)round_to(rows.data(), scale, static_cast<Fp8*>(tile.data), n);
      return;
    }
    case Element::fp16:
      for (std::int64_t j = 0; j < tile.cols; ++j)
        (void)round_to(from + j * tile.rows, scale, static_cast<Half*>(tile.data) + j * tile.ld,
                       tile.rows);
      return;
    case Element::fp16x2: {
      auto* hi = static_cast<Half*>(tile.data);
      (void)split(from, scale, hi, hi + n, n);
      return;
    }
    case Element::fp64: return each_column(static_cast<double*>(tile.data));
    case Element::fp32: return each_column(static_cast<float*>(tile.data));
    default: break;
  }
  fail(ErrorKind::misuse, "kernels", "a tile in {} is not for arithmetic", to_string(tile.element));
}

template WideTile<double> widened(const BlockView&, const TileScales&, std::vector<double>&);
template WideTile<float> widened(const BlockView&, const TileScales&, std::vector<float>&);
template void round_tile(const double*, const BlockView&, const TileScales&);
template void round_tile(const float*, const BlockView&, const TileScales&);

}  // namespace strata
