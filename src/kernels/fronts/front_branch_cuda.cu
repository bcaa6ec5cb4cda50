// factor_branch on the GPU.
//
// Method: three launches carry out the parts of a branch's program (front_program.hpp), whose jobs
// thread blocks draw one after another. Blocks of one warp make the tiny fronts, blocks of four the
// small ones: a multiprocessor holds many, since all they do is wait for memory and for pivots.
// Then come the tiles (front_tiles_cuda.hpp).
//
// Calls with one structure that lie evenly are carried out by the same launches: of B such, job j
// of call c is drawn as number j·B + c, behind all that it needs.

#include <algorithm>

#include "kernels/backend/even_calls.hpp"
#include "kernels/fronts/front_tiles_cuda.hpp"

namespace strata {
namespace front {
namespace {

constexpr int kTinyThreads = 32;
constexpr int kSmallThreads = 128;

/// The call that a job which was drawn belongs to; constant where there is but one.
template <bool kMany>
__device__ int call_of(int drawn, int calls) {
  return kMany ? drawn % calls : 0;
}
template <bool kMany>
__device__ int job_of(int drawn, int calls) {
  return kMany ? drawn / calls : drawn;
}

template <class T>
__global__ void __launch_bounds__(kPlainThreads) clear_flags(Branch<T> branch) {
  const int first = static_cast<int>(blockIdx.x * kPlainThreads + threadIdx.x);
  const int count = branch.program().flags;
  const int call = static_cast<int>(blockIdx.y);
  int* flags = branch.flags(call);
  for (int n = first; n < count; n += static_cast<int>(gridDim.x) * kPlainThreads) flags[n] = 0;
  if (first == 0) *branch.progress(call) = {};
}

/// The first or the second part of the list.
template <class T, int kThreads, int kOrder, bool kMany>
__global__ void __launch_bounds__(kThreads) run_small(const __grid_constant__ Branch<T> branch) {
  constexpr int kPart = kThreads == kTinyThreads ? 0 : 1;
  __shared__ T x[kOrder * (kOrder + 1)];
  __shared__ int drawn;
  const BranchProgram& program = branch.program();
  const FrontJob* jobs = branch.jobs() + (kPart == 0 ? 0 : program.tiny_jobs);
  const int count = (kPart == 0 ? program.tiny_jobs : program.small_jobs) * branch.calls;
  Part<T, kThreads> part(branch);
  const SmallFronts<T, kThreads> fronts{part, x};
  for (;;) {
    if (threadIdx.x == 0) drawn = atomicAdd(branch.progress()->tickets + kPart, 1);
    part.synchronize();
    if (drawn >= count) return;
    const FrontJob job = jobs[job_of<kMany>(drawn, branch.calls)];
    if constexpr (kMany) part = Part<T, kThreads>(branch, call_of<kMany>(drawn, branch.calls));
    part.wait_for_children(part.records[job.front]);
    for (int f = job.front; f <= job.j; ++f) fronts.factor(f, job.j);
    part.synchronize();
  }
}

template <class T, bool kMany>
__global__ void __launch_bounds__(Sizes<T, kTile>::kThreads, Memory<T>::kBlocksPerSm)
    run_tiles(const __grid_constant__ Branch<T> branch) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int drawn;
  const BranchProgram& program = branch.program();
  const int before = program.tiny_jobs + program.small_jobs;
  const FrontJob* jobs = branch.jobs() + before;
  const int count = (program.job_count - before) * branch.calls;
  Worker<T, Alone> worker(branch, memory, {});
  int* ticket = branch.progress()->tickets + 2;
  for (;;) {
    if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1);
    __syncthreads();
    const int mine = drawn;
    if (mine >= count) return;
    const FrontJob job = jobs[job_of<kMany>(mine, branch.calls)];
    if constexpr (kMany) worker.turn_to(branch, call_of<kMany>(mine, branch.calls));
    worker.perform(job);
    __syncthreads();
  }
}

constexpr int kSumBlocks = 128;

/// Σ 2·log L_jj, and the status; of each call by the blocks of a row of the grid, of
/// which those without a column have nothing to add.
template <class T>
__global__ void __launch_bounds__(kPlainThreads)
    sum_logarithms(const __grid_constant__ Branch<T> branch, std::byte* statuses,
                   std::int64_t to_status) {
  __shared__ __align__(alignof(LogSum)) unsigned char memory[kPlainThreads * sizeof(LogSum)];
  LogSum* sums = reinterpret_cast<LogSum*>(memory);
  __shared__ bool last;
  static_assert(kSumBlocks <= kPlainThreads && kSumBlocks <= kProgramBytes / 32);
  const int call = static_cast<int>(blockIdx.y);
  const int columns = branch.program().columns;
  const int blocks = min(max((columns + kPlainThreads - 1) / kPlainThreads, 1), kSumBlocks);
  if (static_cast<int>(blockIdx.x) >= blocks) return;
  Progress* progress = branch.progress(call);
  const double* diagonal = branch.diagonal(call);
  const int thread = static_cast<int>(threadIdx.x);
  const auto sum_up = [&](const LogSum& own) {
    sums[thread] = own;
    for (int half = kPlainThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half) sums[thread].add(sums[thread + half]);
    }
    __syncthreads();
  };
  LogSum own;
  for (int c = static_cast<int>(blockIdx.x) * kPlainThreads + thread; c < columns;
       c += kSumBlocks * kPlainThreads)
    if (diagonal[c] > 0) own.add(2 * log(diagonal[c]));  // else it has failed
  sum_up(own);
  if (thread == 0) {
    progress->sums[blockIdx.x] = sums[0];
    __threadfence();
    last = atomicAdd(&progress->summed, 1) == blocks - 1;
  }
  __syncthreads();
  if (!last) return;
  sum_up(thread < blocks ? progress->sum_of(thread) : LogSum());
  if (thread == 0)
    write_status(&progress->verdict, sums[0].whole(),
                 reinterpret_cast<PivotStatus*>(statuses + call * to_status), sums[0].fraction());
}

