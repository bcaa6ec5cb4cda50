#pragma once
// One tile of a factorization or a solve, from its first product to its result. For fused_cuda.cu
// and potrf_batched_cuda.cu.
//
// Contract: tile (i, j) of X is brought to its end by one thread block: sum = Σ_k X(i, k)·
// L(j, k)ᵀ − A(i, j) in registers, then −sum is factored (i = j) or solved with L(j, j), and
// written. Where other blocks are at work on the same matrix, `done` says what they have finished.

#include <climits>

#include "kernels/dense/fused_state_cuda.hpp"

namespace strata::fused_kernel {

template <class T, int kTile, bool kVectors>
struct TileTask {
  using S = Sizes<T, kTile>;
  using Sum = Accumulator<T, S::kWarpRows>;
  static constexpr bool kAligned = kVectors;

  const Arguments<T>& arguments;
  T* shared;
  int i;
  int j;

  [[nodiscard]] __device__ bool diagonal() const { return arguments.factors && i == j; }
  [[nodiscard]] __device__ T* x(int k) const {
    return arguments.x + static_cast<std::int64_t>(i) * kTile +
           static_cast<std::int64_t>(k) * kTile * arguments.ldx;
  }
  [[nodiscard]] __device__ const T* l(int k) const {
    return arguments.l + static_cast<std::int64_t>(j) * kTile +
           static_cast<std::int64_t>(k) * kTile * arguments.ldl;
  }
  [[nodiscard]] __device__ int rows() const {
    return static_cast<int>(min(static_cast<std::int64_t>(kTile),
                                arguments.rows - static_cast<std::int64_t>(i) * kTile));
  }
  [[nodiscard]] __device__ int cols() const {
    return static_cast<int>(min(static_cast<std::int64_t>(kTile),
                                arguments.cols - static_cast<std::int64_t>(j) * kTile));
  }
  [[nodiscard]] __device__ int warp_row() const { return warp() / S::kWarpsAcross * S::kWarpRows; }
  [[nodiscard]] __device__ int warp_col() const { return warp() % S::kWarpsAcross * kWarpCols; }

  /// All of the tile is there and may be read and written two rows at a time.
  [[nodiscard]] __device__ bool plain() const {
    return kVectors && rows() == kTile && cols() == kTile;
  }

  /// Has the tile copied to `to`, by kWarps warps, of which this is number `number`; outside of the
  /// matrix it is zero, with ones on the diagonal of a diagonal tile.
  template <int kWarps>
  __device__ void fetch_by_warps(T* to, int number) const {
    constexpr int kPairs = sizeof(T) == 8 ? 1 : 2;  // of elements that one copy takes
    if (plain()) {
      constexpr int kColumns = 2 * kPairs * kWarp / kTile;  // at once
      const int row = 2 * kPairs * lane() % kTile;
      const int col = number * kColumns + 2 * kPairs * lane() / kTile;
      const T* from = x(j) + row + col * arguments.ldx;
      to += row + col * S::kLd;
#pragma unroll 8
      for (int k = 0; k < kTile; k += kWarps * kColumns) {
        copy_async<16>(to, from, 16);
        to += kWarps * kColumns * S::kLd;
        from += kWarps * kColumns * arguments.ldx;
      }
      return;
    }
#pragma unroll 1
    for (int n = number * kWarp + lane(); n < kTile * kTile; n += kWarps * kWarp) {
      const int row = n % kTile;
      const int col = n / kTile;
      const bool inside = row < rows() && col < cols();
      const T* from = x(j) + (inside ? row + col * arguments.ldx : 0);
      T* at = to + row + col * S::kLd;
      if (!inside && diagonal() && row == col) {
        *at = 1;
      } else {
        copy_async<sizeof(T)>(at, from, inside ? sizeof(T) : 0);
      }
    }
  }

