#pragma once
// The kinds of sketch.hpp on a CPU, for any product of a tile with Ω.
//
// Contract: Products::add_tile(seed, x, ld, rows, n, first_row, s, s_rows) adds Ω·x of at most
// kSketchTileRows rows to the packed s (s_rows × n); Products::count(x, rows, scale, places, c)
// adds the rows of a column x·scale to c, which has a place for each tile of count. For files
// compiled with -ffp-contract=off.

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/tall/sketch.hpp"
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

/// Where the rows of tiles go, and with which signs.
struct CountPlaces {
  std::vector<std::int64_t> bucket;  ///< of the first row of each tile
  std::vector<double> sign;          ///< of each row
};

inline CountPlaces count_places(std::uint32_t variant, std::int64_t first_row, std::int64_t rows,
                                std::int64_t buckets) {
  const std::uint64_t bucket_seed = sketch_seed(variant, SketchStream::bucket);
  const std::uint64_t sign_seed = sketch_seed(variant, SketchStream::sign);
  CountPlaces places;
  places.sign.reserve(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; r += kSketchCountRows) {
    const std::int64_t tile = (first_row + r) / kSketchCountRows;
    places.bucket.push_back(sketch_bucket(bucket_seed, tile, buckets));
    const std::uint32_t signs = sketch_signs(sign_seed, tile);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(kSketchCountRows, rows - r); ++i)
      places.sign.push_back((signs >> i & 1U) != 0 ? -1.0 : 1.0);
  }
  return places;
}

/// Adds `rows` rows of V from `first` on, within a span, to the packed c (buckets × n).
template <class Products>
void count_rows(const BlockView& v, std::int64_t first, std::int64_t rows, const double* d,
                std::uint32_t variant, std::int64_t buckets, double* c) {
  const CountPlaces places = count_places(variant, v.row + first, rows, buckets);
  dispatch_native(v.element, [&]<class T>(std::type_identity<T>) {
    const auto x = matrix_of<const T>(v);
    for (std::int64_t j = 0; j < v.cols; ++j)
      Products::count(x.column(j) + first, rows, d[j], places, c + j * buckets);
  });
}

/// The sketch of `count` spans from `first` on, packed.
template <class Products>
std::vector<double> count_spans(const BlockView& v, std::int64_t first, std::int64_t count,
                                const double* d, std::uint32_t variant, std::int64_t buckets) {
  if (count > 1) {
    const auto half =
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count))) / 2;
    std::vector<double> sum = count_spans<Products>(v, first, half, d, variant, buckets);
    const std::vector<double> rest =
        count_spans<Products>(v, first + half, count - half, d, variant, buckets);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += rest[k];
    return sum;
  }
  std::vector<double> c(static_cast<std::size_t>(buckets * v.cols));
  const std::int64_t span = sketch_span(buckets);
  count_rows<Products>(v, first * span, std::min(span, v.rows - first * span), d, variant, buckets,
                       c.data());
  return c;
}

template <class Products>
std::vector<double> count_sketch(const BlockView& v, const double* d, std::uint32_t variant,
                                 std::int64_t buckets) {
  const std::int64_t span = sketch_span(buckets);
  return count_spans<Products>(v, 0, std::max<std::int64_t>((v.rows + span - 1) / span, 1), d,
                               variant, buckets);
}

/// The sketch S of any kind but count, packed.
template <class Products>
std::vector<double> sketch_products(const BlockView& v, const double* d, std::uint32_t variant,
                                    std::int64_t s_rows) {
  const std::vector<double> x = scaled_block(v, d);
  const std::int64_t n = v.cols;
  std::vector<double> s(static_cast<std::size_t>(s_rows * n));
  if (sketch_kind(variant) == SketchKind::gaussian) {
    gaussian_sketch<Products>(sketch_seed(variant, SketchStream::normal), x, v.rows, n, v.row, s,
                              s_rows);
    return s;
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const auto* column = x.data() + j * v.rows;
    auto* to = s.data() + j * s_rows;
    sketch_kind(variant) == SketchKind::srht_fp64
        ? transform_column<double>(column, v.rows, v.row, variant, to, s_rows)
        : transform_column<float>(column, v.rows, v.row, variant, to, s_rows);
  }
  return s;
}

template <class Products>
void sketch_on_cpu(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  for (std::int64_t c = 0; c < calls.count(); ++c)
    require_sketch(calls[c], parameters.variant, false);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const auto out = matrix_of<double>(x[0]);
    const auto* d = static_cast<const double*>(x[2].data);
    const std::vector<double> s = sketch_kind(variant) == SketchKind::count
                                      ? count_sketch<Products>(x[1], d, variant, out.rows)
                                      : sketch_products<Products>(x[1], d, variant, out.rows);
    for (std::int64_t j = 0; j < out.cols; ++j)
      std::copy_n(s.data() + j * out.rows, out.rows, out.column(j));
  });
}

template <class Products>
void continue_sketch_on_cpu(Queue& queue, const KernelCalls& calls,
                            const KernelParameters& parameters) {
  for (std::int64_t c = 0; c < calls.count(); ++c)
    require_sketch(calls[c], parameters.variant, true);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const auto s = matrix_of<double>(x[0]);
    std::vector<double> c(static_cast<std::size_t>(s.size()));
    for (std::int64_t j = 0; j < s.cols; ++j)
      std::copy_n(s.column(j), s.rows, c.data() + j * s.rows);
    count_rows<Products>(x[1], 0, x[1].rows, static_cast<const double*>(x[2].data), variant, s.rows,
                         c.data());
    for (std::int64_t j = 0; j < s.cols; ++j)
      std::copy_n(c.data() + j * s.rows, s.rows, s.column(j));
  });
}

}  // namespace strata
