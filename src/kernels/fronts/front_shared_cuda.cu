// factor_shared on GPUs: one front by several of them.
//
// Method: columns of tiles are dealt to the GPUs in turn (owner_of), and each carries out the jobs
// of its own columns as for a front that it makes alone (front_tiles_cuda.hpp), so that every tile
// has its one order of sums and its bits. What a block has finished it writes to its own memory and
// to that of the others, which so find all operands in their own memory. A tile of the panel
// travels once for all products that it is used in, an update as its reader will read it. Flags
// follow the numbers, behind a fence of the whole system.
//
// Tile (i, j + 1) is made behind tile (i, j), by another GPU, and done[i] has to grow everywhere.
// So who has made tile (i, j) tells the maker of the next one last, behind another fence: what that
// one will write comes later.
//
// A wait ends: behind kPatience without the flag, or when another block has given up, a block goes
// on with whatever is there, all say so to each other, and the status is kSharersLost. That happens
// where a GPU has failed, or where launches come one after another (CUDA_LAUNCH_BLOCKING and tools
// that look at every launch). Until a front succeeds again the process waits less.

#include <cstddef>

#include "kernels/fronts/front_tiles_cuda.hpp"
#include "schedule/shared_call.hpp"

namespace strata {
namespace front {
namespace {

// Nanoseconds. A GPU may wait for another whose multiprocessors are still at work on its subtrees.
constexpr long long kPatience = 60'000'000'000;
constexpr long long kLessPatience = kPatience / 20;

/// The memory of the other GPUs: of number `k` from 0 on.
template <class T>
struct Others {
  int rank;   ///< of this GPU among all
  int count;  ///< of the others
  T* panels[kSharersMax - 1];
  T* update[kSharersMax - 1];
  T* work[kSharersMax - 1];