  /// Has the tile brought to the second-level cache, where subtract_tile() will find it.
  __device__ void prefetch_tile() const {
    constexpr int kLine = 128 / sizeof(T);  // elements
    constexpr int kLines = kTile / kLine;   // of a column
    for (int n = static_cast<int>(threadIdx.x); n < kTile * kLines; n += S::kThreads) {
      const int row = n % kLines * kLine;
      const int col = n / kLines;
      if (row < rows() && col < cols()) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(x(j) + row + col * arguments.ldx));
      }
    }
  }

  /// Has the tile copied to where subtract_fetched() will find it, for kTile == 64. What follows
  /// the products is on the way that others wait for.
  __device__ void fetch_tile() const {
    const BlockCopy<T, kTile, kTile, S::kThreads> copy(static_cast<int>(threadIdx.x), x(j),
                                                       arguments.ldx, rows(), kVectors);
    copy.issue(shared + S::kPipeline, S::kLd, cols());
    commit_copies();
  }
  /// As subtract_tile(), of what fetch_tile() has fetched.
  __device__ void subtract_fetched(Sum& sum) const {
    wait_copies<0>();
    __syncthreads();
    subtract_from(sum, shared + S::kPipeline);
  }
  /// The same of a tile in shared memory.
  __device__ void subtract_from(Sum& sum, const T* from) const {
    const int row_end = rows();
    const int col_end = cols();
    const int unit = diagonal() ? 0 : 2 * kTile;  // how far the unit matrix is from here
    sum.each_pair([&](int row, int col, T& first, T& second) {
      row += warp_row();
      col += warp_col();
      const Pair<T> pair = read_both(from + row + col * S::kLd);
      const bool inside = col < col_end;
      first = inside && row < row_end ? first - pair.x : (row == col + unit ? T{-1} : T{0});
      second =
          inside && row + 1 < row_end ? second - pair.y : (row + 1 == col + unit ? T{-1} : T{0});
    });
  }

  /// sum ← sum − A(i, j), and minus the unit matrix outside. Behind the products, so that these add
  /// up among themselves: differences of the size of A would lose more digits at each step (seen as
  /// a backward error that grew with √n).
  __device__ void subtract_tile(Sum& sum) const {
    const T* from = x(j) + warp_row() + warp_col() * arguments.ldx;
    if (plain()) {
      sum.each_pair([&](int row, int col, T& first, T& second) {
        const Pair<T> pair = read_both(from + row + col * arguments.ldx);
        first -= pair.x;
        second -= pair.y;
      });
      return;
    }
    const int row_end = rows() - warp_row();
    const int col_end = cols() - warp_col();
    const int offset = diagonal() ? warp_col() - warp_row() : 2 * kTile;  // of the diagonal
    sum.each_pair([&](int row, int col, T& first, T& second) {
      const T* at = from + row + col * arguments.ldx;
      const bool inside = col < col_end;
      first = inside && row < row_end ? first - at[0] : (row == col + offset ? T{-1} : T{0});
      second =
          inside && row + 1 < row_end ? second - at[1] : (row + 1 == col + offset ? T{-1} : T{0});
    });
  }

  /// The tiles k < known_ready() of both rows are finished; their stages can be counted in an int.
  [[nodiscard]] __device__ int known_ready() const {
    return arguments.done == nullptr ? INT_MAX / kTile : 0;
  }
  /// Waits until the tiles of stage `stage` are finished; tiles k < ready are known to be.
  __device__ void wait_for(int stage, int& ready) const {
    const int k = stage / (kTile / kDepth);
    if (ready > k) return;
    const bool both = arguments.factors && i != j;
    ready = both ? await(arguments.done + i, arguments.done + j, k + 1)
                 : await(arguments.done + i, k + 1);
  }

  /// sum += Σ_{k < inner} X(i, k)·L(j, k)ᵀ, each k as soon as it is there.
  __device__ void multiply(Sum& sum, int inner, Workspace<T>& workspace) const {
    if (inner == 0) return;
    const int stages = inner * (kTile / kDepth);
    if constexpr (S::kByTma && kVectors) {
      multiply_by_tma(sum, stages, workspace);
      workspace.staged += stages;
      __syncthreads();
    } else {
      multiply_staged(sum, stages);
    }
  }

  /// With a box an operand and stage, by TMA: kDepth columns, as long as they lie in shared memory.
  /// The rows too many are not used; another block may be writing them. All warps are consumers,
  /// and take turns as the producer of a stage: they wait for each other only as far as the
  /// pipeline is short.
  __device__ void multiply_by_tma(Sum& sum, int stages, const Workspace<T>& workspace) const {
    const bool both = !diagonal();
    const int used = workspace.staged;
    StageBarriers* barriers = workspace.stages;
    int ready = known_ready();
    const auto fetch = [&](int stage) {
      wait_for(stage, ready);
      fence_async_proxy();  // what others wrote and await() has seen comes before the copies
      const int turn = used + stage;
      const int slot = turn % kStages;
      wait_phase(&barriers->empty[slot], turn / kStages % 2 ^ 1);
      if (lane() == 0) {
        T* to = shared + slot * S::kStage;
        arrive_expecting(&barriers->full[slot],
                         (both ? 2 : 1) * S::kStage / 2 * static_cast<int>(sizeof(T)));
        copy_by_tma(to, &workspace.maps->x, i * kTile, stage * kDepth, &barriers->full[slot]);
        if (both) {
          copy_by_tma(to + kDepth * S::kLd, &workspace.maps->l, j * kTile, stage * kDepth,
                      &barriers->full[slot]);
        }
      }
      __syncwarp();
    };
    const auto enter = [&](int stage) {  // the stage's place, once it is there
      const int turn = used + stage;
      wait_phase(&barriers->full[turn % kStages], turn / kStages % 2);
      return turn % kStages * S::kStage;
    };
    fence_async_proxy();  // and so does what this block wrote to the pipeline
    __syncthreads();
    if (warp() < kStages - 1) fetch(warp());
    const T* a = shared + warp_row();
    const T* b = shared + (both ? kDepth * S::kLd : 0) + warp_col();
    // One fragment is read while the other is used, over the ends of stages too.
    typename Sum::Fragment fragment[2];
    int at = enter(0);
    Sum::read(fragment[0], a + at, S::kLd, b + at, S::kLd);
    constexpr int kSteps = kDepth / Sum::kStep;
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage) {
      const int slot = (used + stage) % kStages;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        int place = at + (step + 1) * Sum::kStep * S::kLd;
        if (step == kSteps - 1) {
          __syncwarp();
          if (lane() == 0) arrive(&barriers->empty[slot]);  // this warp has read the stage
          if (stage + 1 < stages) at = enter(stage + 1);
          place = at;
        }
        Sum::read(fragment[(step + 1) % 2], a + place, S::kLd, b + place, S::kLd);
        sum.multiply(fragment[step % 2]);
        if (step == kSteps / 2 - 1) {
          const int ahead = stage + kStages - 1;
          if (ahead < stages && warp() == ahead % S::kWarps) fetch(ahead);
        }
      }
    }
  }

  /// With copies by all threads, spread between the products, and a barrier a stage. Where the next
  /// tiles are not known to be there, what has been copied is multiplied before they are waited
  /// for.
  __device__ void multiply_staged(Sum& sum, int stages) const {
    constexpr int kTileStages = kTile / kDepth;
    __shared__ int seen;  // tiles that are there, as one warp sees it and all use it
    int ready = known_ready();
    for (int stage = 0; stage < stages;) {
      if (ready * kTileStages <= stage) {
        if (warp() == 0) {
          wait_for(stage, ready);
          if (lane() == 0) seen = ready;
        }
        __syncthreads();
        ready = seen;
      }
      const int end = ready >= stages / kTileStages ? stages : ready * kTileStages;
      multiply_stages(sum, stage, end);
      stage = end;
    }
  }
  /// The stages first … end − 1. With kPartial the last one has but `columns` columns.
  template <bool kPartial = false>
  __device__ void multiply_stages(Sum& sum, int first, int end, int columns = kDepth) const {
    using Copy = StageCopy<T, kTile, S::kThreads, kVectors>;
    const bool both = !diagonal();
    Copy copy_x(x(0) + first * (kDepth * arguments.ldx), arguments.ldx, rows());
    Copy copy_l(l(0) + first * (kDepth * arguments.ldl), arguments.ldl, both ? cols() : 0);
    const auto copy = [&](int part, int stage) {
      T* to = shared + stage % kStages * S::kStage;
      const int wanted = stage >= end ? 0 : (kPartial && stage == end - 1 ? columns : kDepth);
      copy_x.template issue<kPartial>(part, to, wanted);
      copy_l.template issue<kPartial>(part, to + kDepth * S::kLd, wanted);
    };
#pragma unroll 1
    for (int stage = first; stage < first + kStages - 1; ++stage) {
      for (int part = 0; part < Copy::kCopies; ++part) copy(part, stage);
      commit_copies();
    }
    const T* a = shared + warp_row();
    const T* b = shared + (both ? kDepth * S::kLd : 0) + warp_col();
    wait_copies<kStages - 2>();
    __syncthreads();
    typename Sum::Fragment fragment[2];  // as above
    const int begin = first % kStages * S::kStage;
    Sum::read(fragment[0], a + begin, S::kLd, b + begin, S::kLd);
    constexpr int kSteps = kDepth / Sum::kStep;
    static_assert(Copy::kCopies <= kSteps);
#pragma unroll 1
    for (int stage = first; stage < end; ++stage) {
      const int at = stage % kStages * S::kStage;
      const int next = (stage + 1) % kStages * S::kStage;
      const int ahead = stage + kStages - 1;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        int place = at + (step + 1) * Sum::kStep * S::kLd;
        if (step == kSteps - 1) {
          place = next;
          commit_copies();
          wait_copies<kStages - 2>();
          __syncthreads();  // the next stage is there for all, and this one has been read by all
        }
        Sum::read(fragment[(step + 1) % 2], a + place, S::kLd, b + place, S::kLd);
        if (step < Copy::kCopies && step < kSteps - 1) copy(step, ahead);
        if (step == kSteps - 2 && Copy::kCopies == kSteps) copy(step + 1, ahead);
        sum.multiply(fragment[step % 2]);
      }
    }
    wait_copies<0>();
    __syncthreads();
  }

  /// The tile in shared memory ← −sum.
  __device__ void write_tile(Sum& sum) const {
    sum.each_pair([&](int row, int col, T& first, T& second) {
      T* at = shared + warp_row() + row + (warp_col() + col) * S::kLd;
      at[0] = -first;
      at[1] = -second;
    });
  }

  /// Rows row and row + 1, row even, of a column of a plain() tile to global memory, where they are
  /// not above the diagonal. Short, as others wait for what it is part of.
  __device__ void put(int row, int col, Pair<T> pair) const {
    T* at = x(j) + row + col * arguments.ldx;
    const bool lower = diagonal();
    if (!lower || row >= col) *reinterpret_cast<Pair<T>*>(at) = pair;
    if (lower && row + 1 == col) at[1] = pair.y;
  }
  /// As much of kRows × kCols elements of a tile in shared memory, from (row, col) on, as belongs
  /// to the matrix; by kThreads threads, of which this is number `thread`.
  template <int kRows, int kCols, int kThreads>
  __device__ void put_block(const T* tile, int row, int col, int thread) const {
#pragma unroll 1
    for (int n = thread; n < kRows * kCols; n += kThreads) {
      const int r = row + n % kRows;
      const int c = col + n / kRows;
      if (r < rows() && c < cols() && (!diagonal() || r >= c)) {
        x(j)[r + c * arguments.ldx] = tile[r + c * S::kLd];
      }
    }
  }
  /// This warp's strip of a tile in shared memory, 64 columns from (row, col), of one not plain().
  __device__ void put_strip(const T* tile, int row, int col) const {
    __syncwarp();
    put_block<kRowsPerWarp, kSolve, kWarp>(tile, row + warp() * kRowsPerWarp, col, lane());
  }
  /// All of −sum.
  __device__ void put_negative(Sum& sum) const {
    if (!plain()) {
      write_tile(sum);
      __syncthreads();
      return put_block<kTile, kTile, S::kThreads>(shared, 0, 0, static_cast<int>(threadIdx.x));
    }
    sum.each_pair([&](int row, int col, T& first, T& second) {
      put(warp_row() + row, warp_col() + col, {-first, -second});
    });
  }
};

