// potrf of a batch on the GPU.
//
// Method: up to order 64 a warp takes a matrix, a row of it (up to 32) or two in the registers of
// each lane, between one read and one write; up to order 16 it takes two, a row a lane of either
// half. What bounds a small matrix is the way from one pivot to the next, and many warps hide each
// other's: the kernel for 32 rows would take a matrix of 16 through 32 pivots, and has registers
// for a third of the warps. Larger ones have a thread block each and are factored tile by tile,
// left-looking, by one block with what a tile of the fused kernel is made of (fused_task_cuda.hpp),
// but without waiting for other blocks. All matrices of one of these kinds are one launch; each
// launch passes over the others. The first matrix of a kind launches it, so that the GPU works
// while the host looks through the rest of the batch.
//
// No block waits for another here: roles by blockIdx are safe whatever runs beside.

#include <math_constants.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/fused_task_cuda.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "kernels/dense/potrf_small_cuda.hpp"

namespace strata {
namespace {

using namespace tile;
using fused_kernel::Verdict;

/// How a matrix is factored.
enum class Kind : int { upto_16, upto_32, upto_64, tiles, tiles_unaligned };
constexpr int kKinds = 5;

template <class T>
__host__ __device__ Kind kind_of(const BatchEntry& entry) {
  if (entry.n <= 16) return Kind::upto_16;
  if (entry.n <= 32) return Kind::upto_32;
  if (entry.n <= 64) return Kind::upto_64;
  return columns_aligned(static_cast<const T*>(entry.data), entry.ld) ? Kind::tiles
                                                                      : Kind::tiles_unaligned;
}

constexpr int kSmallWarps = 4;  // of a block; each has matrices of its own

/// What a warp does with matrices of order <= kOrder, 16, 32 or 64.
template <int kOrder>
struct Small {
  static constexpr int kColumns = kOrder == 16 ? 16 : 32;  // and rows, treated at once
  static constexpr int kMatrices = kWarp / kColumns;       // of a warp, side by side
  static constexpr Kind kKind =
      kOrder == 16 ? Kind::upto_16 : (kOrder == 32 ? Kind::upto_32 : Kind::upto_64);
  /// At least: what the compiler may take of the registers. It would take twice as many for 16.
  static constexpr int kBlocksPerSm = kOrder == 16 ? 8 : (kOrder == 32 ? 3 : 1);
  /// From what one matrix has in shared memory to what the next one has: all lanes read one element
  /// of their matrix's column at a time, two matrices from different banks.
  static constexpr int kPitch = kColumns + 2;
};

/// Where the lanes of a warp read what belongs to others.
template <int kOrder>
struct SmallMemory {
  using S = Small<kOrder>;
  double column[2][S::kMatrices * S::kPitch];  ///< of L, for even and odd columns
  double low[kOrder == 64 ? 32 : 1][32];       ///< L(32:64, 0:32), column after column
};

/// What a lane has of its matrix, of order <= kOrder: the row `own`, and for 64 row `own` + 32.
template <class T, int kOrder>
struct SmallTask {
  using S = Small<kOrder>;
  static constexpr int kColumns = S::kColumns;

  T* a;
  std::int64_t ld;
  int n;
  SmallMemory<kOrder>& memory;
  int bad_column = INT_MAX;
  double bad_pivot = 0;
  double logarithm = 0;  ///< 2·log L(i, i) of this lane's rows
  int own = lane() % kColumns;

  /// An element of the lower triangle; outside of it one of the unit matrix.
  __device__ double element(int row, int col) const {
    return row < n && col <= row ? static_cast<double>(a[row + col * ld])
                                 : (row == col ? 1.0 : 0.0);
  }
  __device__ void read(double (&x)[kColumns], int row, int first) const {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) x[c] = element(row, first + c);
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

  /// Factors kColumns columns from `first` on, of the rows `first` + own in x and, with kBelow, the
  /// 32 below in `below`.
  template <bool kBelow>
  __device__ void factor(double (&x)[kColumns], double (&below)[kColumns], int first) {
    double diagonal = 1;
    const int place = lane() / kColumns * S::kPitch;  // of this matrix
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const double inverse = root_of(__shfl_sync(0xffffffffu, x[j], j, kColumns), first + j);
      x[j] *= inverse;
      if (own == j) diagonal = static_cast<double>(static_cast<T>(x[j]));
      double* column = memory.column[j % 2] + place;
      column[own] = x[j];
      put(x[j], first + own, first + j);
      if constexpr (kBelow) {
        below[j] *= inverse;
        memory.low[j][own] = below[j];
        put(below[j], first + kColumns + own, first + j);
      }
      __syncwarp();
#pragma unroll
      for (int c = j + 1; c < kColumns; ++c) {
        x[c] -= x[j] * column[c];
        if constexpr (kBelow) below[c] -= below[j] * column[c];
      }
    }
    logarithm += 2 * log(diagonal);
  }

