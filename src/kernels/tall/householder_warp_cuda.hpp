#pragma once
// Panels of few columns on a GPU: a warp each, in registers. Included by .cu files only.
//
// Method: columns as in householder_columns_cuda.hpp. The current one is always the first: an
// update writes column k into the registers of column k − 1, so that a loop runs over columns
// without indexing registers. There is no barrier of a block: a multiprocessor hides the latency of
// one panel's chain of reflections behind those of the others. Reflections are kept in shared
// memory on the way to Q·C, each thread's rows by itself; only n × n matrices are exchanged through
// it.

#include "kernels/tall/householder_columns_cuda.hpp"

namespace strata::householder_cuda {

inline constexpr int kPairsAtOnce = 16;  ///< products of G that are added up together

/// Reflections j … end − 1, of which kSteps at a time pass over as many columns as the first of
/// them has behind it: those that are done go on moving, and mean nothing. Calls
/// kept(j, first row of the column, v, reflection).
template <int Live, int K, int N, class Kept>
__device__ void factor(double (&a)[N][K], int j, int end, Kept&& kept) {
  constexpr int kSteps = Live % 4 == 0 ? 4 : 2;
#pragma unroll 1
  for (int step = 0; step < kSteps && j < end; ++step, ++j) {
    double v[K];
    const Reflection found = reflect<N>(a[0], j, v);
    kept(j, a[0][0], v, found);
    eliminate<Live, 1>(a, v, found.tau);
  }
  if constexpr (Live > kSteps) factor<Live - kSteps>(a, j, end, kept);
}

/// A panel of `height` rows at most, zeros beyond its own; returns how many those are.
template <class T, int K, int N>
__device__ int load_panel(const Level& level, std::int64_t first, int height, int n,
                          double (&a)[N][K]) {
  const auto rows = static_cast<int>(
      min(static_cast<long long>(height), static_cast<long long>(level.rows - first)));
#pragma unroll
  for (int i = 0; i < K; ++i) {
    const int r = lane() + i * kWarpSize;
    const T* from = level.element<T>(first + r);
    const std::int64_t ld = level.from_ld(first + r);
#pragma unroll
    for (int j = 0; j < N; ++j) a[j][i] = j < n && r < rows ? static_cast<double>(from[j * ld]) : 0;
  }
  return rows;
}

template <class T, int K, int N>
__global__ void __launch_bounds__(kWarpSize)
    warp_triangles(const __grid_constant__ Batch batch, int height, int n) {
  const Level& level = batch.of[blockIdx.y];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * height;
  if (!is_panel(level, height)) return;
  double a[N][K];
  load_panel<T>(level, first, height, n, a);
  double* r = level.triangle(blockIdx.x, n) + lane();
  const std::int64_t ld = level.small.ld;
  factor<N>(a, 0, n, [&](int j, double above, const double(&)[K], const Reflection& found) {
    if (lane() < n) r[j * ld] = lane() < j ? above : lane() == j ? found.diagonal : 0;
  });
}

/// What a warp has in shared memory: V, and G, in whose place W comes.
template <int K, int N>
struct WarpMemory {
  double v[K][N][kWarpSize];
  union {
    double g[N * (N - 1) / 2];  ///< columns above the diagonal, one behind the other
    double2 w[N][N / 2];        ///< column by column
  };
};

/// The products of reflections.
template <int K, int N>
__device__ void products(const double (&v)[N][K], double* g) {
  constexpr int kPairs = N * (N - 1) / 2;
  double s[kPairsAtOnce] = {};
  int pair = 0;
#pragma unroll
  for (int k = 1; k < N; ++k) {
#pragma unroll
    for (int j = 0; j < k; ++j, ++pair) {
      double& sum = s[pair % kPairsAtOnce];
      sum = 0;
#pragma unroll
      for (int i = 0; i < K; ++i) sum = fused(v[j][i], v[k][i], sum);
      if (pair % kPairsAtOnce != kPairsAtOnce - 1 && pair != kPairs - 1) continue;
      const double sums = sums_of_lanes<kWarpSize / 2>(s);
      // lane_of_sum<16>(k) is 2·k.
      const int of_lane = pair / kPairsAtOnce * kPairsAtOnce + lane() / 2;
      if (lane() % 2 == 0 && of_lane < kPairs) g[of_lane] = sums;
    }
  }
}

/// W, column l by thread l; c: its column of C, of which p rows count. tau: thread k has τ_k, and 0
/// from p on.
template <int K, int N>
__device__ void weigh(WarpMemory<K, N>& memory, const double* c, int p, int n, double tau) {
  double b[N];
#pragma unroll
  for (int i = 0; i < N; ++i) b[i] = i < p && lane() < n ? c[i] : 0;
#pragma unroll
  for (int i = 1; i < N; ++i) {
    if (i >= p) break;
#pragma unroll
    for (int j = 0; j < i; ++j) b[j] = fused(memory.v[0][j][i], b[i], b[j]);
  }
#pragma unroll
  for (int k = N - 1; k >= 0; --k) {
    b[k] = rounded_product(__shfl_sync(0xffffffffU, tau, k), b[k]);
#pragma unroll
    for (int j = 0; j < k; ++j) b[j] = fused(-memory.g[k * (k - 1) / 2 + j], b[k], b[j]);
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    if (lane() < n) memory.w[lane()][k / 2] = make_double2(b[k], b[k + 1]);
  }
  __syncwarp();
}

/// Q·C to its place. Columns of V from p on are zeros here.
template <class T, int K, int N>
__device__ void multiply(const Level& level, std::int64_t first, int rows, int n,
                         const double (&v)[N][K], const WarpMemory<K, N>& memory, const double* c,
                         int p) {
#pragma unroll 2
  for (int k = 0; k < n; ++k) {
    double y[K] = {};
    const double above = lane() < p ? c[lane() + k * level.small.ld] : 0;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const double2 w = memory.w[k][j / 2];
#pragma unroll
      for (int i = 0; i < K; ++i) y[i] = fused(-v[j][i], w.x, y[i]);
#pragma unroll
      for (int i = 0; i < K; ++i) y[i] = fused(-v[j + 1][i], w.y, y[i]);
    }
    if (lane() < p) y[0] = rounded_sum(above, y[0]);
#pragma unroll
    for (int i = 0; i < K; ++i) {
      const int r = lane() + i * kWarpSize;
      if (r < rows) level.result<T>(first + r)[k * level.to_ld(first + r)] = static_cast<T>(y[i]);
    }
  }
}

