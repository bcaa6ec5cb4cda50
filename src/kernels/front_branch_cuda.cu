// factor_branch on the GPU.
//
// Method: three launches carry out the parts of a branch's program (front_program.hpp), whose jobs
// thread blocks draw one after another: blocks of one warp the tiny fronts, of four the small ones,
// of which a multiprocessor holds many, since all they do is wait for memory and for pivots; then
// the tiles. A tile is assembled in shared memory, each child's part pulled by the block that owns
// the tile, so that nothing is added by atomics and a tile is written once; then it is what a tile
// of the fused dense kernel is (fused_task_cuda.hpp): products on the tensor cores as soon as the
// tiles to the left are there, then the solve, or the factorization if it is on the diagonal. Most
// fronts are narrow: of their columns only as many as there are, by eights, are treated.
//
// Calls with one structure that lie evenly are carried out by the same launches: of B such, job j
// of call c is drawn as number j·B + c, behind all that it needs.

#include <algorithm>

#include "kernels/blas_cuda.hpp"
#include "kernels/even_calls.hpp"
#include "kernels/front_cuda.hpp"
#include "kernels/front_parts_cuda.hpp"
#include "kernels/fused_task_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/potrf.hpp"
#include "strata/error.hpp"

namespace strata {
namespace front {
namespace {

using namespace fused;

constexpr int kTile = kFrontTile;
static_assert(kFrontTile == kSolve && kSmallFront <= kTile && kDiagonalInverses == kInverses);
constexpr int kPlainThreads = 256;
constexpr int kTinyThreads = 32;
constexpr int kSmallThreads = 128;

template <class T>
Branch<T> branch_of(const BlockView* x, int operands) {
  Branch<T> branch{static_cast<T*>(x[0].data),
                   static_cast<T*>(x[1].data),
                   static_cast<T*>(x[5].data),
                   static_cast<const T*>(x[3].data),
                   static_cast<const std::int32_t*>(x[4].data),
                   x[3].rows,
                   {}};
  if (operands > factor_branch.operands + kPlacesMax)
    throw Error(ErrorKind::misuse, "factor_branch", "more operands than there are places");
  for (int k = factor_branch.operands; k < operands; ++k)
    branch.more[k - factor_branch.operands] = static_cast<T*>(x[k].data);
  return branch;
}

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

/// What a block has in shared memory: the pipeline of a product, whose first half is a tile
/// afterwards, and whose second one is a tile before; what a factorization needs. Three blocks
/// share a multiprocessor: while one waits for memory or for pivots, others multiply.
template <class T>
struct Memory {
  static constexpr int kLd = padded(kTile);
  static constexpr int kStage = Sizes<T, kTile>::kStage;  // elements of both operands
  static constexpr int kSecond = 2 * kStage;
  static_assert(kSecond == kTile * kLd && Sizes<T, kTile>::kPipeline == 2 * kSecond);
  static constexpr int kScratchAt = 2 * kSecond * static_cast<int>(sizeof(T));
  static constexpr int kBytes =
      kScratchAt + (kFactorScratch + kInverses) * static_cast<int>(sizeof(double));
  static constexpr int kBlocksPerSm = 3;
};

/// The jobs of one thread block of the third part.
template <class T>
class Worker {
 public:
  using M = Memory<T>;
  static constexpr int kThreads = Sizes<T, kTile>::kThreads;
  static constexpr int kLd = M::kLd;

  __device__ Worker(const Branch<T>& branch, unsigned char* memory)
      : part_(branch),
        inverses_(branch.inverses()),
        shared_(reinterpret_cast<T*>(memory)),
        scratch_(reinterpret_cast<double*>(memory + M::kScratchAt)),
        workspace_{shared_, scratch_, nullptr} {}

  __device__ void turn_to(const Branch<T>& branch, int call) {
    part_ = Part<T, kThreads>(branch, call);
    inverses_ = branch.inverses(call);
  }