  __device__ void run() {
    double x[kColumns];
    read(x, own, 0);
    if constexpr (kOrder == kColumns) {
      // Opaque, lest the addresses of all columns stay in registers until they are written.
      asm volatile("mov.b64 %0, %0;" : "+l"(a));
      factor<false>(x, x, 0);
    } else {
      double low[kColumns];
      read(low, kColumns + own, 0);
      factor<true>(x, low, 0);
      // What is to be subtracted is added up first, see tile_factor_cuda.hpp.
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[c] = 0;
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) x[c] += low[k] * memory.low[k][c];
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[c] = element(kColumns + own, kColumns + c) - x[c];
      __syncwarp();
      factor<false>(x, x, kColumns);
    }
  }
};

/// Called by a warp. Each lane has the entry of its matrix, or one of order 0 and no status.
template <class T, int kOrder>
__device__ void factor_entry(const BatchEntry& entry, PivotStatus* status,
                             SmallMemory<kOrder>& memory) {
  SmallTask<T, kOrder> task{static_cast<T*>(entry.data), entry.ld, static_cast<int>(entry.n),
                            memory};
  task.run();
  double sum = task.logarithm;
#pragma unroll
  for (int half = Small<kOrder>::kColumns / 2; half > 0; half /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, half);
  }
  const bool failed = task.bad_column != INT_MAX;
  if (task.own == 0 && status != nullptr) {
    *status = {.bad_column = failed ? static_cast<double>(task.bad_column) : -1.0,
               .bad_pivot = failed ? task.bad_pivot : 0.0,
               .log_determinant = failed ? 0.0 : sum};
  }
  __syncwarp();  // before the next matrix takes the memory
}

/// Matrices of order <= kOrder, one or two a warp: a row (or two) a lane, in registers.
template <class T, int kOrder>
__global__ void __launch_bounds__(kSmallWarps* kWarp, Small<kOrder>::kBlocksPerSm)
    factor_small(const BatchEntry* entries, PivotStatus* statuses, std::int64_t count) {
  using S = Small<kOrder>;
  __shared__ __align__(16) SmallMemory<kOrder> memories[kSmallWarps];
  constexpr int kAtOnce = kSmallWarps * S::kMatrices;
  const std::int64_t step = std::int64_t{gridDim.x} * kAtOnce;
  for (std::int64_t m = std::int64_t{blockIdx.x} * kAtOnce + warp() * S::kMatrices; m < count;
       m += step) {
    if constexpr (S::kMatrices == 1) {
      const BatchEntry entry = entries[m];
      if (kind_of<T>(entry) != S::kKind) continue;
      factor_entry<T, kOrder>(entry, statuses + m, memories[warp()]);
    } else {
      const std::int64_t mine = m + lane() / S::kColumns;
      BatchEntry entry;
      if (mine < count) entry = entries[mine];
      const bool is_mine = mine < count && kind_of<T>(entry) == S::kKind;
      if (!__any_sync(0xffffffffu, is_mine)) continue;
      if (!is_mine) entry = {};
      factor_entry<T, kOrder>(entry, is_mine ? statuses + mine : nullptr, memories[warp()]);
    }
  }
}

/// A warp with one matrix, although there may be lanes for two.
template <class T, int kOrder>
__device__ void factor_alone(const SmallMatrix& matrix, SmallMemory<kOrder>& memory) {
  const bool is_mine = lane() < Small<kOrder>::kColumns;
  factor_entry<T, kOrder>(is_mine ? matrix.entry : BatchEntry{}, is_mine ? matrix.status : nullptr,
                          memory);
}

template <class T, int kOrder>
__global__ void __launch_bounds__(kWarp) factor_one(const __grid_constant__ SmallMatrix matrix) {
  __shared__ __align__(16) SmallMemory<kOrder> memory;
  factor_alone<T, kOrder>(matrix, memory);
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
  factor_alone<T, kOrder>(group.matrices[blockIdx.x], memory);
}