/// What is left of a tile in shared memory when its products are subtracted.
template <class T, int kTile, int kIb, bool kVectors>
struct Finisher {
  using S = Sizes<T, kTile>;
  using Task = TileTask<T, kTile, kVectors>;

  const Task& task;
  const Workspace<T>& workspace;

  __device__ T* inverses() const { return workspace.inverses(); }

  /// By a warp that has seen all pivots before this one of the tile, or been told by who has.
  __device__ void report(int column, double pivot) const {
    const Arguments<T>& a = task.arguments;
    if (lane() != 0) return;
    report_least(a.verdict, a.first_column + static_cast<std::int64_t>(task.j) * kTile + column,
                 pivot);
  }

  /// X(from …, second half) −= X(from …, first half)·B(…, first half)ᵀ, B in shared memory, for
  /// kTile == 128; kRows rows a warp.
  template <int kRows>
  __device__ void update_second_half(int from, const T* b, int ldb) const {
    Accumulator<T, kRows> sum;
    set_zero(sum);
    const int row = from + warp() / 2 * kRows;
    const int col = warp() % 2 * kWarpCols;
    tile::multiply<kSolve>(sum, static_cast<const T*>(task.shared) + row, S::kLd, b + col, ldb);
    T* to = task.shared + row + (kSolve + col) * S::kLd;
    sum.each_pair([&](int r, int c, T& first, T& second) {
      to[r + c * S::kLd] -= first;
      to[r + 1 + c * S::kLd] -= second;
    });
  }