/// All parts of the list, tiles by at most so many blocks.
template <class T, bool kMany>
void launch_parts(cudaStream_t stream, const Branch<T>& branch, unsigned most) {
  using M = Memory<T>;
  require_cuda(cudaFuncSetAttribute(run_tiles<T, kMany>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, M::kBytes),
               "shared memory of run_tiles");
  launch_all(stream, run_small<T, kTinyThreads, kTinyFront, kMany>, kTinyThreads, 0, 0, branch);
  launch_all(stream, run_small<T, kSmallThreads, kSmallFront, kMany>, kSmallThreads, 0, 0, branch);
  launch_all(stream, run_tiles<T, kMany>, Sizes<T, kTile>::kThreads, M::kBytes, most, branch);
}

/// As many calls as their structure allows that all read: its size bounds that of the list.
std::int64_t most_calls(const BlockView* x) {
  constexpr std::int64_t kRows = 32768;  // of a grid
  return std::clamp<std::int64_t>((std::int64_t{1} << 30) / x[4].rows, 1, kRows);
}

template <class T>
void factor_branches(cudaStream_t stream, const KernelCalls& calls, const EvenCalls& even,
                     unsigned most) {
  const BlockView* x = calls[even.first];
  Branch<T> branch = branch_of<T>(x, calls.operands);
  constexpr std::int64_t kSize = sizeof(T);
  branch.calls = static_cast<int>(even.count);
  branch.to_panels = even.stride[0] / kSize;
  branch.to_outside = even.stride[1] / kSize;
  branch.to_values = even.stride[3] / kSize;
  branch.to_work = even.stride[5] / kSize;
  const auto rows = static_cast<unsigned>(even.count);
  const dim3 grid(even.count > 1 ? 8 : kSumBlocks, rows);
  clear_flags<T><<<grid, kPlainThreads, 0, stream>>>(branch);
  blas::require_launched("clear_flags");
  even.count > 1 ? launch_parts<T, true>(stream, branch, 0)
                 : launch_parts<T, false>(stream, branch, most);
  // No more blocks than the panels have columns for.
  const std::int64_t blocks = (x[0].rows * x[0].cols + kPlainThreads - 1) / kPlainThreads;
  const dim3 sums(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kSumBlocks)), rows);
  sum_logarithms<T><<<sums, kPlainThreads, 0, stream>>>(branch, static_cast<std::byte*>(x[2].data),
                                                        even.stride[2]);
  blas::require_launched("sum_logarithms");
}

}  // namespace
}  // namespace front

template <class T>
void factor_branch_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count();) {
    EvenCalls even = even_calls(calls, c, front::most_calls(calls[c]));
    if (even.stride[4] != 0) even = {.first = c, .count = 1};  // other structures
    front::factor_branches<T>(stream, calls, even, p.variant);
    c += even.count;
  }
}

template void factor_branch_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void factor_branch_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