template <class T, int K, int N>
__global__ void __launch_bounds__(kWarpSize)
    warp_products(const __grid_constant__ Batch batch, int height, int n) {
  extern __shared__ double2 shared_memory[];
  auto& memory = *reinterpret_cast<WarpMemory<K, N>*>(shared_memory);
  const Level& level = batch.of[blockIdx.y];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * height;
  if (!is_panel(level, height)) return;
  double a[N][K];
  const int rows = load_panel<T>(level, first, height, n, a);
  const int p = min(rows, n);
  double tau = 0;
  factor<N>(a, 0, p, [&](int j, double, const double(&v)[K], const Reflection& found) {
#pragma unroll
    for (int i = 0; i < K; ++i) memory.v[i][j][lane()] = v[i];
    if (lane() == j) tau = found.tau;
  });
  const auto fetch = [&] {
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
      for (int i = 0; i < K; ++i) a[j][i] = j < p ? memory.v[i][j][lane()] : 0;
    }
  };
  fetch();
  products(a, memory.g);
  __syncwarp();
  const double* c = level.triangle(blockIdx.x, n);
  weigh(memory, c + lane() * level.small.ld, p, n, tau);
  fetch();  // W took its registers
  multiply<T>(level, first, rows, n, a, memory, c, p);
}

}  // namespace strata::householder_cuda
