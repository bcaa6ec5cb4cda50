#pragma once
// The chain: the critical path of diagonal tiles in the fused Cholesky kernel, for tiles of 64. For
// fused_cuda.cu.
//
// Contract: the block that drew the chain's ticket calls run_chain() with all its threads. For each
// column j it factors tile (j, j), solves (j + 1, j), and subtracts its product from the next
// diagonal tile, (j + 1, j + 1), all in shared memory. The products with what is further to the
// left are subtracted by other blocks, in time.
//
// Method: this is the critical path, and it is all latency: so four consumer warps compute and,
// while they do, nothing else. Three producer warps load tiles as soon as they are there (two the
// tiles below, one the next diagonal tiles, which is look-ahead). With a fourth they store results
// to global memory block by block while they are made, and signal the other blocks: a fence takes
// as long as it takes all stores to arrive. By which barriers they tell each other:
// fused_state_cuda.hpp.
//
// No warp can miss a phase of a barrier: to each it either arrives at what comes after, or what
// comes after needs tiles of other blocks that need what it publishes.

#include "kernels/dense/fused_task_cuda.hpp"

namespace strata::fused_kernel {

/// Who is at work.
struct ChainTeam {
  static constexpr int kWarps = Sizes<double, kSolve>::kWarps;  // consumers; then helpers:
  static constexpr int kDiagonal = kWarps;                      // one stores the diagonal tiles,
  static constexpr int kBelow = kWarps + 1;                     // from here on
  static constexpr int kBelowWarps = 2;  // producers of the tiles below, with the help
                                         // of as many consumers that are done,
  static constexpr int kAhead = kBelow + kBelowWarps;  // the producer of the next diagonal tiles;
  static constexpr int kPutters = kAhead - kWarps;     // but for it, all store the tiles below
  static_assert(Sizes<double, kSolve>::kBlock == (kAhead + 1) * kWarp);
};

/// By what the warps of the chain wait for each other. A phase is a column of tiles.
struct ChainBarriers {
  static constexpr int kBlocks = kSolve / 8;  // of columns, in a tile
  static constexpr int kPairs = kBlocks / 2;

  unsigned long long factored[kPairs];  ///< so far the diagonal tile and its inverses are made
  unsigned long long read;              ///< that has been put: another may take its place
  unsigned long long below;             ///< the tile below has been fetched
  unsigned long long solved[kBlocks];   ///< so far it is solved
  unsigned long long put;               ///< it has been put
  unsigned long long ahead;             ///< the next diagonal tile has been fetched
  unsigned long long used;              ///< it and the tile below: others may be fetched
};

/// What the warps of the chain have in common.
template <class T, bool kVectors>
struct Chain {
  using S = Sizes<T, kSolve>;
  using Task = TileTask<T, kSolve, kVectors>;
  static constexpr int kLd = S::kLd;
  static constexpr int kBytes = S::kBarriersAt + static_cast<int>(sizeof(ChainBarriers));

  const Arguments<T>& arguments;
  Workspace<T> workspace;
  ChainBarriers& barriers;
  int rows;  ///< in tiles
  int cols;

  __device__ Chain(const Arguments<T>& arguments, unsigned char* memory)
      : arguments(arguments),
        workspace{reinterpret_cast<T*>(memory), reinterpret_cast<double*>(memory + S::kScratchAt),
                  nullptr},
        barriers(*reinterpret_cast<ChainBarriers*>(memory + S::kBarriersAt)),
        rows(static_cast<int>((arguments.rows + kSolve - 1) / kSolve)),
        cols(static_cast<int>((arguments.cols + kSolve - 1) / kSolve)) {}

  [[nodiscard]] __device__ Task task(int i, int j) const {
    return {arguments, workspace.shared, i, j};
  }
  /// In shared memory: the diagonal tile, the one below, the next diagonal tile as it was fetched.
  [[nodiscard]] __device__ T* diagonal() const { return workspace.shared; }
  [[nodiscard]] __device__ T* below() const { return workspace.shared + kSolve * kLd; }
  [[nodiscard]] __device__ T* ahead() const { return workspace.shared + 2 * kSolve * kLd; }

