#pragma once
// What the kernels of gram.hpp share on a GPU: columns, pairs of them, and the tree of units.
//
// Contract: only for gram*_cuda.cu. Everything has internal linkage by way of templates and inline
// functions; every operation on numbers is an intrinsic of one rounding (double_double.hpp).

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/tall/gram.hpp"
#include "scalar/double_double.hpp"

namespace strata::gram_gpu {

inline constexpr int kThreads = 128;
inline constexpr int kWarpSize = 32;

/// What sums and substitutions in W are of: products of floats are exact in double.
template <class W>
using RealOf = std::conditional_t<std::is_same_v<W, float>, float, double>;

/// Columns of a block, scaled when they are read; d may be null.
template <class T>
struct Columns {
  const T* data;
  std::int64_t rows, cols, ld;
  const double* d;

  template <class Real>
  __device__ Real at(std::int64_t row, std::int64_t col) const {
    if (row >= rows) return Real(0);
    const auto value = static_cast<double>(data[row + col * ld]);
    return static_cast<Real>(d == nullptr ? value : rounded_product(value, d[col]));
  }
};

template <class T>
Columns<T> columns_of(const BlockView& v, const BlockView* d) {
  return {static_cast<const T*>(v.data), v.rows, v.cols, v.ld,
          d == nullptr ? nullptr : static_cast<const double*>(d->data)};
}

/// Pairs of columns (i, j): all of x and y, or i <= j of x alone.
struct Pairs {
  std::int64_t rows, cols;  ///< of B
  bool symmetric;

