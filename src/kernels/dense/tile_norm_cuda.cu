// tile_norm on a GPU: a few blocks of threads add up what they stride over, then one adds up the
// blocks; both as trees of fixed shape, so that equal tiles give equal bits.

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/tile_norm.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 256;

struct Part {
  double square;
  double largest;
};

__device__ void combine(Part& a, const Part& b) {
  a.square += b.square;
  a.largest = fmax(a.largest, b.largest);
}

/// The parts of all threads of a block, in its first thread.
__device__ Part of_block(Part mine) {
  __shared__ Part parts[kThreads];
  parts[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) combine(parts[threadIdx.x], parts[threadIdx.x + half]);
    __syncthreads();
  }
  return parts[0];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    norm_of_parts(Part* parts, const T* x, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  Part mine{0, 0};
  for (std::int64_t j = blockIdx.x; j < cols; j += kBlocks) {
    const T* column = x + j * ld;
    for (std::int64_t i = threadIdx.x; i < rows; i += kThreads) {
      const auto value = static_cast<double>(column[i]);
      combine(mine, {value * value, fabs(value)});
    }
  }
  const Part all = of_block(mine);
  if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

__global__ void __launch_bounds__(kThreads) norm_of_tile(TileNorm* norm, const Part* parts) {
  static_assert(kBlocks == kThreads);
  const Part all = of_block(parts[threadIdx.x]);
  if (threadIdx.x == 0) *norm = {all.square, all.largest, 0, 0};
}

/// A block of threads for each block of X.
__global__ void __launch_bounds__(kThreads)
    norms_of_blocks(TileNorm* norms, const double* x, std::int64_t rows, std::int64_t cols,
                    std::int64_t ld, std::int64_t order, bool lower) {
  __shared__ double pivots[kThreads];
  const NormBlock block = norm_block(blockIdx.x, rows, cols, order);
  const bool diagonal = lower && block.row == block.col;
  const std::int64_t end = block.row + block.rows;
  Part mine{0, 0};
  double least = INFINITY;
  for (std::int64_t j = block.col; j < block.col + block.cols; ++j) {
    const double* column = x + j * ld;
    const std::int64_t first = lower ? max(block.row, j) : block.row;
    for (std::int64_t i = first + threadIdx.x; i < end; i += kThreads) {
      const double value = column[i];
      combine(mine, {value * value, fabs(value)});
      if (diagonal && i == j) least = fmin(least, value * value);
    }
  }
  const Part all = of_block(mine);
  pivots[threadIdx.x] = least;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      pivots[threadIdx.x] = fmin(pivots[threadIdx.x], pivots[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    norms[blockIdx.x] = {all.square, all.largest, diagonal ? pivots[0] : 0.0, 0};
}

}  // namespace

void block_norms_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  const std::int64_t order = norm_block_order(parameters.variant);
  require_variant(block_norms, order > 0 ? parameters.variant : ~0U, ~(1U << 31));
  const bool lower = (parameters.variant & kBlockNormsLower) != 0;
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& x = calls[c][1];
    const std::int64_t count = norm_blocks(x.rows, order) * norm_blocks(x.cols, order);
    if (count == 0) continue;
    norms_of_blocks<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(
        static_cast<TileNorm*>(calls[c][0].data), static_cast<const double*>(x.data), x.rows,
        x.cols, x.ld, order, lower);
    require_cuda(cudaGetLastError(), "block_norms");
  }
}

template <class T>
void tile_norm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(tile_norm, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  auto* parts = static_cast<Part*>(cuda.scratch(kBlocks * std::int64_t{sizeof(Part)}));
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView& x = calls[i][1];
    norm_of_parts<T><<<kBlocks, kThreads, 0, cuda.stream()>>>(parts, static_cast<const T*>(x.data),
                                                              x.rows, x.cols, x.ld);
    require_cuda(cudaGetLastError(), "tile_norm");
    norm_of_tile<<<1, kThreads, 0, cuda.stream()>>>(static_cast<TileNorm*>(calls[i][0].data),
                                                    parts);
    require_cuda(cudaGetLastError(), "tile_norm");
  }
}

template void tile_norm_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void tile_norm_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
