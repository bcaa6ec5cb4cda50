// potrf of a batch on the GPU.
//
// Method: up to order 64 a warp takes one matrix after another, a row of it (up to 32) or two in
// the registers of each lane, between one read and one write: what bounds a small matrix is the way
// from one pivot to the next, and many warps hide each other's. Larger ones have a thread block
// each and are factored tile by tile, left-looking, by one block with what a tile of the fused
// kernel is made of (fused_task_cuda.hpp), but with nobody to wait for. All matrices of one of
// these kinds are one launch; each launch passes over the others.

#include <math_constants.h>

#include <algorithm>
#include <array>
#include <climits>

#include "kernels/blas_cuda.hpp"
#include "kernels/fused_task_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/potrf_batched.hpp"
#include "kernels/potrf_small_cuda.hpp"

namespace strata {
namespace {

using namespace tile;
using fused::Verdict;

/// How a matrix is factored.
enum class Kind : int { upto_32, upto_64, tiles, tiles_unaligned };
constexpr int kKinds = 4;

template <class T>
__host__ __device__ Kind kind_of(const BatchEntry& entry) {
  if (entry.n <= 32) return Kind::upto_32;
  if (entry.n <= 64) return Kind::upto_64;
  return columns_aligned(static_cast<const T*>(entry.data), entry.ld) ? Kind::tiles
                                                                      : Kind::tiles_unaligned;
}

constexpr int kSmallWarps = 4;  // of a block; each has matrices of its own
constexpr int kHalf = 32;       // rows and columns that a warp treats at once

/// Where the lanes of a warp read what belongs to others.
template <int kOrder>
struct SmallMemory {
  double column[2][kHalf];                      ///< of L, for even and odd columns
  double low[kOrder == 64 ? kHalf : 1][kHalf];  ///< L(32:64, 0:32), column after column
};

/// What lane `lane` has of one matrix of order <= kOrder: rows lane and lane + 32.
template <class T, int kOrder>
struct SmallTask {
  T* a;
  std::int64_t ld;
  int n;
  SmallMemory<kOrder>& memory;
  int bad_column = INT_MAX;
  double bad_pivot = 0;
  double logarithm = 0;  ///< 2·log L(i, i) of this lane's rows

  /// Of the lower triangle; of the unit matrix outside.
  __device__ double element(int row, int col) const {
    return row < n && col <= row ? static_cast<double>(a[row + col * ld])
                                 : (row == col ? 1.0 : 0.0);
  }
  __device__ void read(double (&x)[kHalf], int row, int first) const {
#pragma unroll
    for (int c = 0; c < kHalf; ++c) x[c] = element(row, first + c);
  }
  __device__ void put(double x, int row, int col) const {
    if (row < n && col <= row) a[row + col * ld] = static_cast<T>(x);
  }

  /// 1/√pivot; 0 from the first bad pivot on.
  __device__ double root_of(double pivot, int column) {
    if (bad_column == INT_MAX && !(pivot > 0 && pivot < CUDART_INF)) {
      bad_column = column;
      bad_pivot = pivot;
    }
    if (bad_column != INT_MAX) return 0;
    if (!(pivot > 1e-280 && pivot < 1e280)) return rsqrt(pivot);
    const double y = reciprocal_root(pivot);
    // To the last bit, as others hide what it costs: pivot·y = high + low.
    const double high = pivot * y;
    const double low = fma(pivot, y, -high);
    return fma(0.5 * y, fma(-high, y, 1.0) - low * y, y);
  }

  /// Factors 32 columns from `first` on, of the rows `first` + lane in x and, with kBelow, the 32
  /// below in `below`.
  template <bool kBelow>
  __device__ void factor(double (&x)[kHalf], double (&below)[kHalf], int first) {
    double diagonal = 1;
#pragma unroll
    for (int j = 0; j < kHalf; ++j) {
      const double inverse = root_of(__shfl_sync(0xffffffffu, x[j], j), first + j);
      x[j] *= inverse;
      if (lane() == j) diagonal = static_cast<double>(static_cast<T>(x[j]));
      double* column = memory.column[j % 2];
      column[lane()] = x[j];
      put(x[j], first + lane(), first + j);
      if constexpr (kBelow) {
        below[j] *= inverse;
        memory.low[j][lane()] = below[j];
        put(below[j], first + kHalf + lane(), first + j);
      }
      __syncwarp();
#pragma unroll
      for (int c = j + 1; c < kHalf; ++c) {
        x[c] -= x[j] * column[c];
        if constexpr (kBelow) below[c] -= below[j] * column[c];
      }
    }
    logarithm += 2 * log(diagonal);
  }