  [[nodiscard]] __host__ __device__ std::int64_t count() const {
    return symmetric ? cols * (cols + 1) / 2 : rows * cols;
  }
  /// The number of a pair: column by column.
  [[nodiscard]] __device__ std::int64_t number(std::int64_t i, std::int64_t j) const {
    return symmetric ? i + j * (j + 1) / 2 : i + j * rows;
  }
  /// j from the root of 2·pair, put right where that was rounded.
  __device__ void locate(std::int64_t pair, std::int64_t& i, std::int64_t& j) const {
    if (!symmetric) {
      i = pair % rows;
      j = pair / rows;
      return;
    }
    j = static_cast<std::int64_t>((sqrt(8.0 * static_cast<double>(pair) + 1) - 1) / 2);
    while (j * (j + 1) / 2 > pair) --j;
    while ((j + 1) * (j + 2) / 2 <= pair) ++j;
    i = pair - j * (j + 1) / 2;
  }
};

__device__ inline DoubleDouble next_sum(const DoubleDouble& sum, const DoubleDouble& part) {
  return add_cray(sum, part);
}
__device__ inline double next_sum(double sum, double part) { return rounded_sum(sum, part); }
__device__ inline float next_sum(float sum, float part) { return rounded_sum(sum, part); }
__device__ inline DoubleDouble sum_of(const DoubleDouble& a, const DoubleDouble& b) {
  return a + b;
}
__device__ inline double sum_of(double a, double b) { return rounded_sum(a, b); }
__device__ inline float sum_of(float a, float b) { return rounded_sum(a, b); }

/// The step of a substitution, in the element of R.
__device__ inline float next(float acc, float q, float r) { return fused(-q, r, acc); }
__device__ inline double next(double acc, double q, double r) { return fused(-q, r, acc); }
__device__ inline DoubleDouble next(const DoubleDouble& acc, const DoubleDouble& q,
                                    const DoubleDouble& r) {
  return subtract_product(acc, q, r);
}
/// What is rounded to the element of V when a quotient is complete.
__device__ inline float leading(float x) { return x; }
__device__ inline double leading(double x) { return x; }
__device__ inline double leading(const DoubleDouble& x) { return x.hi; }

/// 1.5·2^k of two columns whose largest magnitudes have these biased exponents.
__device__ inline double extraction_start(int field_x, int field_y) {
  const int biased = field_x + field_y - 1015;
  if (biased > 2046) return __longlong_as_double(0x7ff0000000000000LL);
  return __longlong_as_double(static_cast<long long>(biased < 1 ? 1 : biased) << 52 | 1LL << 51);
}

inline unsigned blocks_for(std::int64_t count, std::int64_t of_block) {
  return static_cast<unsigned>((count + of_block - 1) / of_block);
}
inline std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
inline std::int64_t tiles_of(std::int64_t rows) {
  return (rows + kGramTileRows - 1) / kGramTileRows;
}
inline constexpr int kTilesOfUnit = kGramUnitRows / kGramTileRows;
inline std::int64_t units_of(std::int64_t rows, int tiles_of_unit = kTilesOfUnit) {
  const std::int64_t height = std::int64_t{tiles_of_unit} * kGramTileRows;
  return (rows + height - 1) / height;
}

// ---- the tree of units

inline constexpr int kChunk = 32;  ///< units that one thread adds up

/// The sum of up to kChunk numbers that lie `stride` apart, as gram.hpp has it: in a complete tree
/// whose leaves are read before any is added; of fewer, what there is of each subtree.
template <class W>
__device__ W tree_of(const W* first, std::int64_t stride, int count) {
  W value[kChunk];
#pragma unroll
  for (int u = 0; u < kChunk; ++u) {
    if (u < count) value[u] = first[u * stride];
  }
#pragma unroll
  for (int half = 1; half < kChunk; half *= 2) {
#pragma unroll
    for (int u = 0; u < kChunk; u += 2 * half) {
      if (u + half < count) value[u] = sum_of(value[u], value[u + half]);
    }
  }
  return count > 0 ? value[0] : W{};
}

/// to[chunk · pairs + pair] ← the sum of a chunk of units; where b is not null there is one chunk,
/// whose sums are written to (i, j), and (j, i).
template <class W>
__global__ void __launch_bounds__(kThreads)
    add_chunks(const W* units, std::int64_t count, Pairs pairs, W* to, W* b, std::int64_t ld) {
  const std::int64_t pair = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (pair >= pairs.count()) return;
  for (std::int64_t chunk = blockIdx.y; chunk * kChunk < count || (chunk == 0 && count == 0);
       chunk += gridDim.y) {
    const std::int64_t rest = count - chunk * kChunk;
    const W sum = tree_of(units + chunk * kChunk * pairs.count() + pair, pairs.count(),
                          static_cast<int>(rest < kChunk ? rest : kChunk));
    if (b == nullptr) {
      to[chunk * pairs.count() + pair] = sum;
      continue;
    }
    std::int64_t i = 0;
    std::int64_t j = 0;
    pairs.locate(pair, i, j);
    b[i + j * ld] = sum;
    if (pairs.symmetric) b[j + i * ld] = sum;
  }
}

/// Bytes for the sums of units and of chunks of them.
template <class W>
std::int64_t unit_bytes(std::int64_t rows, const Pairs& pairs) {
  const std::int64_t units = units_of(rows);
  const std::int64_t chunks = (units + kChunk - 1) / kChunk;
  return (units + chunks) * pairs.count() * std::int64_t{sizeof(W)};
}

/// B ← the sum of `count` units, each pairs.count() numbers from `units` on; behind them there is
/// room for the sums of chunks.
template <class W>
void add_units(cudaStream_t stream, W* units, std::int64_t count, const Pairs& pairs,
               const BlockView& b) {
  W* from = units;
  W* to = units + count * pairs.count();
  const unsigned groups = blocks_for(pairs.count(), kThreads);
  while (count > kChunk) {
    const std::int64_t chunks = (count + kChunk - 1) / kChunk;
    const dim3 grid(groups, static_cast<unsigned>(std::min<std::int64_t>(chunks, 65535)));
    add_chunks<W><<<grid, kThreads, 0, stream>>>(from, count, pairs, to, nullptr, 0);
    std::swap(from, to);  // what was added up is not needed any more
    count = chunks;
  }
  add_chunks<W>
      <<<groups, kThreads, 0, stream>>>(from, count, pairs, to, static_cast<W*>(b.data), b.ld);
  require_cuda(cudaGetLastError(), "sums of units");
}

/// Calls f with a null pointer to the type of an element: double, float or DoubleDouble.
template <class F>
void with_type(Element element, F&& f) {
  if (element == Element::fp64) return f(static_cast<double*>(nullptr));
  if (element == Element::fp32) return f(static_cast<float*>(nullptr));
  f(static_cast<DoubleDouble*>(nullptr));
}
template <class F>
void with_native(Element element, F&& f) {
  if (element == Element::fp64) return f(static_cast<double*>(nullptr));
  f(static_cast<float*>(nullptr));
}
template <class Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

}  // namespace strata::gram_gpu
