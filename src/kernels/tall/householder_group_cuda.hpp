#pragma once
// Panels of up to 64 columns on a GPU: a few warps each, in registers. Included by .cu files only.
//
// Method: column k belongs to warp k mod W of W, which has up to eight, the current one first as in
// householder_warp_cuda.hpp. The warp that has the current column puts its reflection into shared
// memory, where all others find it behind the one barrier of a column. On the way to Q·C the
// reflections stay there; a warp computes the columns of G, of W and of Q·C that have the numbers
// of its own.

#include "kernels/tall/householder_columns_cuda.hpp"

namespace strata::householder_cuda {

inline constexpr int kGroupColumns = 8;  ///< of a warp

/// The shared memory of a panel of n columns and K planes of 32 rows: reflections, all of them or
/// those of two columns, τ, and G, in whose place W comes.
template <int K>
struct GroupMemory {
  /// Odd, so that threads read a row across columns from different banks.
  static constexpr int kStride = K * kWarpSize + 1;
  double* v;
  double* tau;
  double* g;

  __device__ GroupMemory(double* memory, int n, int columns)
      : v(memory), tau(v + columns * kStride), g(tau + n) {}
  [[nodiscard]] static std::int64_t bytes(std::int64_t n, bool product) {
    const std::int64_t elements = product ? n * (kStride + 1 + n) : 2 * kStride + n;
    return elements * std::int64_t{sizeof(double)};
  }
  __device__ void get(int column, double (&x)[K]) const {
#pragma unroll
    for (int i = 0; i < K; ++i) x[i] = v[column * kStride + lane() + i * kWarpSize];
  }
  __device__ void put(int column, const double (&x)[K]) const {
#pragma unroll
    for (int i = 0; i < K; ++i) v[column * kStride + lane() + i * kWarpSize] = x[i];
  }
};

__device__ inline int group_warp() { return static_cast<int>(threadIdx.x) / kWarpSize; }
__device__ inline int group_warps() { return static_cast<int>(blockDim.x) / kWarpSize; }
/// The number of the c-th column of this warp.
__device__ inline int column_of(int c) { return c * group_warps() + group_warp(); }

/// The current columns of all warps, one warp after the other, from j to `end`; Live: how many
/// columns warps have from the current one on. Reflection j goes to place j of `memory`, or j mod 2
/// if not all are kept. Calls kept(j, column, reflection) in the warp that has the column.
template <int N, int Live, bool kAll, int K, class Kept>
__device__ void factor_columns(double (&a)[kGroupColumns][K], const GroupMemory<K>& memory, int j,
                               int end, Kept&& kept) {
#pragma unroll 1
  for (int owner = 0; owner < group_warps() && j < end; ++owner, ++j) {
    double v[K];
    const int place = kAll ? j : j % 2;
    if (group_warp() == owner) {
      const Reflection found = reflect<N>(a[0], j, v);
      kept(j, a[0], found);
      memory.put(place, v);
      if (lane() == 0) memory.tau[j] = found.tau;
      __syncthreads();
      eliminate<Live, 1>(a, v, found.tau);
    } else {
      __syncthreads();
      memory.get(place, v);
      eliminate<Live, 0>(a, v, memory.tau[j]);
    }
  }
  if constexpr (Live > 1) factor_columns<N, Live - 1, kAll>(a, memory, j, end, kept);
}

/// The columns of this warp, zeros beyond their rows; returns how many the panel has.
template <class T, int K>
__device__ int load_columns(const Level& level, std::int64_t first, int height, int n,
                            double (&a)[kGroupColumns][K]) {
  const auto rows = static_cast<int>(
      min(static_cast<long long>(height), static_cast<long long>(level.rows - first)));
#pragma unroll
  for (int i = 0; i < K; ++i) {
    const int r = lane() + i * kWarpSize;
    const T* from = level.element<T>(first + r);
    const std::int64_t ld = level.from_ld(first + r);
#pragma unroll
    for (int c = 0; c < kGroupColumns; ++c) {
      const int k = column_of(c);
      a[c][i] = k < n && r < rows ? static_cast<double>(from[k * ld]) : 0;
    }
  }
  return rows;
}

template <class T, int K, int kWarpsMost>
__global__ void __launch_bounds__(kWarpsMost* kWarpSize, kWarpsMost == 4 ? 3 : 1)
    group_triangles(const __grid_constant__ Batch batch, int height, int n) {
  constexpr int kColumns = kWarpsMost * kGroupColumns;
  extern __shared__ double2 shared_memory[];
  const GroupMemory<K> memory(reinterpret_cast<double*>(shared_memory), n, 2);
  const Level& level = batch.of[blockIdx.y];
  if (!is_panel(level, height)) return;
  double a[kGroupColumns][K];
  load_columns<T>(level, static_cast<std::int64_t>(blockIdx.x) * height, height, n, a);
  double* to = level.triangle(blockIdx.x, n);
  const std::int64_t ld = level.small.ld;
  factor_columns<kColumns, kGroupColumns, false>(
      a, memory, 0, n, [&](int j, const double(&x)[K], const Reflection& found) {
#pragma unroll
        for (int i = 0; i < K && may_be_above<kColumns>(i); ++i) {
          const int r = lane() + i * kWarpSize;
          if (r < n) to[r + j * ld] = r < j ? x[i] : r == j ? found.diagonal : 0;
        }
      });
}

/// The columns of G, p × p, that have the numbers of those of this warp; a: to work with.
template <int K>
__device__ void multiply_reflections(const GroupMemory<K>& memory, int p, int n,
                                     double (&a)[kGroupColumns][K]) {
#pragma unroll
  for (int c = 0; c < kGroupColumns; ++c) {
#pragma unroll
    for (int i = 0; i < K; ++i) a[c][i] = 0;
    if (column_of(c) < p) memory.get(column_of(c), a[c]);
  }
#pragma unroll 1
  for (int j = 0; j < p; ++j) {
    double v[K];
    memory.get(j, v);
    double s[kGroupColumns];
#pragma unroll
    for (int c = 0; c < kGroupColumns; ++c) {
      s[c] = 0;
#pragma unroll
      for (int i = 0; i < K; ++i) s[c] = fused(v[i], a[c][i], s[c]);
    }
    const double sum = sums_of_lanes<kWarpSize / 2>(s);
    // lane_of_sum<8>(c) is 4·c.
    const int k = column_of(lane() / 4);
    if (lane() % 4 == 0 && k > j && k < p) memory.g[j + k * n] = sum;
  }
}

/// The columns of W that have the numbers of those of this warp; thread l has rows l, l + 32, …
template <int N, int K>
__device__ void weigh_columns(const GroupMemory<K>& memory, const double* c, std::int64_t ld, int p,
                              int n) {
  constexpr int kPlanes = (N + kWarpSize - 1) / kWarpSize;
  double of_c[kGroupColumns][kPlanes];
  double b[kGroupColumns][kPlanes];
#pragma unroll
  for (int q = 0; q < kGroupColumns; ++q) {
#pragma unroll
    for (int i = 0; i < kPlanes; ++i) {
      const int r = lane() + i * kWarpSize;
      of_c[q][i] = b[q][i] = r < p && column_of(q) < n ? c[r + column_of(q) * ld] : 0;
    }
  }
#pragma unroll 1
  for (int r = 1; r < p; ++r) {
#pragma unroll
    for (int q = 0; q < kGroupColumns; ++q) {
      const double x = row_of<N>(of_c[q], r);
#pragma unroll
      for (int i = 0; i < kPlanes; ++i) {
        const int j = lane() + i * kWarpSize;
        if (j < r) b[q][i] = fused(memory.v[j * memory.kStride + r], x, b[q][i]);
      }
    }
  }
#pragma unroll 1
  for (int k = p - 1; k >= 0; --k) {
#pragma unroll
    for (int q = 0; q < kGroupColumns; ++q) {
      const double w = rounded_product(memory.tau[k], row_of<N>(b[q], k));
#pragma unroll
      for (int i = 0; i < kPlanes; ++i) {
        const int j = lane() + i * kWarpSize;
        if (j < k) b[q][i] = fused(-memory.g[j + k * n], w, b[q][i]);
        if (j == k) b[q][i] = w;
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int q = 0; q < kGroupColumns; ++q) {
#pragma unroll
    for (int i = 0; i < kPlanes; ++i) {
      const int r = lane() + i * kWarpSize;
      if (r < p && column_of(q) < n) memory.g[r + column_of(q) * n] = b[q][i];
    }
  }
  __syncwarp();
}

/// The columns of Q·C that have the numbers of those of this warp; y: to work with.
template <class T, int N, int K>
__device__ void multiply_columns(const Level& level, std::int64_t first, int rows, int n,
                                 const GroupMemory<K>& memory, const double* c, int p,
                                 double (&y)[kGroupColumns][K]) {
#pragma unroll
  for (int q = 0; q < kGroupColumns; ++q) {
#pragma unroll
    for (int i = 0; i < K; ++i) y[q][i] = 0;
  }
#pragma unroll 1
  for (int j = 0; j < p; ++j) {
    double v[K];
    memory.get(j, v);
#pragma unroll
    for (int q = 0; q < kGroupColumns; ++q) {
      const double w = column_of(q) < n ? memory.g[j + column_of(q) * n] : 0;
#pragma unroll
      for (int i = 0; i < K; ++i) y[q][i] = fused(-v[i], w, y[q][i]);
    }
  }
#pragma unroll
  for (int i = 0; i < K; ++i) {
    const int r = lane() + i * kWarpSize;
    T* to = level.result<T>(first + r);
    const std::int64_t ld = level.to_ld(first + r);
#pragma unroll
    for (int q = 0; q < kGroupColumns; ++q) {
      const int k = column_of(q);
      if (k >= n || r >= rows) continue;
      if (may_be_above<N>(i) && r < p) y[q][i] = rounded_sum(c[r + k * level.small.ld], y[q][i]);
      to[k * ld] = static_cast<T>(y[q][i]);
    }
  }
}

template <class T, int K, int kWarpsMost>
__global__ void __launch_bounds__(kWarpsMost* kWarpSize, kWarpsMost == 4 ? 3 : 1)
    group_products(const __grid_constant__ Batch batch, int height, int n) {
  constexpr int kColumns = kWarpsMost * kGroupColumns;
  extern __shared__ double2 shared_memory[];
  const GroupMemory<K> memory(reinterpret_cast<double*>(shared_memory), n, n);
  const Level& level = batch.of[blockIdx.y];
  if (!is_panel(level, height)) return;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * height;
  double a[kGroupColumns][K];
  const int rows = load_columns<T>(level, first, height, n, a);
  const int p = min(rows, n);
  factor_columns<kColumns, kGroupColumns, true>(a, memory, 0, p,
                                                [](int, const double(&)[K], const Reflection&) {});
  multiply_reflections(memory, p, n, a);
  __syncthreads();
  const double* c = level.triangle(blockIdx.x, n);
  weigh_columns<kColumns>(memory, c, level.small.ld, p, n);
  multiply_columns<T, kColumns>(level, first, rows, n, memory, c, p, a);
}

}  // namespace strata::householder_cuda