  __device__ void run() {
    double x[kHalf];
    read(x, lane(), 0);
    if constexpr (kOrder == kHalf) {
      factor<false>(x, x, 0);
    } else {
      double low[kHalf];
      read(low, kHalf + lane(), 0);
      factor<true>(x, low, 0);
      // What is to be subtracted is added up first, see tile_factor_cuda.hpp.
#pragma unroll
      for (int c = 0; c < kHalf; ++c) x[c] = 0;
#pragma unroll
      for (int k = 0; k < kHalf; ++k) {
#pragma unroll
        for (int c = 0; c < kHalf; ++c) x[c] += low[k] * memory.low[k][c];
      }
#pragma unroll
      for (int c = 0; c < kHalf; ++c) x[c] = element(kHalf + lane(), kHalf + c) - x[c];
      __syncwarp();
      factor<false>(x, x, kHalf);
    }
  }
};

/// Called by a warp.
template <class T, int kOrder>
__device__ void factor_entry(const BatchEntry& entry, PivotStatus* status,
                             SmallMemory<kOrder>& memory) {
  SmallTask<T, kOrder> task{static_cast<T*>(entry.data), entry.ld, static_cast<int>(entry.n),
                            memory};
  task.run();
  double sum = task.logarithm;
#pragma unroll
  for (int half = kWarp / 2; half > 0; half /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, half);
  }
  const bool failed = task.bad_column != INT_MAX;
  if (lane() == 0) {
    *status = {.bad_column = failed ? static_cast<double>(task.bad_column) : -1.0,
               .bad_pivot = failed ? task.bad_pivot : 0.0,
               .log_determinant = failed ? 0.0 : sum};
  }
  __syncwarp();  // before the next matrix takes the memory
}

/// Matrices of order <= kOrder, one a warp: a row (or two) a lane, in registers.
template <class T, int kOrder>
__global__ void __launch_bounds__(kSmallWarps* kWarp)
    factor_small(const BatchEntry* entries, PivotStatus* statuses, std::int64_t count) {
  __shared__ __align__(16) SmallMemory<kOrder> memories[kSmallWarps];
  constexpr Kind kKind = kOrder == 32 ? Kind::upto_32 : Kind::upto_64;
  const std::int64_t step = std::int64_t{gridDim.x} * kSmallWarps;
  for (std::int64_t m = std::int64_t{blockIdx.x} * kSmallWarps + warp(); m < count; m += step) {
    const BatchEntry entry = entries[m];
    if (kind_of<T>(entry) != kKind) continue;
    factor_entry<T, kOrder>(entry, statuses + m, memories[warp()]);
  }
}

template <class T, int kOrder>
__global__ void __launch_bounds__(kWarp) factor_one(const __grid_constant__ SmallMatrix matrix) {
  __shared__ __align__(16) SmallMemory<kOrder> memory;
  factor_entry<T, kOrder>(matrix.entry, matrix.status, memory);
}

/// Matrices that travel with the launch, so that nothing has to be copied before it: 3 of the 4 KiB
/// that every GPU takes.
struct SmallGroup {
  static constexpr int kMax = 96;
  SmallMatrix matrices[kMax];
};

/// One matrix a block.
template <class T, int kOrder>
__global__ void __launch_bounds__(kWarp) factor_group(const __grid_constant__ SmallGroup group) {
  __shared__ __align__(16) SmallMemory<kOrder> memory;
  const SmallMatrix& matrix = group.matrices[blockIdx.x];
  factor_entry<T, kOrder>(matrix.entry, matrix.status, memory);
}

/// One larger matrix at a time.
template <class T, bool kVectors>
__global__ void __launch_bounds__(fused::Sizes<T, kSolve>::kThreads)
    factor_tiles(const BatchEntry* entries, Verdict* verdicts, PivotStatus* statuses,
                 std::int64_t count) {
  using S = fused::Sizes<T, kSolve>;
  extern __shared__ __align__(16) unsigned char memory[];
  fused::Workspace<T> workspace = fused::make_workspace<T, kSolve>(memory);
  __syncthreads();
  for (std::int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const BatchEntry entry = entries[m];
    if (kind_of<T>(entry) != (kVectors ? Kind::tiles : Kind::tiles_unaligned)) continue;
    fused::Arguments<T> arguments{};
    arguments.x = static_cast<T*>(entry.data);
    arguments.ldx = entry.ld;
    arguments.l = arguments.x;
    arguments.ldl = entry.ld;
    arguments.rows = entry.n;
    arguments.cols = entry.n;
    arguments.verdict = verdicts + m;
    arguments.factors = true;
    const int tiles = static_cast<int>((entry.n + kSolve - 1) / kSolve);
    for (int j = 0; j < tiles; ++j) {
      for (int i = j; i < tiles; ++i) {
        fused::run_tile<T, kSolve, 8, kVectors>(arguments, workspace, {i, j, fused::Work::finish});
      }
    }
    fused::write_status<S::kThreads>(arguments.x, entry.n, entry.ld, arguments.verdict,
                                     statuses + m, reinterpret_cast<double*>(memory));
    __syncthreads();
  }
}

/// As many blocks as the GPU holds at once, or as there are matrices.
template <class Kernel>
unsigned blocks_for(Kernel kernel, int threads, int bytes, std::int64_t count) {
  int resident = 0;
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "shared memory of potrf_batched");
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads,
                                                             static_cast<std::size_t>(bytes)),
               "occupancy of potrf_batched");
  return static_cast<unsigned>(
      std::min<std::int64_t>(count, std::int64_t{multiprocessors()} * std::max(resident, 1)));
}