  /// 64 columns of the diagonal tile from the row and column `first`, by the first kWarps warps,
  /// into both memories. Ends behind no barrier.
  template <int kWarps>
  __device__ void factor_from(int first) const {
    if (warp() >= kWarps) return;
    const bool is_plain = task.plain();
    T* corner = task.shared + first * (S::kLd + 1);
    const std::int64_t ldx = task.arguments.ldx;
    const StripSink<T> sink(is_plain ? task.x(task.j) + first * (ldx + 1) : nullptr, ldx, warp());
    factor_panel<kIb, kWarps>(
        corner, S::kLd, workspace.scratch, inverses(), sink,
        [&](int column, double pivot) { report(first + column, pivot); }, NoProgress{});
    if (!is_plain) task.put_strip(task.shared, first, first);
  }

  __device__ void factor() const {
    factor_from<S::kWarps>(0);
    if constexpr (kTile == 128) {
      __syncthreads();
      update_second_half<16>(kSolve, task.shared + kSolve, S::kLd);
      __syncthreads();
      factor_from<4>(kSolve);
    }
  }

  /// A 64 × 64 block of L(j, j), rows and columns from (row, col), into `to`; zero outside.
  __device__ void load_block(T* to, int ld, int row, int col) const {
    const Arguments<T>& a = task.arguments;
    const std::int64_t corner = static_cast<std::int64_t>(task.j) * kTile;
    const BlockCopy<T, kSolve, kSolve, S::kThreads> copy(
        static_cast<int>(threadIdx.x), a.l + corner + row + (corner + col) * a.ldl, a.ldl,
        task.cols() - row, kVectors);
    copy.issue(to, ld, task.cols() - col);
    commit_copies();
  }

