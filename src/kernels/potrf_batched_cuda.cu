// potrf of a batch on the GPU.
//
// Method: a thread block takes one matrix after another. Up to order 32 (two warps) and 64 (four
// warps) the matrix is factored in registers (factor_strips) between one read and one write. Larger
// ones are factored tile by tile, left-looking, by one block with what a tile of the fused kernel
// is made of (fused_task_cuda.hpp), but with nobody to wait for. All matrices of one of these kinds
// are one launch; each launch passes over the others.

#include <algorithm>
#include <array>

#include "kernels/blas_cuda.hpp"
#include "kernels/fused_task_cuda.hpp"
#include "kernels/potrf_batched.hpp"

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
  const bool aligned = reinterpret_cast<std::uintptr_t>(entry.data) % 16 == 0 &&
                       entry.ld * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
  return aligned ? Kind::tiles : Kind::tiles_unaligned;
}

/// One matrix of order <= 16·kWarps at a time, in shared memory and in registers.
template <class T, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp)
    factor_small(const BatchEntry* entries, PivotStatus* statuses, std::int64_t count) {
  constexpr int kOrder = kWarps * kRowsPerWarp;
  constexpr int kLd = padded(kOrder);
  constexpr int kThreads = kWarps * kWarp;
  __shared__ __align__(16) T x[kOrder * kLd];
  __shared__ __align__(16) double scratch[2 * 64];
  __shared__ __align__(16) double inverses[kOrder * 8];
  __shared__ int bad_column;
  __shared__ double bad_pivot;
  constexpr Kind kKind = kWarps == 2 ? Kind::upto_32 : Kind::upto_64;
  for (std::int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const BatchEntry entry = entries[m];
    if (kind_of<T>(entry) != kKind) continue;
    const int n = static_cast<int>(entry.n);
    T* a = static_cast<T*>(entry.data);
    for (int c = static_cast<int>(threadIdx.x); c < kOrder * kOrder; c += kThreads) {
      const int i = c % kOrder;
      const int j = c / kOrder;
      x[i + j * kLd] = i < n && j <= i ? a[i + j * entry.ld] : (i == j ? T{1} : T{0});
    }
    __syncthreads();
    const auto put = [&](int row, int col, T even, T odd) {
      T* at = a + row + col * entry.ld;
      if (row < n && row >= col) at[0] = even;
      if (row + 1 < n && row + 1 >= col) at[1] = odd;
    };
    const BadPivot found = factor_strips<kWarps, kOrder>(x, kLd, scratch, inverses, put);
    if (threadIdx.x == kThreads - 1) {  // of the warp that has seen all pivots
      bad_column = found.column;
      bad_pivot = found.pivot;
    }
    __syncthreads();
    if (warp() == 0) {
      double sum = 0;
      for (int j = lane(); j < n; j += kWarp) sum += 2 * log(static_cast<double>(x[j + j * kLd]));
#pragma unroll
      for (int half = kWarp / 2; half > 0; half /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, half);
      }
      const bool failed = bad_column < kSolve;
      if (lane() == 0) {
        statuses[m] = {.bad_column = failed ? bad_column : -1,
                       .bad_pivot = failed ? bad_pivot : 0.0,
                       .log_determinant = failed ? 0.0 : sum};
      }
    }
    __syncthreads();
  }
}

/// One larger matrix at a time.
template <class T, bool kVectors>
__global__ void __launch_bounds__(fused::Sizes<T, kSolve>::kThreads)
    factor_tiles(const BatchEntry* entries, Verdict* verdicts, PivotStatus* statuses,
                 std::int64_t count) {
  using S = fused::Sizes<T, kSolve>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* shared = reinterpret_cast<T*>(memory);
  auto* scratch = reinterpret_cast<double*>(memory + S::kScratchAt);
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
    int used = 0;
    for (int j = 0; j < tiles; ++j) {
      for (int i = j; i < tiles; ++i) {
        fused::run_tile<T, kSolve, 8, kVectors>(arguments, shared, scratch, nullptr, used,
                                                {i, j, fused::Work::finish});
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
  int gpu = 0;
  int multiprocessors = 0;
  int resident = 0;
  require_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  require_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu),
               "multiprocessors");
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "shared memory of potrf_batched");
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads,
                                                             static_cast<std::size_t>(bytes)),
               "occupancy of potrf_batched");
  return static_cast<unsigned>(
      std::min<std::int64_t>(count, std::int64_t{multiprocessors} * std::max(resident, 1)));
}

template <class T, int kWarps>
void launch_small(cudaStream_t stream, const BatchEntry* entries, PivotStatus* statuses,
                  std::int64_t count) {
  const auto kernel = factor_small<T, kWarps>;
  const unsigned blocks = blocks_for(kernel, kWarps * kWarp, 0, count);
  kernel<<<blocks, kWarps * kWarp, 0, stream>>>(entries, statuses, count);
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

}  // namespace

template <class T>
void potrf_batched_cuda(Queue& queue, const BatchArguments& arguments) {
  if (arguments.count == 0) return;
  auto& cuda = static_cast<CudaQueue&>(queue);
  const auto count = static_cast<std::size_t>(arguments.count);
  std::array<bool, kKinds> present{};
  for (std::size_t m = 0; m < count; ++m) {
    present[static_cast<std::size_t>(kind_of<T>(arguments.entries[m]))] = true;
  }
  // In device memory: what each block reads and writes of its own.
  auto* scratch = static_cast<std::byte*>(cuda.scratch(static_cast<std::int64_t>(
      count * (sizeof(BatchEntry) + sizeof(PivotStatus) + sizeof(Verdict)))));
  auto* entries = reinterpret_cast<BatchEntry*>(scratch);
  auto* statuses = reinterpret_cast<PivotStatus*>(entries + count);
  auto* verdicts = reinterpret_cast<Verdict*>(statuses + count);
  cudaStream_t stream = cuda.stream();
  require_cuda(cudaMemcpyAsync(entries, arguments.entries, count * sizeof(BatchEntry),
                               cudaMemcpyHostToDevice, stream),
               "copying the batch");
  require_cuda(cudaMemsetAsync(verdicts, 0, count * sizeof(Verdict), stream), "cudaMemsetAsync");
  if (present[0]) launch_small<T, 2>(stream, entries, statuses, arguments.count);
  if (present[1]) launch_small<T, 4>(stream, entries, statuses, arguments.count);
  if (present[2]) launch_tiles<T, true>(stream, entries, verdicts, statuses, arguments.count);
  if (present[3]) launch_tiles<T, false>(stream, entries, verdicts, statuses, arguments.count);
  require_cuda(cudaMemcpyAsync(arguments.statuses, statuses, count * sizeof(PivotStatus),
                               cudaMemcpyDeviceToHost, stream),
               "copying the statuses");
}

template void potrf_batched_cuda<double>(Queue&, const BatchArguments&);
template void potrf_batched_cuda<float>(Queue&, const BatchArguments&);

}  // namespace strata