/// One larger matrix at a time.
template <class T, bool kVectors>
__global__ void __launch_bounds__(fused_kernel::Sizes<T, kSolve>::kThreads)
    factor_tiles(const BatchEntry* entries, Verdict* verdicts, PivotStatus* statuses,
                 std::int64_t count) {
  using S = fused_kernel::Sizes<T, kSolve>;
  extern __shared__ __align__(16) unsigned char memory[];
  fused_kernel::Workspace<T> workspace = fused_kernel::make_workspace<T, kSolve>(memory);
  __syncthreads();
  for (std::int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const BatchEntry entry = entries[m];
    if (kind_of<T>(entry) != (kVectors ? Kind::tiles : Kind::tiles_unaligned)) continue;
    fused_kernel::Arguments<T> arguments{};
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
        fused_kernel::run_tile<T, kSolve, 8, kVectors>(arguments, workspace,
                                                       {i, j, fused_kernel::Work::finish});
      }
    }
    fused_kernel::write_status<S::kThreads>(arguments.x, entry.n, entry.ld, arguments.verdict,
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

/// A block for every few matrices, up to as many as a grid may well have: whatever has a place
/// takes the next ones.
template <class T, int kOrder>
void launch_small(cudaStream_t stream, const BatchEntry* entries, PivotStatus* statuses,
                  std::int64_t count) {
  constexpr std::int64_t kBlocksMax = 1 << 20;
  constexpr std::int64_t kAtOnce = kSmallWarps * Small<kOrder>::kMatrices;
  const auto blocks = static_cast<unsigned>(std::min((count + kAtOnce - 1) / kAtOnce, kBlocksMax));
  factor_small<T, kOrder><<<blocks, kSmallWarps * kWarp, 0, stream>>>(entries, statuses, count);
  blas::require_launched("potrf_batched: factor_small");
}

template <class T, bool kVectors>
void launch_tiles(cudaStream_t stream, const BatchEntry* entries, Verdict* verdicts,
                  PivotStatus* statuses, std::int64_t count) {
  using S = fused_kernel::Sizes<T, kSolve>;
  const auto kernel = factor_tiles<T, kVectors>;
  const unsigned blocks = blocks_for(kernel, S::kThreads, S::kBytes, count);
  kernel<<<blocks, S::kThreads, S::kBytes, stream>>>(entries, verdicts, statuses, count);
  blas::require_launched("potrf_batched: factor_tiles");
}

/// The kernel of small matrices that takes a matrix of order n.
constexpr int order_of(std::int64_t n) { return n <= 16 ? 16 : n <= 32 ? 32 : 64; }

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
    if (order_of(matrix.entry.n) != kOrder) continue;
    group.matrices[count++] = matrix;
    if (count == SmallGroup::kMax) launch();
  }
  if (count > 0) launch();
}

/// The launches of one batch, whose arrays are in device memory.
template <class T>
struct Launches {
  cudaStream_t stream;
  const BatchEntry* entries;
  PivotStatus* statuses;
  Verdict* verdicts;
  std::int64_t count;
  std::array<bool, kKinds> done{};
  bool verdicts_cleared = false;

  /// All matrices of a kind, if they are not launched yet.
  void launch(Kind kind) {
    if (std::exchange(done[static_cast<std::size_t>(kind)], true)) return;
    switch (kind) {
      case Kind::upto_16: return launch_small<T, 16>(stream, entries, statuses, count);
      case Kind::upto_32: return launch_small<T, 32>(stream, entries, statuses, count);
      case Kind::upto_64: return launch_small<T, 64>(stream, entries, statuses, count);
      case Kind::tiles: return tiles<true>();
      case Kind::tiles_unaligned: return tiles<false>();
    }
  }

 private:
  /// A verdict belongs to one matrix, so to one of the two launches.
  template <bool kVectors>
  void tiles() {
    if (!std::exchange(verdicts_cleared, true)) {
      require_cuda(
          cudaMemsetAsync(verdicts, 0, static_cast<std::size_t>(count) * sizeof(Verdict), stream),
          "cudaMemsetAsync");
    }
    launch_tiles<T, kVectors>(stream, entries, verdicts, statuses, count);
  }
};

/// A batch of count matrices; both arrays as potrf_batched has them.
template <class T>
void factor_batch(CudaQueue& cuda, const BatchEntry* host_entries, PivotStatus* host_statuses,
                  std::size_t count) {
  if (count == 0) return;
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
  Launches<T> launches{stream, entries, statuses, verdicts, n};
  for (std::size_t m = 0; m < count; ++m) launches.launch(kind_of<T>(host_entries[m]));
  require_cuda(cudaMemcpyAsync(host_statuses, statuses, count * sizeof(PivotStatus),
                               cudaMemcpyDeviceToHost, stream),
               "copying the statuses");
}

}  // namespace

template <class T>
void potrf_small(cudaStream_t stream, std::span<const SmallMatrix> matrices) {
  launch_groups<T, 16>(stream, matrices);
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