  [[nodiscard]] __device__ int number_of(int other_rank) const {
    return other_rank - (other_rank > rank ? 1 : 0);
  }
};

__device__ int waits_in_vain;  // of this process, on this GPU, since a front succeeded

__device__ int acquire_from_all(const int* flag) {
  int value = 0;
  asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ void store_for_all(int* flag, int value) {
  asm volatile("st.relaxed.sys.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ long long nanoseconds() {
  long long time = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

/// `own`, as it lies in memory that begins at `mine`, in memory that begins at `theirs`.
template <class E, class T>
__device__ E* moved_to(E* own, const T* mine, T* theirs) {
  const auto offset = reinterpret_cast<const char*>(own) - reinterpret_cast<const char*>(mine);
  return reinterpret_cast<E*>(reinterpret_cast<char*>(theirs) + offset);
}

/// Several GPUs make the tiles of a front.
template <class T>
struct Together {
  const Others<T>* others;
  T* panels;  ///< those of this GPU
  T* update;
  T* work;
  int* lost;

  static constexpr int kThreads = Sizes<T, kTile>::kThreads;

  [[nodiscard]] __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  __device__ void give_up() const {
    atomicAdd(&waits_in_vain, 1);
    store_for_all(lost, 1);
    for (int k = 0; k < others->count; ++k) store_for_all(moved_to(lost, work, others->work[k]), 1);
  }
  [[nodiscard]] __device__ bool given_up() const { return acquire_from_all(lost) != 0; }

  /// As fused_kernel::await; by the whole warp. More than any count, if it was in vain.
  __device__ int await(const int* flag, int count) const { return await(flag, flag, count); }
  __device__ int await(const int* first, const int* second, int count) const {
    constexpr int kMuch = 1 << 24;
    constexpr unsigned kAll = 0xffffffffU;
    const int* flag = lane() == 0 ? first : second;
    int value = kMuch;
    long long begin = 0;
    for (int turn = 1;; ++turn) {
      if (lane() < 2) value = acquire_from_all(flag);
      if (__all_sync(kAll, value >= count)) break;
      __nanosleep(20);
      if (turn % 1024 != 0) continue;
      bool ends = false;
      if (lane() == 0) {
        const long long now = nanoseconds();
        if (begin == 0) begin = now;
        ends = given_up();
        const long long most =
            *static_cast<volatile int*>(&waits_in_vain) == 0 ? kPatience : kLessPatience;
        if (!ends && now - begin > most) {
          ends = true;
          give_up();
        }
      }
      if (__any_sync(kAll, ends)) return kMuch;
    }
    __syncwarp();
    return min(__shfl_sync(kAll, value, 0), __shfl_sync(kAll, value, 1));
  }

  /// Behind a barrier with those who wrote; by one thread.
  __device__ void publish(int* done, int count) const {
    const int next = owner_of(count, others->count + 1);  // the maker of the row's next tile
    __threadfence_system();
    if (next != others->rank) store_for_all(done, count);
    for (int k = 0; k < others->count; ++k)
      if (next == others->rank || k != others->number_of(next))
        store_for_all(moved_to(done, work, others->work[k]), count);
    __threadfence_system();
    store_for_all(
        next == others->rank ? done : moved_to(done, work, others->work[others->number_of(next)]),
        count);
  }

  /// As TileTask::multiply, with waits for others.
  template <class Task, class Sum, class Work>
  __device__ void multiply(const Task& task, Sum& sum, int inner, Work&) const {
    constexpr int kStagesEach = kTile / kDepth;
    __shared__ int seen;  // tiles that are there, as one warp sees it and all use it
    const int* done = task.arguments.done;
    for (int k = 0; k < inner;) {
      if (warp() == 0) {
        const int there = await(done + task.i, done + task.j, k + 1);
        if (lane() == 0) seen = min(there, inner);
      }
      __syncthreads();
      const int end = seen;
      task.multiply_stages(sum, k * kStagesEach, end * kStagesEach);  // ends behind a barrier
      k = end;
    }
  }

  /// Ends behind a barrier.
  template <class Task>
  __device__ void send_tile(const Task& task, const T* x) const {
    for (int k = 0; k < others->count; ++k) {
      Arguments<T> there = task.arguments;
      there.x = moved_to(there.x, panels, others->panels[k]);
      const Task copy{there, task.shared, task.i, task.j};
      if (!copy.plain()) {
        copy.template put_block<kTile, kTile, kThreads>(x, 0, 0, thread());
        continue;
      }
#pragma unroll 4
      for (int n = thread(); n < kTile * kTile / 2; n += kThreads) {
        const int row = 2 * n % kTile;
        const int col = 2 * n / kTile;
        copy.put(row, col, read_both(x + row + col * Task::S::kLd));
      }
    }
    __syncthreads();
  }
  /// `to`: where they are on this GPU. Ends behind no barrier.
  __device__ void send_inverses(const T* made, int count, T* to) const {
    for (int k = 0; k < others->count; ++k) {
      T* there = moved_to(to, panels, others->panels[k]);
      for (int n = thread(); n < kDiagonalInverses; n += kThreads)
        there[n] = n < count ? made[n] : T{0};
    }
  }
  template <class Put>
  __device__ void for_each_place(T* own, const Put& put) const {
    put(own);
#pragma unroll 1
    for (int k = 0; k < others->count; ++k) put(moved_to(own, update, others->update[k]));
  }
};

template <class T>
__global__ void __launch_bounds__(kPlainThreads)
    prepare_front(const __grid_constant__ Branch<T> branch) {
  int* flags = branch.flags();
  for (int n = static_cast<int>(threadIdx.x); n < branch.program().flags; n += kPlainThreads)
    flags[n] = 0;
  if (threadIdx.x == 0) *branch.progress() = {};
}

template <class T>
__global__ void __launch_bounds__(Sizes<T, kTile>::kThreads, Memory<T>::kBlocksPerSm)
    run_own_tiles(const __grid_constant__ Branch<T> branch,
                  const __grid_constant__ Others<T> others) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int drawn;
  const BranchProgram& program = branch.program();
  const std::int32_t* shares = branch.structure + program.shares + others.rank;
  const FrontJob* jobs = branch.jobs() + shares[0];
  const int count = shares[1] - shares[0];
  Progress* progress = branch.progress();
  const Together<T> together{&others, branch.panels, branch.more[0], branch.work, &progress->lost};
  Worker<T, Together<T>> worker(branch, memory, together);
  for (;;) {
    if (threadIdx.x == 0) drawn = together.given_up() ? count : atomicAdd(progress->tickets + 2, 1);
    __syncthreads();
    const int mine = drawn;
    if (mine >= count) return;
    worker.perform(jobs[mine]);
    __syncthreads();
  }
}

constexpr int kConcludeThreads = 1024;  // the next front waits for them

/// Σ 2·log L_jj over the columns of all GPUs, from the panel; the first bad pivot of all.
template <class T>
__global__ void __launch_bounds__(kConcludeThreads)
    conclude_front(const __grid_constant__ Branch<T> branch,
                   const __grid_constant__ Others<T> others, PivotStatus* status) {
  __shared__ __align__(alignof(LogSum)) unsigned char memory[kConcludeThreads * sizeof(LogSum)];
  LogSum* sums = reinterpret_cast<LogSum*>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  const FrontRecord& front = branch.records()[0];
  LogSum own;
  for (int c = thread; c < front.width; c += kConcludeThreads) {
    const auto pivot = static_cast<double>(
        branch.panels[front.panel + c + static_cast<std::int64_t>(c) * front.ld]);
    if (pivot > 0) own.add(2 * log(pivot));  // else it has failed
  }
  sums[thread] = own;
  for (int half = kConcludeThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread].add(sums[thread + half]);
  }
  if (thread != 0) return;
  Progress* progress = branch.progress();
  bool lost = false;
  PivotStatus first{-1, 0, sums[0].whole(), sums[0].fraction()};
  for (int k = -1; k < others.count; ++k) {
    const Progress* there = k < 0 ? progress : moved_to(progress, branch.work, others.work[k]);
    lost = lost || acquire_from_all(&there->lost) != 0;
    // Read alone: the others put together what was found here at the same time.
    if (acquire_from_all(&there->verdict.failed) == 0) continue;
    const auto column = static_cast<double>(__ldcv(&there->verdict.bad_column));
    if (first.bad_column >= 0 && first.bad_column <= column) continue;
    first = {column, __ldcv(&there->verdict.bad_pivot), 0, 0};
  }
  if (lost) first = {kSharersLost, 0, 0, 0};
  if (!lost) waits_in_vain = 0;
  *status = first;
}

/// How many of the others have their memory on this GPU: all of them are to be at work at once.
template <class T>
int others_here(const Others<T>& others) {
  int gpu = 0;
  require_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  int here = 0;
  for (int k = 0; k < others.count; ++k) {
    cudaPointerAttributes memory{};
    require_cuda(cudaPointerGetAttributes(&memory, others.work[k]), "cudaPointerGetAttributes");
    here += memory.device == gpu ? 1 : 0;
  }
  return here;
}

/// Thread blocks for tiles. Behind this the code of all kernels is there: while others wait for
/// this GPU, nothing may have to be loaded.
template <class T>
unsigned blocks_for_tiles() {
  using M = Memory<T>;
  const auto kernel = run_own_tiles<T>;
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, M::kBytes),
               "shared memory of run_own_tiles");
  int each = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                   &each, kernel, Sizes<T, kTile>::kThreads, std::size_t{M::kBytes}),
               "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  cudaFuncAttributes attributes{};
  require_cuda(cudaFuncGetAttributes(&attributes, conclude_front<T>), "cudaFuncGetAttributes");
  return static_cast<unsigned>(multiprocessors() * std::max(each, 1));
}

template <class T>
void share_front(cudaStream_t stream, const BlockView* x, int operands, const SharedCall& call) {
  const Branch<T> branch = branch_of<T>(x, call.own(operands));
  if (call.sharers < 2 || call.sharers > kSharersMax)
    throw Error(ErrorKind::misuse, "factor_shared", "more devices than can share a front");
  Others<T> others{call.rank, call.sharers - 1, {}, {}, {}};
  for (int k = 0; k < others.count; ++k) {
    const BlockView* there = x + call.first_of(k, operands);
    others.panels[k] = static_cast<T*>(there[0].data);
    others.work[k] = static_cast<T*>(there[3].data);
    others.update[k] = call.written > 4 ? static_cast<T*>(there[4].data) : nullptr;
  }
  const unsigned blocks = blocks_for_tiles<T>();
  switch (call.phase) {
    case SharePhase::prepare:
      prepare_front<T><<<1, kPlainThreads, 0, stream>>>(branch);
      return blas::require_launched("prepare_front");
    case SharePhase::work:
      run_own_tiles<T><<<std::max(blocks / (1 + others_here(others)), 1U),
                         Sizes<T, kTile>::kThreads, Memory<T>::kBytes, stream>>>(branch, others);
      return blas::require_launched("run_own_tiles");
    case SharePhase::conclude:
      conclude_front<T><<<1, kConcludeThreads, 0, stream>>>(branch, others, status_of(x[2]));
      return blas::require_launched("conclude_front");
  }
}

}  // namespace
}  // namespace front

template <class T>
void factor_shared_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  if (p.variant == 0) return factor_branch_cuda<T>(queue, calls, p);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c)
    front::share_front<T>(stream, calls[c], calls.operands, SharedCall::of(p.variant));
}

template void factor_shared_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void factor_shared_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