  __device__ void perform(const FrontJob& job) {
    const FrontRecord front = part_.records[job.front];
    if (job.i < 0) {
      part_.wait_for_children(front);
      const SmallFronts<T, kThreads> fronts{part_, shared_};
      return fronts.factor(job.front, job.j);
    }
    const FrontTiles tiles{front.width, front.rows};
    // Vectors that hold nothing but elements of the tile: the columns of a panel would feel others.
    constexpr int kVector = 16 / sizeof(T);
    const bool in_panel = job.j < tiles.across();
    const T* rows_at = part_.panel_of(front) + (in_panel ? 0 : front.width);
    const bool vectors =
        columns_aligned(rows_at, front.ld) && (!in_panel || front.width % kVector == 0);
    if (in_panel) {
      part_.wait_for_children(front);
      vectors ? panel_tile<true>(front, tiles, job) : panel_tile<false>(front, tiles, job);
    } else {
      vectors ? update_tile<true>(front, tiles, job) : update_tile<false>(front, tiles, job);
    }
  }

 private:
  [[nodiscard]] __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  [[nodiscard]] __device__ T* assembled() const { return shared_ + M::kSecond; }
  [[nodiscard]] __device__ T* inverses() const {
    return reinterpret_cast<T*>(scratch_ + kFactorScratch);
  }

  /// Ends behind a barrier. Of as many columns as there are, by sixteens; outside of the matrix
  /// zero, with ones on the diagonal of a diagonal tile.
  __device__ void assemble(const FrontRecord& front, const FrontTiles& tiles, int i, int j) const {
    T* x = assembled();
    const int row = tiles.begin(i);
    const int col = tiles.begin(j);
    const int columns = tiles.begin(j + 1) - col;
    // Each step's reads are on their way before the next one's: what an entry needs, and a child.
    const bool has_entries = j < front.entry_tiles;
    const std::int32_t* range = part_.structure + front.tile_entries + tiles.before(j) + i - j;
    const int end = has_entries ? range[1] : 0;
    const int own = (has_entries ? range[0] : 0) + thread();
    ChildRecord mine = part_.child_of(front, lane());
    const std::int32_t* places = part_.structure + front.entries;
    const std::int32_t* sources = places + front.entry_count;
    const int place = own < end ? places[own] : 0;
    const int source = own < end ? sources[own] : -1;
    int4 cut = cuts_of(front, mine, lane(), i, j);
    const T value = own < end ? part_.value_of(front, source, place) : T{0};
    for (int n = thread(); n < (columns + 15) / 16 * 16 * kLd; n += kThreads)
      x[n] = i == j && n % (kLd + 1) == 0 && n / (kLd + 1) >= columns ? T{1} : T{0};
    __syncthreads();
    if (own < end) x[place % front.ld - row + (place / front.ld - col) * kLd] = value;
    for (int e = own + kThreads; e < end; e += kThreads)
      x[places[e] % front.ld - row + (places[e] / front.ld - col) * kLd] =
          part_.value_of(front, sources[e], places[e]);
    __syncthreads();
    for (int first = 0; first < front.child_count; first += kWarp) {
      if (first > 0) {
        mine = part_.child_of(front, first + lane());
        cut = cuts_of(front, mine, first + lane(), i, j);
      }
      const auto given = part_.given(mine, cut.z);
      // The same in all warps.
      unsigned gives = __ballot_sync(0xffffffffU, cut.x < cut.y && cut.z < cut.w);
      for (; gives != 0; gives &= gives - 1) {
        const int k = __ffs(static_cast<int>(gives)) - 1;
        part_.template add_child<8>(
            x, kLd, row, col, Part<T, kThreads>::from_lane(given, k),
            __shfl_sync(0xffffffffU, cut.x, k), __shfl_sync(0xffffffffU, cut.y, k),
            __shfl_sync(0xffffffffU, cut.z, k), __shfl_sync(0xffffffffU, cut.w, k));
        __syncthreads();
      }
    }
  }
  /// Of the rows of a child in tile rows i and j: the first of each, and behind the last.
  [[nodiscard]] __device__ int4 cuts_of(const FrontRecord& front, const ChildRecord& child, int c,
                                        int i, int j) const {
    if (c >= front.child_count) return {0, 0, 0, 0};
    const std::int32_t* cuts = part_.structure + child.cuts;
    return {cuts[i], cuts[i + 1], max(cuts[j], child.first_column),
            min(cuts[j + 1], child.last_column)};
  }

  /// Of a front as a matrix of tiles of one size.
  [[nodiscard]] __device__ Arguments<T> arguments_of(const FrontRecord& front) const {
    Arguments<T> arguments{};
    arguments.l = part_.panel_of(front);
    arguments.ldx = arguments.ldl = front.ld;
    arguments.first_column = front.column;
    arguments.done = part_.flags + front.flag + 1;
    arguments.verdict = part_.verdict;
    arguments.factors = true;
    return arguments;
  }
  /// How far rows below the columns lie from where tiles of one size would have them.
  [[nodiscard]] __device__ static int moved(const FrontTiles& tiles) {
    return tiles.width - tiles.across() * kTile;
  }