  /// Columns first … first + 63 of the tile, with the diagonal block in `block`, `count` of whose
  /// columns belong to the matrix. Ends with the results in both memories, behind no barrier.
  __device__ void solve_half(int first, const T* block, int count) const {
    wait_copies<0>();
    __syncthreads();
    if (task.arguments.inverses == nullptr) {
      if (warp() < 2) invert_blocks(inverses(), block, S::kLdBlock, count, 0);
      __syncthreads();
    }
    const bool is_plain = task.plain();
    const std::int64_t ldx = task.arguments.ldx;
    const StripSink<T> sink(is_plain ? task.x(task.j) + first * ldx : nullptr, ldx, warp());
    solve_columns(task.shared + first * S::kLd, S::kLd, block, S::kLdBlock, inverses(), sink,
                  NoProgress{});
    if (!is_plain) task.put_strip(task.shared, 0, first);
  }

  /// The inverses that the chain has made of tile (j, j), on their way with the blocks of L.
  __device__ void load_inverses() const {
    const T* from = task.arguments.inverses + std::int64_t{task.j} * kInverses;
    constexpr int kVector = 16 / sizeof(T);
#pragma unroll
    for (int n = 0; n < kInverses; n += kVector * S::kThreads) {
      const int at = n + kVector * static_cast<int>(threadIdx.x);
      if (at < kInverses) copy_async<16>(inverses() + at, from + at, 16);
    }
  }

