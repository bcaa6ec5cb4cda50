#pragma once
// How thread blocks make tiles of fronts, by the jobs of a program. For front_branch_cuda.cu and
// front_shared_cuda.cu.
//
// Contract: as front_program.hpp has it. A tile is assembled in shared memory, each child's part
// pulled by the block that owns the tile, so that nothing is added by atomics and a tile is written
// once. Then it is treated as a tile of the fused dense kernel (fused_task_cuda.hpp): products on
// the tensor cores as soon as the tiles to the left are there, then the solve, or the factorization
// if it is on the diagonal. Most fronts are narrow: of their columns only as many as there are, by
// eights, are treated.
//
// Sharing says who else needs the tiles; Alone: only this launch. It changes no bit.

#include <algorithm>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/fused_task_cuda.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/fronts/front_cuda.hpp"
#include "kernels/fronts/front_parts_cuda.hpp"
#include "strata/error.hpp"

namespace strata::front {

using namespace fused_kernel;

inline constexpr int kTile = kFrontTile;
static_assert(kFrontTile == kSolve && kSmallFront <= kTile && kDiagonalInverses == kInverses);
inline constexpr int kPlainThreads = 256;

/// The first `operands` of `x`.
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

/// One launch makes all tiles of a front.
struct Alone {
  __device__ int await(const int* flag, int count) const {
    return fused_kernel::await(flag, count);
  }
  __device__ int await(const int* first, const int* second, int count) const {
    return fused_kernel::await(first, second, count);
  }
  /// By one thread: so many tiles of a tile row are there.
  __device__ void publish(int* done, int count) const { fused_kernel::publish(done, count); }
  template <class Task, class Sum, class Work>
  __device__ void multiply(const Task& task, Sum& sum, int inner, Work& workspace) const {
    task.multiply(sum, inner, workspace);
  }
  /// To the others, by all threads: a tile of the panel that is in shared memory; the `count`
  /// inverses of a diagonal tile.
  template <class Task, class T>
  __device__ void send_tile(const Task&, const T*) const {}
  template <class T>
  __device__ void send_inverses(const T*, int, T*) const {}
  /// Calls put(where a tile of an update lies) for each who needs it.
  template <class T, class Put>
  __device__ void for_each_place(T* own, const Put& put) const {
    put(own);
  }
};

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

/// The jobs of one thread block for tiles.
template <class T, class Sharing>
class Worker {
 public:
  using M = Memory<T>;
  static constexpr int kThreads = Sizes<T, kTile>::kThreads;
  static constexpr int kLd = M::kLd;

  __device__ Worker(const Branch<T>& branch, unsigned char* memory, const Sharing& sharing)
      : part_(branch),
        inverses_(branch.inverses()),
        shared_(reinterpret_cast<T*>(memory)),
        scratch_(reinterpret_cast<double*>(memory + M::kScratchAt)),
        workspace_{shared_, scratch_, nullptr},
        sharing_(sharing) {}

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

  /// Assembles the columns that there are, by sixteens; outside of the matrix zero, with ones on
  /// the diagonal of a diagonal tile. Ends behind a barrier.
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
  /// The first row of a child in tile row i and in tile row j, and the row behind the last in each.
  [[nodiscard]] __device__ int4 cuts_of(const FrontRecord& front, const ChildRecord& child, int c,
                                        int i, int j) const {
    if (c >= front.child_count) return {0, 0, 0, 0};
    const std::int32_t* cuts = part_.structure + child.cuts;
    return {cuts[i], cuts[i + 1], max(cuts[j], child.first_column),
            min(cuts[j + 1], child.last_column)};
  }

  /// A front as a matrix of tiles of one size.
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
      sharing_.multiply(task, sum, job.j, workspace_);
      task.write_tile(sum);
      x = shared_;
      other = assembled();
    }
    T* inverses = inverses_ + (front.inverses + job.j) * kDiagonalInverses;
    if (job.i == job.j) {
      __syncthreads();
      factor(task, x, inverses, front);
    } else {
      (void)sharing_.await(arguments.done + job.j, job.j + 1);
      solve(task, x, other, inverses);
    }
    __syncthreads();
    sharing_.send_tile(task, static_cast<const T*>(x));
    if (thread() == 0) sharing_.publish(arguments.done + job.i, job.j + 1);
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
    sharing_.send_inverses(made, warps * 2 * 64, inverses);
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
      if (warp() == 0) (void)sharing_.await(arguments.done + job.i, arguments.done + job.j, across);
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
    sharing_.for_each_place(own, [&](T* to) {
      arguments.x = to - job.i * kTile - job.j * kTile * arguments.ldx;
      if (columns_aligned(to, arguments.ldx)) {
        TileTask<T, kTile, true>{arguments, shared_, job.i, job.j}.put_negative(sum);
      } else {
        TileTask<T, kTile, false>{arguments, shared_, job.i, job.j}.put_negative(sum);
      }
      __syncthreads();
    });
    part_.signal_parent(front);
  }

  Part<T, kThreads> part_;
  T* inverses_;
  T* shared_;
  double* scratch_;
  Workspace<T> workspace_;
  Sharing sharing_;
};

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

}  // namespace strata::front