  template <bool kVectors>
  __device__ __noinline__ void panel_tile(const FrontRecord& front, const FrontTiles& tiles,
                                          const FrontJob& job) {
    using Task = TileTask<T, kTile, kVectors>;
    const int across = tiles.across();
    const bool below = job.i >= across;
    assemble(front, tiles, job.i, job.j);
    Arguments<T> arguments = arguments_of(front);
    arguments.x = part_.panels + front.panel + (below ? moved(tiles) : 0);
    arguments.rows = below ? across * kTile + front.rows : front.width;
    arguments.cols = front.width;
    const Task task{arguments, shared_, job.i, job.j};
    T* x = assembled();
    T* other = shared_;
    if (job.j > 0) {
      typename Task::Sum sum;
      set_zero(sum);
      task.subtract_from(sum, x);
      __syncthreads();
      task.multiply(sum, job.j, workspace_);
      task.write_tile(sum);
      x = shared_;
      other = assembled();
    }
    T* inverses = inverses_ + (front.inverses + job.j) * kDiagonalInverses;
    if (job.i == job.j) {
      __syncthreads();
      factor(task, x, inverses, front);
    } else {
      (void)await(arguments.done + job.j, job.j + 1);
      solve(task, x, other, inverses);
    }
    __syncthreads();
    if (thread() == 0) publish(arguments.done + job.i, job.j + 1);
  }

  /// The tile on the diagonal in x; its results, and inverses, go to global memory.
  template <class Task>
  __device__ void factor(const Task& task, T* x, T* inverses, const FrontRecord& front) const {
    const bool is_plain = task.plain();
    const int warps = (task.cols() + kRowsPerWarp - 1) / kRowsPerWarp;
    const std::int64_t ld = task.arguments.ldx;
    const std::int64_t first = front.column + task.j * kTile;
    if (warp() < warps) {
      const StripSink<T> sink(is_plain ? task.x(task.j) : nullptr, ld, warp());
      factor_strips(
          x, kLd, scratch_, this->inverses(), sink,
          [&](int column, double pivot) {
            if (lane() == 0) report_least(part_.verdict, first + column, pivot);
          },
          NoProgress{}, warps);
      if (!is_plain) task.put_strip(x, 0, 0);
    }
    __syncthreads();
    const T* made = this->inverses();
    // The others are zero, so that L has one set of bytes.
    for (int n = thread(); n < kDiagonalInverses; n += kThreads)
      inverses[n] = n < warps * 2 * 64 ? made[n] : T{0};
    for (int c = thread(); c < task.cols(); c += kThreads)
      part_.diagonal[first + c] = static_cast<double>(x[c * (kLd + 1)]);
  }