  __device__ void solve() const {
    if (task.arguments.inverses != nullptr) load_inverses();
    T* first = kTile == 64 ? task.shared + kSolve * S::kLd : task.shared + S::kPipeline;
    load_block(first, S::kLdBlock, 0, 0);
    if constexpr (kTile == 128) {
      T* second = first + S::kSolveBlock;
      const int cols = task.cols();
      if (cols > kSolve) load_block(second, S::kLdBlock, kSolve, 0);
      solve_half(0, first, cols);
      if (cols <= kSolve) return;
      __syncthreads();
      load_block(first, S::kLdBlock, kSolve, kSolve);
      update_second_half<32>(0, second, S::kLdBlock);
      solve_half(kSolve, first, cols - kSolve);
    } else {
      solve_half(0, first, task.cols());
    }
  }
};

/// *status ← the verdict, and log det if nothing failed. By one thread.
__device__ inline void write_status(const Verdict* verdict, double log_determinant,
                                    PivotStatus* status, double log_fraction = 0) {
  const bool failed = acquire(&verdict->failed) != 0;
  status->bad_column = failed ? static_cast<double>(__ldcg(&verdict->bad_column)) : -1.0;
  status->bad_pivot = failed ? __ldcg(&verdict->bad_pivot) : 0;
  status->log_determinant = failed ? 0 : log_determinant;
  status->log_fraction = failed ? 0 : log_fraction;
}
/// The same with log det = Σ 2·log L_jj, by one block, always in the same order.
template <int kThreads, class T>
__device__ void write_status(const T* a, std::int64_t n, std::int64_t ld, const Verdict* verdict,
                             PivotStatus* status, double* sums) {
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (std::int64_t j = thread; j < n; j += kThreads)
    sum += 2 * log(static_cast<double>(__ldcg(a + j + j * ld)));
  __syncthreads();
  sums[thread] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) write_status(verdict, sums[0], status);
}

