// column_squares on a GPU: one thread block a column, so that W is read once, neighbouring threads
// on neighbouring rows. A thread adds up every 256th row, in four sums whose loads do not wait for
// each other; then the threads of a warp, then the warps, are added as trees of fixed shape.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/column_squares.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpSize = 32;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kUnroll = 4;
constexpr std::int64_t kBlocksMax = (std::int64_t{1} << 31) - 1;

template <class T>
__device__ double square(T value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

/// The sum over the threads of a warp, in its first thread.
__device__ double sum_of_warp(double value) {
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2)
    value += __shfl_down_sync(0xffffffffU, value, half);
  return value;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    column_squares_kernel(double* s, const T* w, std::int64_t rows, std::int64_t cols,
                          std::int64_t ld) {
  __shared__ double of_warps[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (std::int64_t j = blockIdx.x; j < cols; j += gridDim.x) {
    const T* column = w + j * ld;
    double part[kUnroll] = {};
    std::int64_t i = threadIdx.x;
    for (; i + (kUnroll - 1) * kThreads < rows; i += kUnroll * kThreads) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) part[u] += square(column[i + u * kThreads]);
    }
    for (; i < rows; i += kThreads) part[0] += square(column[i]);
    const double sum = sum_of_warp((part[0] + part[1]) + (part[2] + part[3]));
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      const double all = sum_of_warp(lane < kWarps ? of_warps[lane] : 0.0);
      if (lane == 0) s[j] += all;
    }
    __syncthreads();  // before of_warps is written for the next column
  }
}

}  // namespace

template <class T>
void column_squares_cuda(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters) {
  require_variant(column_squares, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& s = calls[c][0];
    const BlockView& w = calls[c][1];
    if (w.rows == 0 || w.cols == 0) continue;
    const auto blocks = static_cast<unsigned>(std::min(w.cols, kBlocksMax));
    column_squares_kernel<T><<<blocks, kThreads, 0, stream>>>(
        static_cast<double*>(s.data), static_cast<const T*>(w.data), w.rows, w.cols, w.ld);
    require_cuda(cudaGetLastError(), "column_squares");
  }
}

template void column_squares_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void column_squares_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