  /// The tile below in x; behind a wait for the one on the diagonal, which is brought to l.
  template <class Task>
  __device__ void solve(const Task& task, T* x, T* l, const T* inverses) const {
    const int blocks = (task.cols() + 7) / 8;
    constexpr int kVector = 16 / sizeof(T);
    for (int n = kVector * thread(); n < blocks * 64; n += kVector * kThreads)
      copy_async<16>(this->inverses() + n, inverses + n, 16);
    for (int s = 0; s < (blocks + 1) / 2; ++s) {
      const BlockCopy<T, kTile, kDepth, kThreads> copy(
          thread(), task.l(task.j) + s * kDepth * task.arguments.ldl, task.arguments.ldl,
          task.cols(), task.kAligned);
      copy.issue(l + s * kDepth * kLd, kLd, task.cols() - s * kDepth);
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    const bool is_plain = task.plain();
    const StripSink<T> sink(is_plain ? task.x(task.j) : nullptr, task.arguments.ldx, warp());
    solve_columns<true>(x, kLd, static_cast<const T*>(l), kLd, this->inverses(), sink, NoProgress{},
                        blocks);
    if (!is_plain) task.put_strip(x, 0, 0);
  }

  /// `count` columns of both operands, of stage `stage`; the others of the stage become zero.
  template <class Task>
  __device__ void fetch_stage(const Task& task, int stage, int count, T* to) const {
    const Arguments<T>& a = task.arguments;
    const BlockCopy<T, kTile, kDepth, kThreads> copy_x(thread(), task.x(0) + stage * kDepth * a.ldx,
                                                       a.ldx, task.rows(), task.kAligned);
    copy_x.issue(to, kLd, count);
    if (task.i == task.j) return;
    const BlockCopy<T, kTile, kDepth, kThreads> copy_l(thread(), task.l(0) + stage * kDepth * a.ldl,
                                                       a.ldl, task.cols(), task.kAligned);
    copy_l.issue(to + kDepth * kLd, kLd, count);
  }
  template <class Task>
  __device__ void multiply_stage(const Task& task, typename Task::Sum& sum, const T* stage) const {
    tile::multiply<kDepth>(sum, stage + task.warp_row(), kLd,
                           stage + (task.i == task.j ? 0 : kDepth * kLd) + task.warp_col(), kLd);
  }

  template <bool kVectors>
  __device__ __noinline__ void update_tile(const FrontRecord& front, const FrontTiles& tiles,
                                           const FrontJob& job) {
    using Task = TileTask<T, kTile, kVectors>;
    const int across = tiles.across();
    Arguments<T> arguments = arguments_of(front);
    arguments.x = part_.panel_of(front) + moved(tiles);
    arguments.l = arguments.x;
    arguments.rows = arguments.cols = across * kTile + front.rows;
    const Task task{arguments, shared_, job.i, job.j};
    // Who made these tiles has seen all children.
    if (front.panel_place == 0) {
      if (warp() == 0) (void)await(arguments.done + job.i, arguments.done + job.j, across);
      __syncthreads();
    }
    // Columns in their order, wherever a supernode is split. Where they are few they come while the
    // tile is assembled.
    const int whole = front.width / kDepth;
    const int rest = front.width % kDepth;
    if (whole == 1) fetch_stage(task, 0, kDepth, shared_);
    if (whole <= 1 && rest > 0) fetch_stage(task, whole, rest, shared_ + M::kStage);
    commit_copies();
    assemble(front, tiles, job.i, job.j);
    typename Task::Sum sum;
    set_zero(sum);
    task.subtract_from(sum, assembled());
    wait_copies<0>();
    __syncthreads();
    if (whole == 1) multiply_stage(task, sum, shared_);
    if (whole <= 1 && rest > 0) multiply_stage(task, sum, shared_ + M::kStage);
    __syncthreads();
    if (whole > 1 && rest == 0) task.multiply_stages(sum, 0, whole);
    if (whole > 1 && rest > 0) task.template multiply_stages<true>(sum, 0, whole + 1, rest);
    // The same tile of the update.
    const int column = job.j - across;
    T* own = part_.update_of(front) + update_column(front.ld_update, front.step, column * kTile) +
             (job.i - across) * kTile;
    arguments.ldx = front.ld_update - front.step * column;
    arguments.x = own - job.i * kTile - job.j * kTile * arguments.ldx;
    if (columns_aligned(own, arguments.ldx)) {
      TileTask<T, kTile, true>{arguments, shared_, job.i, job.j}.put_negative(sum);
    } else {
      TileTask<T, kTile, false>{arguments, shared_, job.i, job.j}.put_negative(sum);
    }
    __syncthreads();
    part_.signal_parent(front);
  }

  Part<T, kThreads> part_;
  T* inverses_;
  T* shared_;
  double* scratch_;
  Workspace<T> workspace_;
};

template <class T, bool kMany>
__global__ void __launch_bounds__(Sizes<T, kTile>::kThreads, Memory<T>::kBlocksPerSm)
    run_tiles(const __grid_constant__ Branch<T> branch) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int drawn;
  const BranchProgram& program = branch.program();
  const int before = program.tiny_jobs + program.small_jobs;
  const FrontJob* jobs = branch.jobs() + before;
  const int count = (program.job_count - before) * branch.calls;
  Worker<T> worker(branch, memory);
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

/// As many blocks as the GPU holds at once, but at most `most`, unless that is 0.
template <class Kernel>
void launch_all(cudaStream_t stream, Kernel kernel, int threads, int bytes, unsigned most,
                const auto& branch) {
  int each = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads,
                                                             static_cast<std::size_t>(bytes)),
               "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  auto blocks = static_cast<unsigned>(multiprocessors() * std::max(each, 1));
  if (most > 0) blocks = std::min(blocks, most);
  kernel<<<blocks, static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), stream>>>(
      branch);
  blas::require_launched("factor_branch");
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