/// Factors the tile in shared memory, or solves with it when L(j, j) is there.
template <class T, int kTile, int kIb, bool kVectors>
__device__ __forceinline__ void finish_tile(const Arguments<T>& arguments,
                                            const Workspace<T>& workspace, int i, int j) {
  const TileTask<T, kTile, kVectors> task{arguments, workspace.shared, i, j};
  const Finisher<T, kTile, kIb, kVectors> finisher{task, workspace};
  if (task.diagonal()) {
    __syncthreads();
    return finisher.factor();
  }
  if (arguments.factors && arguments.done != nullptr) (void)await(arguments.done + j, j + 1);
  finisher.solve();
}
/// The same out of line: beside it, the loop of the products has no registers of its own choice.
template <class T, int kTile, int kIb, bool kVectors>
__device__ __noinline__ void finish_tile_apart(const Arguments<T>& arguments,
                                               Workspace<T> workspace, int i, int j) {
  finish_tile<T, kTile, kIb, kVectors>(arguments, workspace, i, j);
}

/// Tile (i, j) of a task has just been finished, and is in shared memory, where all threads see it:
/// makes what tile (i, j + 1) still lacks before its solve, while it tells the others of (i, j).
template <class T, bool kVectors>
__device__ __forceinline__ void hand_below(const TileTask<T, kSolve, kVectors>& task) {
  using Task = TileTask<T, kSolve, kVectors>;
  using S = typename Task::S;
  const Arguments<T>& arguments = task.arguments;
  const int j = task.j;
  const Task next{arguments, task.shared, task.i, j + 1};
  T* l = task.shared + kSolve * S::kLd;
  if (warp() == 0) {
    if (lane() == 0) publish(arguments.done + task.i, j + 1);
    __syncwarp();
  } else if (warp() == S::kWarps - 1) {
    if (j > 0) (void)await(arguments.below_products + j + 1, 1);
    next.template fetch_by_warps<1>(task.shared + S::kPipeline, 0);
  } else {
    (void)await(arguments.done + j + 1, j + 1);
    Task{arguments, task.shared, j + 1, j}.template fetch_by_warps<S::kWarps - 2>(l, warp() - 1);
  }
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  typename Task::Sum sum;
  set_zero(sum);
  multiply<kSolve>(sum, static_cast<const T*>(task.shared) + task.warp_row(), S::kLd,
                   static_cast<const T*>(l) + task.warp_col(), S::kLd);
  next.subtract_fetched(sum);
  next.put_negative(sum);
  __syncthreads();
  if (threadIdx.x == 0) publish(arguments.below_ready + j + 1, 1);
}

/// One tile from beginning to end, or its products alone. `hands`: see TileOrder.
template <class T, int kTile, int kIb, bool kVectors>
__device__ void run_tile(const Arguments<T>& arguments, Workspace<T>& workspace, Tile tile,
                         bool hands = false) {
  const TileTask<T, kTile, kVectors> task{arguments, workspace.shared, tile.i, tile.j};
  typename TileTask<T, kTile, kVectors>::Sum sum;
  const int inner = tile.work == Work::finish ? tile.j : tile.j - 1;
  set_zero(sum);
  if constexpr (kTile == 64) {
    task.fetch_tile();
    task.multiply(sum, inner, workspace);
    task.subtract_fetched(sum);
  } else {
    task.prefetch_tile();
    task.multiply(sum, inner, workspace);
    task.subtract_tile(sum);
  }
  int* flag = arguments.done + tile.i;
  int value = tile.j + 1;
  if (tile.work != Work::finish) {
    task.put_negative(sum);
    flag = tile.work == Work::products_below ? arguments.below_products + tile.j
                                             : arguments.diagonal_ready + tile.j;
    value = 1;
  } else {
    task.write_tile(sum);
    if constexpr (kTile == 64) {
      finish_tile<T, kTile, kIb, kVectors>(arguments, workspace, tile.i, tile.j);
    } else {
      finish_tile_apart<T, kTile, kIb, kVectors>(arguments, workspace, tile.i, tile.j);
    }
  }
  __syncthreads();
  if constexpr (kTile == 64) {
    if (hands && tile.work == Work::finish) return hand_below(task);
  }
  if (threadIdx.x == 0 && arguments.done != nullptr) publish(flag, value);
}

}  // namespace strata::fused_kernel
