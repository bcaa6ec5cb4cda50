#pragma once
// The kinds of sketch.hpp on a CPU, for any product of a tile with Ω.
//
// Contract: Products::add_tile(seed, x, ld, rows, n, first_row, s, s_rows) adds Ω·x of at most
// kSketchTileRows rows to the packed s (s_rows × n). For files compiled with -ffp-contract=off.

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/operand.hpp"
#include "kernels/sketch.hpp"
#include "scalar/dispatch.hpp"
#include "scalar/double_double.hpp"
#include "scalar/half.hpp"

namespace strata {

/// X, packed.
inline std::vector<double> scaled_block(const BlockView& v, const double* d) {
  std::vector<double> x(static_cast<std::size_t>(v.rows * v.cols));
  dispatch_native(v.element, [&]<class T>(std::type_identity<T>) {
    const auto from = matrix_of<const T>(v);
    for (std::int64_t j = 0; j < v.cols; ++j) {
      for (std::int64_t r = 0; r < v.rows; ++r)
        x[static_cast<std::size_t>(r + j * v.rows)] = static_cast<double>(from(r, j)) * d[j];
    }
  });
  return x;
}

/// The transform of one column in Real, in place.
template <class Real>
void walsh_hadamard(std::vector<Real>& y) {
  const auto rows = std::ssize(y);
  for (std::int64_t distance = 1; distance < rows; distance *= 2) {
    for (std::int64_t first = 0; first < rows; first += 2 * distance) {
      Real* a = y.data() + first;
      Real* b = a + distance;
      for (std::int64_t r = 0; r < distance; ++r) {
        const Real sum = a[r] + b[r];
        b[r] = a[r] - b[r];
        a[r] = sum;
      }
    }
  }
}

inline float through_half(float x) { return static_cast<float>(Half(x)); }

/// Column x of a block into column s of its sketch.
template <class Real>
void transform_column(const double* x, std::int64_t rows, std::int64_t first_row,
                      std::uint32_t variant, double* s, std::int64_t s_rows) {
  const bool half = sketch_kind(variant) == SketchKind::srht_fp16;
  const std::uint64_t signs = sketch_seed(variant, SketchStream::sign);
  const std::uint64_t samples = sketch_seed(variant, SketchStream::sample);
  double largest = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    largest = std::abs(x[r]) > largest ? std::abs(x[r]) : largest;
  const auto power =
      std::bit_cast<double>(sketch_power_bits(std::bit_cast<std::uint64_t>(largest)));
  std::vector<Real> y(static_cast<std::size_t>(sketch_transform_rows(rows)));
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto value = static_cast<Real>(x[r] * power * sketch_sign(signs, first_row + r));
    y[static_cast<std::size_t>(r)] =
        half ? static_cast<Real>(through_half(static_cast<float>(value))) : value;
  }
  walsh_hadamard(y);
  const double shift = std::ldexp(1.0, sketch_half_shift(std::ssize(y)));
  for (std::int64_t i = 0; i < s_rows; ++i) {
    auto value = static_cast<double>(
        y[static_cast<std::size_t>(sketch_sample(samples, first_row, i, std::ssize(y)))]);
    if (half) value = static_cast<double>(through_half(static_cast<float>(value / shift))) * shift;
    s[i] = value / power;
  }
}

template <class Products>
void gaussian_sketch(std::uint64_t seed, const std::vector<double>& x, std::int64_t rows,
                     std::int64_t n, std::int64_t first_row, std::vector<double>& s,
                     std::int64_t s_rows) {
  for (std::int64_t r = 0; r < rows; r += kSketchTileRows)
    Products::add_tile(seed, x.data() + r, rows, std::min<std::int64_t>(kSketchTileRows, rows - r),
                       n, first_row + r, s.data(), s_rows);
}

inline std::vector<double> count_sketch(std::uint32_t variant, const std::vector<double>& x,
                                        std::int64_t rows, std::int64_t n, std::int64_t first_row) {
  const std::int64_t buckets = sketch_buckets(n);
  const std::uint64_t places = sketch_seed(variant, SketchStream::bucket);
  const std::uint64_t signs = sketch_seed(variant, SketchStream::sign);
  std::vector<double> c(static_cast<std::size_t>(buckets * n));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t bucket = sketch_bucket(places, first_row + r, buckets);
    const double sign = sketch_sign(signs, first_row + r);
    for (std::int64_t j = 0; j < n; ++j)
      c[static_cast<std::size_t>(bucket + j * buckets)] +=
          sign * x[static_cast<std::size_t>(r + j * rows)];
  }
  return c;
}

template <class Products>
void sketch_block(const BlockView& s_block, const BlockView& v, const double* d,
                  std::uint32_t variant) {
  const std::vector<double> x = scaled_block(v, d);
  const std::int64_t s_rows = s_block.rows;
  const std::int64_t n = v.cols;
  std::vector<double> s(static_cast<std::size_t>(s_rows * n));
  const std::uint64_t normal = sketch_seed(variant, SketchStream::normal);
  switch (sketch_kind(variant)) {
    case SketchKind::gaussian:
      gaussian_sketch<Products>(normal, x, v.rows, n, v.row, s, s_rows);
      break;
    case SketchKind::multi:
      gaussian_sketch<Products>(normal, count_sketch(variant, x, v.rows, n, v.row),
                                sketch_buckets(n), n, 0, s, s_rows);
      break;
    default:
      for (std::int64_t j = 0; j < n; ++j) {
        const auto* column = x.data() + j * v.rows;
        auto* to = s.data() + j * s_rows;
        sketch_kind(variant) == SketchKind::srht_fp64
            ? transform_column<double>(column, v.rows, v.row, variant, to, s_rows)
            : transform_column<float>(column, v.rows, v.row, variant, to, s_rows);
      }
  }
  const auto out = matrix_of<double>(s_block);
  for (std::int64_t j = 0; j < n; ++j) std::copy_n(s.data() + j * s_rows, s_rows, out.column(j));
}

template <class Products>
void sketch_on_cpu(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_sketch(parameters.variant);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    sketch_block<Products>(x[0], x[1], static_cast<const double*>(x[2].data), variant);
  });
}

}  // namespace strata