  /// By one thread.
  __device__ void init_barriers() const {
    for (int p = 0; p < ChainBarriers::kPairs; ++p) {
      init_barrier(&barriers.factored[p], ChainTeam::kWarps - p);
    }
    for (int b = 0; b < ChainBarriers::kBlocks; ++b) {
      init_barrier(&barriers.solved[b], ChainTeam::kWarps);
    }
    init_barrier(&barriers.read, 1);
    init_barrier(&barriers.below, 2 * ChainTeam::kBelowWarps);
    init_barrier(&barriers.put, ChainTeam::kPutters);
    init_barrier(&barriers.ahead, 1);
    init_barrier(&barriers.used, ChainTeam::kWarps);
  }
};

/// kCols columns of a plain tile in shared memory, `from`, to where they are in global memory, `to`
/// (both: this lane's two rows of the first column). `above`: rows that these are above the
/// diagonal, where nothing is put. By one warp.
template <int kCols, class T>
__device__ inline void put_columns(const T* from, T* to, std::int64_t ld, int above) {
#pragma unroll 8
  for (int c = 0; c < kCols; ++c) {
    const Pair<T> pair = read_both(from);
    if (above <= 0) *reinterpret_cast<Pair<T>*>(to) = pair;
    if (above == 1) to[1] = pair.y;
    from += padded(kSolve);
    to += ld;
    ++above;
  }
}

/// By the helpers that store: brings the tile below to global memory while it is solved, in turns,
/// and tells the other blocks.
template <class T, bool kVectors>
__device__ inline void put_below(const Chain<T, kVectors>& chain, int j) {
  ChainBarriers& barriers = chain.barriers;
  const auto task = chain.task(j + 1, j);
  const std::int64_t ldx = chain.arguments.ldx;
#pragma unroll 1
  for (int b = warp() - ChainTeam::kWarps; b < ChainBarriers::kBlocks; b += ChainTeam::kPutters) {
    wait_phase(&barriers.solved[b], j % 2);
    if (task.plain()) {
      put_columns<8>(chain.below() + 2 * lane() + 8 * b * Chain<T, kVectors>::kLd,
                     task.x(j) + 2 * lane() + 8 * b * ldx, ldx, -kSolve);
    } else {
      task.template put_block<kSolve, 8, kWarp>(chain.below(), 0, 8 * b, lane());
    }
  }
  arrive_as_warp(&barriers.put);
  if (warp() != ChainTeam::kBelow) return;
  wait_phase(&barriers.put, j % 2);
  if (lane() == 0) publish(chain.arguments.done + j + 1, j + 1);
  __syncwarp();
}

/// Puts the diagonal tiles to global memory while they are made, and tells the other blocks.
template <class T, bool kVectors>
__device__ void put_diagonal(const Chain<T, kVectors>& chain) {
  constexpr int kLd = Chain<T, kVectors>::kLd;
  const Arguments<T>& arguments = chain.arguments;
  ChainBarriers& barriers = chain.barriers;
  const T* inverses = chain.workspace.inverses();
  for (int j = 0; j < chain.cols; ++j) {
    const auto task = chain.task(j, j);
    const bool is_plain = task.plain();
    T* to = task.x(j) + 2 * lane();
    T* inverses_to = arguments.inverses + std::int64_t{j} * kInverses;
#pragma unroll 1
    for (int p = 0; p < ChainBarriers::kPairs; ++p) {
      wait_phase(&barriers.factored[p], j % 2);
      const int place = p * 128 + 2 * lane();
      const Pair<T> first = read_both(inverses + place);
      const Pair<T> second = read_both(inverses + place + 64);
      if (lane() < 16) {
        const int row = 16 * p + lane();
        chain.diagonal()[row * (kLd + 1)] = static_cast<T>(root_of(inverses, row));
      }
      *reinterpret_cast<Pair<T>*>(inverses_to + place) = first;
      *reinterpret_cast<Pair<T>*>(inverses_to + place + 64) = second;
      __syncwarp();
      if (is_plain) {
        put_columns<16>(chain.diagonal() + 2 * lane() + 16 * p * kLd, to, arguments.ldx,
                        16 * p - 2 * lane());
      } else {
        task.template put_block<kSolve, 16, kWarp>(chain.diagonal(), 0, 16 * p, lane());
      }
      to += 16 * arguments.ldx;
    }
    arrive_as_warp(&barriers.read);
    if (lane() == 0) publish(arguments.done + j, j + 1);
    __syncwarp();
    if (j + 1 < chain.rows) put_below(chain, j);
  }
}

/// Fetches a share of the tile below diagonal tile j, as soon as other blocks have prepared it:
/// they need what is put of the one before, whose place it takes. By four warps, of which this is
/// number `fetcher`.
template <class T, bool kVectors>
__device__ inline void fetch_below(const Chain<T, kVectors>& chain, int j, int fetcher) {
  if (j > 0) (void)await(chain.arguments.below_ready + j, 1);
  chain.task(j + 1, j).template fetch_by_warps<2 * ChainTeam::kBelowWarps>(chain.below(), fetcher);
  commit_copies();
  wait_copies<0>();
  arrive_as_warp(&chain.barriers.below);
}

/// The producer warps for that.
template <class T, bool kVectors>
__device__ void serve_below(const Chain<T, kVectors>& chain) {
  for (int j = 0; j < chain.cols && j + 1 < chain.rows; ++j) {
    if (j > 0) wait_phase(&chain.barriers.used, (j - 1) % 2);
    fetch_below(chain, j, warp() - ChainTeam::kBelow);
    put_below(chain, j);
  }
}

/// The producer warp of the next diagonal tiles: look-ahead.
template <class T, bool kVectors>
__device__ void fetch_ahead(const Chain<T, kVectors>& chain) {
  ChainBarriers& barriers = chain.barriers;
  for (int j = 0; j + 1 < chain.cols; ++j) {
    if (j > 0) {
      wait_phase(&barriers.used, (j - 1) % 2);
      (void)await(chain.arguments.diagonal_ready + j + 1, 1);
    }
    chain.task(j + 1, j + 1).template fetch_by_warps<1>(chain.ahead(), 0);
    commit_copies();
    wait_copies<0>();
    arrive_as_warp(&barriers.ahead);
  }
}

/// The blocks of 16 × 8 in a lower triangle of 64 × 64, of which each of four warps has five: two
/// in one strip of 16 rows, three in another, so that it reads what it needs of a strip only once.
struct SquareShare {
  int strip[2];  ///< of the first two, of the last three
  int block[2];  ///< the first of each, in blocks of 8 columns