template <class T, int kOrder>
void launch_small(cudaStream_t stream, const BatchEntry* entries, PivotStatus* statuses,
                  std::int64_t count) {
  const auto kernel = factor_small<T, kOrder>;
  const unsigned blocks =
      blocks_for(kernel, kSmallWarps * kWarp, 0, (count + kSmallWarps - 1) / kSmallWarps);
  kernel<<<blocks, kSmallWarps * kWarp, 0, stream>>>(entries, statuses, count);
  blas::require_launched("potrf_batched: factor_small");
}

template <class T, bool kVectors>
void launch_tiles(cudaStream_t stream, const BatchEntry* entries, Verdict* verdicts,
                  PivotStatus* statuses, std::int64_t count) {
  using S = fused::Sizes<T, kSolve>;
  const auto kernel = factor_tiles<T, kVectors>;
  const unsigned blocks = blocks_for(kernel, S::kThreads, S::kBytes, count);
  kernel<<<blocks, S::kThreads, S::kBytes, stream>>>(entries, verdicts, statuses, count);
  blas::require_launched("potrf_batched: factor_tiles");
}

/// Those of the matrices whose order is of this kind, a launch a group.
template <class T, int kOrder>
void launch_groups(cudaStream_t stream, std::span<const SmallMatrix> matrices) {
  SmallGroup group{};
  unsigned count = 0;
  const auto launch = [&] {
    if (count == 1) {
      factor_one<T, kOrder><<<1, kWarp, 0, stream>>>(group.matrices[0]);
    } else {
      factor_group<T, kOrder><<<count, kWarp, 0, stream>>>(group);
    }
    blas::require_launched("potrf_small");
    count = 0;
  };
  for (const SmallMatrix& matrix : matrices) {
    if ((matrix.entry.n <= 32) != (kOrder == 32)) continue;
    group.matrices[count++] = matrix;
    if (count == SmallGroup::kMax) launch();
  }
  if (count > 0) launch();
}

/// A batch of count matrices; both arrays as potrf_batched has them.
template <class T>
void factor_batch(CudaQueue& cuda, const BatchEntry* host_entries, PivotStatus* host_statuses,
                  std::size_t count) {
  if (count == 0) return;
  std::array<bool, kKinds> present{};
  for (std::size_t m = 0; m < count; ++m) {
    present[static_cast<std::size_t>(kind_of<T>(host_entries[m]))] = true;
  }
  // In device memory: what each block reads and writes of its own.
  auto* scratch = static_cast<std::byte*>(cuda.scratch(static_cast<std::int64_t>(
      count * (sizeof(BatchEntry) + sizeof(PivotStatus) + sizeof(Verdict)))));
  auto* entries = reinterpret_cast<BatchEntry*>(scratch);
  auto* statuses = reinterpret_cast<PivotStatus*>(entries + count);
  auto* verdicts = reinterpret_cast<Verdict*>(statuses + count);
  cudaStream_t stream = cuda.stream();
  const auto n = static_cast<std::int64_t>(count);
  require_cuda(cudaMemcpyAsync(entries, host_entries, count * sizeof(BatchEntry),
                               cudaMemcpyHostToDevice, stream),
               "copying the batch");
  require_cuda(cudaMemsetAsync(verdicts, 0, count * sizeof(Verdict), stream), "cudaMemsetAsync");
  if (present[0]) launch_small<T, 32>(stream, entries, statuses, n);
  if (present[1]) launch_small<T, 64>(stream, entries, statuses, n);
  if (present[2]) launch_tiles<T, true>(stream, entries, verdicts, statuses, n);
  if (present[3]) launch_tiles<T, false>(stream, entries, verdicts, statuses, n);
  require_cuda(cudaMemcpyAsync(host_statuses, statuses, count * sizeof(PivotStatus),
                               cudaMemcpyDeviceToHost, stream),
               "copying the statuses");
}

}  // namespace

template <class T>
void potrf_small(cudaStream_t stream, std::span<const SmallMatrix> matrices) {
  launch_groups<T, 32>(stream, matrices);
  launch_groups<T, 64>(stream, matrices);
}

template <class T>
void potrf_batched_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(potrf_batched, parameters.variant, 0);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    factor_batch<T>(static_cast<CudaQueue&>(queue), static_cast<const BatchEntry*>(x[1].data),
                    status_of(x[2]), static_cast<std::size_t>(x[1].cols));
  }
}

template void potrf_small<double>(cudaStream_t, std::span<const SmallMatrix>);
template void potrf_small<float>(cudaStream_t, std::span<const SmallMatrix>);
template void potrf_batched_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_batched_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
