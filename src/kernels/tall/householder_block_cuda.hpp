#pragma once
// Panels of any number of columns on a GPU: a thread block each. Included by .cu files only.
//
// Method: a panel lies in shared memory where it fits and in the scratch memory of the queue else;
// a warp for each column, its threads the 32 lanes of a sum.

#include "kernels/tall/householder_parts_cuda.hpp"

namespace strata::householder_cuda {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / kWarpSize;
inline constexpr int kColumnsMax = 512;

/// The columns of a panel in shared or scratch memory; G and W, n × n each, behind them where Q·C
/// is wanted.
struct Panel {
  double* a;
  int ld, rows, n;
  __device__ double* column(int j) const { return a + static_cast<std::int64_t>(j) * ld; }
  __device__ int reflections() const { return rows < n ? rows : n; }
  __device__ double* products(int k) const { return column(n) + static_cast<std::int64_t>(k) * n; }
  __device__ double* factors(int k) const { return products(n + k); }
};
[[nodiscard]] inline std::int64_t panel_bytes(std::int64_t height, std::int64_t n, bool product) {
  return (height + (product ? 2 * n : 0)) * n * std::int64_t{sizeof(double)};
}

__device__ inline int warp() { return static_cast<int>(threadIdx.x) / kWarpSize; }

/// Row r of the reflection in column j.
__device__ inline double reflection(const double* v, int j, int r) {
  return r > j ? v[r] : r == j ? 1 : 0;
}
/// Σ v_r·x_r.
__device__ inline double dot(const double* v, const double* x, int j, int rows) {
  double sum = 0;
  for (int r = lane(); r < rows; r += kWarpSize) sum = fused(reflection(v, j, r), x[r], sum);
  return sum_of_lanes(sum);
}

/// By one warp; returns τ.
__device__ inline double reflect(const Panel& panel, int j) {
  double* x = panel.column(j);
  unsigned high = 0;
  for (int r = lane(); r < panel.rows; r += kWarpSize) {
    if (r >= j) high = max(high, high_word(x[r]));
  }
  const Scaling scaling = scaling_of(largest_field(high));
  double sigma = 0;
  for (int r = lane(); r < panel.rows; r += kWarpSize) {
    const double y = rounded_product(x[r], scaling.down);
    if (r > j) sigma = fused(y, y, sigma);
  }
  sigma = sum_of_lanes(sigma);
  const Reflection found =
      reflection_of(x[j], rounded_product(x[j], scaling.down), sigma, scaling.up);
  for (int r = lane(); r < panel.rows; r += kWarpSize) {
    if (r > j) x[r] = rounded_product(rounded_product(x[r], scaling.down), found.scale);
  }
  __syncwarp();
  if (lane() == 0) x[j] = found.diagonal;
  return found.tau;
}

__device__ inline void factor(const Panel& panel, double* tau) {
  for (int j = 0; j < panel.reflections(); ++j) {
    if (warp() == 0) {
      const double t = reflect(panel, j);
      if (lane() == 0) tau[j] = t;
    }
    __syncthreads();
    const double* v = panel.column(j);
    for (int k = j + 1 + warp(); k < panel.n; k += kWarps) {
      double* x = panel.column(k);
      const double t = rounded_product(tau[j], dot(v, x, j, panel.rows));
      for (int r = lane(); r < panel.rows; r += kWarpSize)
        x[r] = fused(-t, reflection(v, j, r), x[r]);
    }
    __syncthreads();
  }
}

/// G, and Vᵀ[C; 0] in the place of W.
__device__ inline void products(const Panel& panel, const double* c, std::int64_t c_ld) {
  const int p = panel.reflections();
  for (int k = warp(); k < p; k += kWarps) {
    for (int j = 0; j < k; ++j) {
      const double* v = panel.column(j);
      double sum = 0;
      for (int r = lane(); r < panel.rows; r += kWarpSize)
        sum = fused(reflection(v, j, r), reflection(panel.column(k), k, r), sum);
      sum = sum_of_lanes(sum);
      if (lane() == 0) panel.products(k)[j] = sum;
    }
  }
  for (int e = static_cast<int>(threadIdx.x); e < p * panel.n; e += kThreads) {
    const int j = e % p;
    const int k = e / p;
    double b = c[j + k * c_ld];
    for (int r = j + 1; r < p; ++r) b = fused(panel.column(j)[r], c[r + k * c_ld], b);
    panel.factors(k)[j] = b;
  }
  __syncthreads();
}

/// W: what a row of it is needed for is done before it gets its τ.
__device__ inline void weigh(const Panel& panel, const double* tau) {
  for (int i = panel.reflections() - 1; i >= 0; --i) {
    const double* g = panel.products(i);
    for (int k = warp(); k < panel.n; k += kWarps) {
      double* b = panel.factors(k);
      const double w = rounded_product(tau[i], b[i]);
      for (int j = lane(); j < i; j += kWarpSize) b[j] = fused(-g[j], w, b[j]);
    }
    __syncwarp();
  }
  for (int k = warp(); k < panel.n; k += kWarps) {
    double* w = panel.factors(k);
    for (int j = lane(); j < panel.reflections(); j += kWarpSize)
      w[j] = rounded_product(tau[j], w[j]);
  }
  __syncthreads();
}

extern __shared__ double shared_panel[];

/// The panel of this thread block, loaded.
template <class T>
__device__ Panel load_panel(const Level& level, int height, int n, double* spill,
                            std::int64_t bytes) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * height;
  Panel panel{shared_panel, height, 0, n};
  if (spill != nullptr) {
    const std::int64_t number = static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
    panel.a = spill + number * (bytes / std::int64_t{sizeof(double)});
  }
  panel.rows = static_cast<int>(
      min(static_cast<long long>(height), static_cast<long long>(level.rows - first)));
  for (int j = warp(); j < n; j += kWarps) {
    for (int r = lane(); r < panel.rows; r += kWarpSize)
      panel.column(j)[r] =
          static_cast<double>(level.element<T>(first + r)[j * level.from_ld(first + r)]);
  }
  __syncthreads();
  return panel;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    block_triangles(const __grid_constant__ Batch batch, int height, int n, double* spill,
                    std::int64_t bytes) {
  __shared__ double tau[kColumnsMax];
  const Level& level = batch.of[blockIdx.y];
  if (!is_panel(level, height)) return;
  const Panel panel = load_panel<T>(level, height, n, spill, bytes);
  factor(panel, tau);
  double* r = level.triangle(blockIdx.x, n);
  for (int e = static_cast<int>(threadIdx.x); e < n * n; e += kThreads) {
    const int i = e % n;
    const int j = e / n;
    r[i + j * level.small.ld] = i <= j && i < panel.rows ? panel.column(j)[i] : 0;
  }
}

/// x ← Q·C.
template <class T>
__global__ void __launch_bounds__(kThreads)
    block_products(const __grid_constant__ Batch batch, int height, int n, double* spill,
                   std::int64_t bytes) {
  __shared__ double tau[kColumnsMax];
  const Level& level = batch.of[blockIdx.y];
  if (!is_panel(level, height)) return;
  const Panel panel = load_panel<T>(level, height, n, spill, bytes);
  factor(panel, tau);
  const double* c = level.triangle(blockIdx.x, n);
  products(panel, c, level.small.ld);
  weigh(panel, tau);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * height;
  for (int k = warp(); k < n; k += kWarps) {
    const double* w = panel.factors(k);
    for (int r = lane(); r < panel.rows; r += kWarpSize) {
      double y = 0;
      for (int j = 0; j < panel.reflections(); ++j)
        y = fused(-reflection(panel.column(j), j, r), w[j], y);
      if (r < panel.reflections()) y = rounded_sum(c[r + k * level.small.ld], y);
      level.result<T>(first + r)[k * level.to_ld(first + r)] = static_cast<T>(y);
    }
  }
}

}  // namespace strata::householder_cuda