  __device__ explicit SquareShare(int warp)
      : strip{warp == 0 ? 0 : (warp < 3 ? 1 : 3), warp == 1 || warp == 2 ? 2 : 3},
        block{warp < 2 ? 0 : warp, warp < 2 ? 0 : 2 * warp - 1} {}
};

/// A warp's share of A − L·Lᵀ, 64 × 64 each, of whose result only the lower triangle is made.
template <class T>
class ChainSquare {
 public:
  __device__ explicit ChainSquare(T* l) : share_(warp()) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      rows_[h] = StripBlock<T>(l + share_.strip[h] * kRowsPerWarp, kLd);
      columns_[h] = AcrossBlock<T>(l + 8 * share_.block[h], kLd);
    }
  }

  /// The part of the product that block of columns number `block` makes.
  __device__ __forceinline__ void add(int block) {
    double rows[2][4];
    double2 columns[kBlocks];
    const int at = 8 * block * kLd;
#pragma unroll
    for (int h = 0; h < 2; ++h) rows_[h].read(rows[h], at);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      columns[n] = columns_[n < 2 ? 0 : 1].read(at + 8 * (n < 2 ? n : n - 2));
    }
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      multiply_add(sum_[n], sum_[n], rows[n < 2 ? 0 : 1], columns[n]);
    }
  }
  /// result ← A − product.
  __device__ void put(const T* a, T* result) const {
    Pair<T> left[kBlocks];  // all read before anything is written: it could be the same memory
    Pair<T> right[kBlocks];
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      const StripBlock<const T> from(a + strip_of(n), kLd);
      left[n] = read_both(from.at + column_of_block(n));
      right[n] = read_both(from.at + from.other + column_of_block(n));
    }
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      const StripBlock<T> to(result + strip_of(n), kLd);
      const Pair<T> first = first_column<T>(sum_[n]);
      const Pair<T> second = second_column<T>(sum_[n]);
      T* at = to.at + column_of_block(n);
      *reinterpret_cast<Pair<T>*>(at) = {left[n].x - first.x, left[n].y - first.y};
      *reinterpret_cast<Pair<T>*>(at + to.other) = {right[n].x - second.x, right[n].y - second.y};
    }
  }

 private:
  static constexpr int kLd = Sizes<T, kSolve>::kLd;
  static constexpr int kBlocks = 5;

  [[nodiscard]] __device__ int strip_of(int n) const {
    return share_.strip[n < 2 ? 0 : 1] * kRowsPerWarp;
  }
  [[nodiscard]] __device__ int column_of_block(int n) const {
    return 8 * (n < 2 ? share_.block[0] + n : share_.block[1] + n - 2) * kLd;
  }

  SquareShare share_;
  StripBlock<T> rows_[2];
  AcrossBlock<T> columns_[2];
  double sum_[kBlocks][4] = {};
};

/// The consumer warps. The trailing update of the next diagonal tile stays in shared memory.
template <class T, int kIb, bool kVectors>
__device__ void compute_chain(const Chain<T, kVectors>& chain) {
  using Task = TileTask<T, kSolve, kVectors>;
  constexpr int kWarps = ChainTeam::kWarps;
  constexpr int kLd = Chain<T, kVectors>::kLd;
  ChainBarriers& barriers = chain.barriers;
  const T* inverses = chain.workspace.inverses();
  typename Task::Sum sum;
  Task task = chain.task(0, 0);
  set_zero(sum);
  task.subtract_tile(sum);
  task.write_tile(sum);
  barrier(kWarps);
  for (int j = 0; j < chain.cols; ++j) {
    task.i = task.j = j;
    const Finisher<T, kSolve, kIb, kVectors> finisher{task, chain.workspace};
    factor_panel<kIb, kWarps>(
        chain.diagonal(), kLd, chain.workspace.scratch, chain.workspace.inverses(), NoSink{},
        [&](int column, double pivot) { finisher.report(column, pivot); },
        [&](int pair) { arrive_as_warp(&barriers.factored[pair]); });
    if (j + 1 == chain.rows) return;
    if (warp() < ChainTeam::kBelowWarps) fetch_below(chain, j, ChainTeam::kBelowWarps + warp());
    wait_phase(&barriers.factored[ChainBarriers::kPairs - 1], j % 2);
    wait_phase(&barriers.below, j % 2);
    // Between two blocks of columns that wait for each other, the square of those before.
    constexpr int kBlocks = ChainBarriers::kBlocks;
    ChainSquare<T> square(chain.below());
    solve_columns(chain.below(), kLd, static_cast<const T*>(chain.diagonal()), kLd, inverses,
                  NoSink{}, [&](int block) {
                    arrive_as_warp(&barriers.solved[block]);
                    if (block % 2 == 0) return;
                    wait_phase(&barriers.solved[block - 1], j % 2);
                    if (block > 1) square.add(block - 2);
                    square.add(block - 1);
                  });
    if (j + 1 == chain.cols) return;
    wait_phase(&barriers.solved[kBlocks - 1], j % 2);
    square.add(kBlocks - 1);
    wait_phase(&barriers.ahead, j % 2);
    wait_phase(&barriers.read, j % 2);
    square.put(chain.ahead(), chain.diagonal());
    arrive_as_warp(&barriers.used);
    barrier(kWarps);
  }
}

/// See the head of this file.
template <class T, int kIb, bool kVectors>
__device__ __forceinline__ void run_chain(const Arguments<T>& arguments, unsigned char* memory) {
  const Chain<T, kVectors> chain(arguments, memory);
  if (threadIdx.x == 0) chain.init_barriers();
  __syncthreads();
  if (warp() < ChainTeam::kWarps) {
    compute_chain<T, kIb, kVectors>(chain);
  } else if (warp() == ChainTeam::kDiagonal) {
    put_diagonal<T, kVectors>(chain);
  } else if (warp() == ChainTeam::kAhead) {
    fetch_ahead<T, kVectors>(chain);
  } else {
    serve_below<T, kVectors>(chain);
  }
}

}  // namespace strata::fused_kernel
