// The fused Cholesky kernel: a left-looking tile factorization in one launch.
//
// Method: thread blocks draw tiles (i, j) from a counter, column by column. A block keeps its tile
// in registers, subtracts the products L(i, k)·L(j, k)ᵀ in the order of k as the tiles on the left
// are finished, then factors the tile (i = j) or solves with L(j, j), writes it once, and says so.
// A tile depends only on tiles drawn before it, and a block draws its next tile only when it is
// done with the last: so the least unfinished tile is always being worked on, whatever number of
// blocks runs, and nothing can wait in a circle. The sequence of operations on a tile is fixed:
// equal inputs give equal bits.
//
// Tiles of 128 keep the tensor cores busiest. With tiles of 64, for small n, where latency rules,
// the chain of diagonal tiles belongs to one block that never lets go of it: factor (j, j), solve
// (j + 1, j), subtract it from (j + 1, j + 1), all in shared memory. The products of those tiles
// with what is further to the left are subtracted by other blocks, in time; warps of the chain that
// do not compute fetch them, and write and publish what the others compute.
//
// Why: no launch and no barrier between steps, so that neither their latency (small n) nor the
// panel (large n) is on the way; look-ahead comes by itself, as blocks that run out of a column
// begin the next. After Haidar, Abdelfattah, Tomov, Dongarra, "High-performance Cholesky
// factorization for GPU-only execution" (2017), which fuses the panel, and the static tile
// schedules of PLASMA (Kurzak, Ltaief, Dongarra, Badia, "Scheduling dense linear algebra operations
// on multicore processors", 2010).
//
// Memory: what one block writes and another reads is ordered by release and acquire at GPU scope on
// `done[i]`, the number of tiles of tile row i that are finished; they finish in the order of k.

#include "kernels/fused_cuda.hpp"

#include <algorithm>
#include <climits>

#include "kernels/blas_cuda.hpp"
#include "kernels/fused_task_cuda.hpp"

namespace strata::fused {
namespace {

constexpr int kTriangleTile = 128;

/// Who is at work on the chain: warps that compute, and such as spare them the ways to memory.
template <class T>
struct ChainTeam {
  using S = Sizes<T, kSolve>;
  static constexpr int kPublisher = S::kWarps;
  static constexpr int kFetchers = kPublisher + 1;  // the first of
  static constexpr int kFetchBelow = 2;             // warps for the tile below, and
  static constexpr int kFetch = kFetchBelow + 1;    // one for the next diagonal tile
  static constexpr int kWithPublisher = (S::kWarps + 1) * kWarp;
  static constexpr int kWithFetchers = (S::kWarps + kFetch) * kWarp;
  static_assert(S::kBlock == (kFetchers + kFetch) * kWarp);
};

/// Barriers of the chain, each of the warps that compute and: of nobody else (all), of the
/// publisher (factored, solved: what it may publish), of the fetchers (fetched: what they were to
/// fetch is there; used: there is room for more).
enum class ChainBarrier : int { all = 2, factored = 3, solved = 4, fetched = 9, used = 10 };

template <int kThreads>
__device__ inline void come(ChainBarrier id) {
  asm volatile("bar.sync %0, %1;" ::"r"(static_cast<int>(id)), "n"(kThreads) : "memory");
}
template <int kThreads>
__device__ inline void come_and_go(ChainBarrier id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(static_cast<int>(id)), "n"(kThreads) : "memory");
}

/// The fifth warp of the chain tells the other blocks what it has made: a fence takes as long as it
/// takes all stores to arrive, and the others need not wait for that. Nor is the tile below written
/// on their time.
template <class T, int kIb, bool kVectors>
__device__ void publish_chain(const Arguments<T>& arguments, const Workspace<T>& workspace,
                              int tile_rows, int tile_cols) {
  using S = Sizes<T, kSolve>;
  for (int j = 0; j < tile_cols; ++j) {
    come<ChainTeam<T>::kWithPublisher>(ChainBarrier::factored);
    const TileTask<T, kSolve, kVectors> task{arguments, workspace.shared, j, j};
    if (kIb == 8 && task.plain()) {
      put_late(workspace.shared, S::kLd, workspace.inverses(),
               StripSink<T>(task.x(j), arguments.ldx, S::kWarps - 1));
    }
    auto* to = reinterpret_cast<double2*>(arguments.inverses + std::int64_t{j} * kInverses);
#pragma unroll
    for (int n = lane(); n < kInverses / 2; n += kWarp) {
      to[n] = read_pair(workspace.inverses() + 2 * n);
    }
    __syncwarp();
    if (lane() == 0) publish(arguments.done + j, j + 1);
    if (j + 1 == tile_rows) return;
    come<ChainTeam<T>::kWithPublisher>(ChainBarrier::solved);
    const TileTask<T, kSolve, kVectors> next{arguments, workspace.shared, j + 1, j};
    next.put_by_warp(workspace.shared + kSolve * S::kLd);
    __syncwarp();
    if (lane() == 0) publish(arguments.done + j + 1, j + 1);
  }
}

/// The last warps of the chain fetch what other blocks have prepared, as soon as it is there.
template <class T, bool kVectors>
__device__ void fetch_chain(const Arguments<T>& arguments, const Workspace<T>& workspace,
                            int tile_rows, int tile_cols) {
  using S = Sizes<T, kSolve>;
  using Team = ChainTeam<T>;
  using Task = TileTask<T, kSolve, kVectors>;
  const int fetcher = warp() - Team::kFetchers;
  T* below = workspace.shared + kSolve * S::kLd;
  for (int j = 0; j + 1 < tile_rows && j < tile_cols; ++j) {
    if (fetcher < Team::kFetchBelow) {
      if (j > 0) (void)await(arguments.below_ready + j, 1);
      Task{arguments, workspace.shared, j + 1, j}.template fetch_by_warps<Team::kFetchBelow>(
          below, fetcher);
    } else if (j + 1 < tile_cols) {
      if (j > 0) (void)await(arguments.diagonal_ready + j + 1, 1);
      Task{arguments, workspace.shared, j + 1, j + 1}.template fetch_by_warps<1>(
          below + kSolve * S::kLd, 0);
    }
    commit_copies();
    wait_copies<0>();
    come_and_go<Team::kWithFetchers>(ChainBarrier::fetched);
    if (j + 1 < tile_cols) come<Team::kWithFetchers>(ChainBarrier::used);
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

/// A thread's part of that: two rows in each of five blocks, and two columns, as the products want
/// them.
template <class T>
struct SquarePart {
  static constexpr int kLd = Sizes<T, kSolve>::kLd;
  static constexpr int kBlocks = 5;

  const SquareShare share;
  T sum[kBlocks][4] = {};  ///< of the product, in the order of multiply_add

  __device__ SquarePart() : share(warp()) {}

  [[nodiscard]] __device__ int row(int block) const {
    return share.strip[block < 2 ? 0 : 1] * kRowsPerWarp + lane() / 4 * 2;
  }
  [[nodiscard]] __device__ int col(int block, int second) const {
    const int first = block < 2 ? share.block[0] : share.block[1];
    const int t = lane() % 4;
    if constexpr (sizeof(T) == 8) {
      const int in_order = block < 2 ? block : block - 2;
      return 8 * (first + in_order) + (second == 0 ? t : other_column(t));
    } else {  // four neighbours in the first two blocks of either, two in the last
      if (block == 4) return 8 * first + 16 + 2 * t + second;
      return 8 * first + 4 * t + block % 2 * 2 + second;
    }
  }

  __device__ void multiply(const double* l) {
    const AcrossBlock<const double> across(l, kLd);
    const StripBlock<const double> own(l, kLd);
#pragma unroll
    for (int k = 0; k < kSolve * kLd; k += 8 * kLd) {
      double strip[2][4];
#pragma unroll
      for (int h = 0; h < 2; ++h) own.read(strip[h], share.strip[h] * kRowsPerWarp + k);
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        const int block = n < 2 ? share.block[0] + n : share.block[1] + n - 2;
        multiply_add(sum[n], sum[n], strip[n < 2 ? 0 : 1], across.read(8 * block + k));
      }
    }
  }
  __device__ void multiply(const float* l) {
#pragma unroll 8
    for (int k = 0; k < kSolve * kLd; k += kLd) {
      const auto first = *reinterpret_cast<const float4*>(l + col(0, 0) + k);
      const auto second = *reinterpret_cast<const float4*>(l + col(2, 0) + k);
      const auto third = *reinterpret_cast<const float2*>(l + col(4, 0) + k);
      const float across[kBlocks][2] = {{first.x, first.y},
                                        {first.z, first.w},
                                        {second.x, second.y},
                                        {second.z, second.w},
                                        {third.x, third.y}};
      const float2 strip[2] = {read_both(l + row(0) + k), read_both(l + row(2) + k)};
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          sum[n][e] += strip[n < 2 ? 0 : 1].x * across[n][e];
          sum[n][2 + e] += strip[n < 2 ? 0 : 1].y * across[n][e];
        }
      }
    }
  }
};

/// The lower triangle of C ← A − L·Lᵀ, 64 × 64 each and in shared memory, where C is the unit
/// matrix from row `end` on.
template <class T>
__device__ void subtract_square(T* c, const T* a, const T* l, int end) {
  using Part = SquarePart<T>;
  Part part;
  Pair<T> given[Part::kBlocks][2];  // read before anything is written, to the compiler's mind there
#pragma unroll
  for (int n = 0; n < Part::kBlocks; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      given[n][e] = read_both(a + part.row(n) + part.col(n, e) * Part::kLd);
    }
  }
  part.multiply(l);
#pragma unroll
  for (int n = 0; n < Part::kBlocks; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int row = part.row(n);
      const int col = part.col(n, e);
      Pair<T> pair = given[n][e];
      pair.x = row < end ? pair.x - part.sum[n][e] : T(row == col);
      pair.y = row + 1 < end ? pair.y - part.sum[n][2 + e] : T(row + 1 == col);
      *reinterpret_cast<Pair<T>*>(c + row + col * Part::kLd) = pair;
    }
  }
}

/// The diagonal tiles and those just below them, for kTile == 64: the diagonal tile in the first
/// half of the pipeline, the one below in the second, the next diagonal tile behind it. See the
/// head of this file.
template <class T, int kIb, bool kVectors>
__device__ void run_chain(const Arguments<T>& arguments, Workspace<T>& workspace) {
  using S = Sizes<T, kSolve>;
  using Team = ChainTeam<T>;
  using Task = TileTask<T, kSolve, kVectors>;
  const int tile_rows = static_cast<int>((arguments.rows + kSolve - 1) / kSolve);
  const int tile_cols = static_cast<int>((arguments.cols + kSolve - 1) / kSolve);
  if (warp() == Team::kPublisher) {
    return publish_chain<T, kIb, kVectors>(arguments, workspace, tile_rows, tile_cols);
  }
  if (warp() > Team::kPublisher) {
    return fetch_chain<T, kVectors>(arguments, workspace, tile_rows, tile_cols);
  }
  T* shared = workspace.shared;
  T* below = shared + kSolve * S::kLd;
  const T* ahead = below + kSolve * S::kLd;
  typename Task::Sum sum;
  Task task{arguments, shared, 0, 0};
  set_zero(sum);
  task.subtract_tile(sum);
  task.write_tile(sum);
  come<S::kThreads>(ChainBarrier::all);
  for (int j = 0; j < tile_cols; ++j) {
    task.i = task.j = j;
    const Finisher<T, kSolve, kIb, kVectors> finisher{task, workspace};
    finisher.template factor_from<S::kWarps>(0, kIb != 8 || !task.plain());
    come_and_go<Team::kWithPublisher>(ChainBarrier::factored);
    if (j + 1 == tile_rows) return;
    come<Team::kWithFetchers>(ChainBarrier::fetched);
    solve_columns(below, S::kLd, static_cast<const T*>(shared), S::kLd, finisher.inverses(),
                  StripSink<T>(nullptr, 0, 0));
    come<Team::kWithPublisher>(ChainBarrier::solved);
    if (j + 1 == tile_cols) return;
    const Task corner{arguments, shared, j + 1, j + 1};  // the next diagonal tile
    subtract_square(shared, ahead, static_cast<const T*>(below), corner.rows());
    come<Team::kWithFetchers>(ChainBarrier::used);
  }
}

template <class T, int kTile, int kIb, bool kVectors>
__global__ void __launch_bounds__(Sizes<T, kTile>::kBlock, Sizes<T, kTile>::kBlocksPerSm)
    run_tiles(const __grid_constant__ Arguments<T> arguments) {
  using S = Sizes<T, kTile>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ int drawn;
  Workspace<T> workspace = make_workspace<T, kTile>(memory);
  __syncthreads();
  const bool chained = kTile == 64 && arguments.chained;
  const int tile_cols = static_cast<int>((arguments.cols + kTile - 1) / kTile);
  bool last = false;  // this block has finished the last diagonal tile
  if (chained && blockIdx.x == 0) {
    if constexpr (kTile == 64) run_chain<T, kIb, kVectors>(arguments, workspace);
    last = true;
  } else if (warp() >= S::kWarps) {
    return;  // barriers count only the threads that are left
  } else {
    TileOrder order{static_cast<int>((arguments.rows + kTile - 1) / kTile), tile_cols,
                    arguments.factors, chained};
    for (;;) {
      if (threadIdx.x == 0) drawn = atomicAdd(arguments.ticket, 1);
      __syncthreads();
      Tile tile;
      const bool more =
          drawn < arguments.tickets && order.find(arguments.first_ticket + drawn, tile);
      __syncthreads();  // before the next ticket is drawn
      if (!more) break;
      run_tile<T, kTile, kIb, kVectors>(arguments, workspace, tile);
      if (arguments.factors && tile.i == tile.j && tile.j == tile_cols - 1) last = true;
    }
  }
  if (last && arguments.status != nullptr) {
    __syncthreads();
    if (warp() >= S::kWarps) return;
    write_status<S::kThreads>(arguments.x, arguments.cols, arguments.ldx, arguments.verdict,
                              arguments.status, reinterpret_cast<double*>(memory));
  }
}

/// Number blockIdx.x of the lower triangle of tiles of X that begins at tile (column, column): less
/// the products of the first `depth` tile columns.
template <class T, bool kVectors>
__global__ void __launch_bounds__(Sizes<T, kTriangleTile>::kThreads)
    update_tiles(const __grid_constant__ Arguments<T> arguments, int column, int depth) {
  using S = Sizes<T, kTriangleTile>;
  extern __shared__ __align__(16) unsigned char memory[];
  Workspace<T> workspace = make_workspace<T, kTriangleTile>(memory);
  int row = 0;
  int col = static_cast<int>(blockIdx.x);
  while (col > row) col -= ++row;
  const TileTask<T, kTriangleTile, kVectors> task{arguments, workspace.shared, column + row,
                                                  column + col};
  typename TileTask<T, kTriangleTile, kVectors>::Sum sum;
  task.prefetch_tile();
  set_zero(sum);
  task.multiply(sum, depth, workspace);
  task.subtract_tile(sum);
  task.put_negative(sum);
}

// ---- launches ---------------------------------------------------------------------------------

template <class T, int kTile, int kIb, bool kVectors>
void launch(cudaStream_t stream, const Arguments<T>& arguments, int blocks_max) {
  using S = Sizes<T, kTile>;
  require_cuda(cudaFuncSetAttribute(run_tiles<T, kTile, kIb, kVectors>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes),
               "shared memory of the fused kernel");
  int blocks = std::min(multiprocessors() * S::kBlocksPerSm, arguments.tickets);
  if (blocks_max > 0) blocks = std::min(blocks, blocks_max);
  run_tiles<T, kTile, kIb, kVectors>
      <<<static_cast<unsigned>(blocks), S::kBlock, S::kBytes, stream>>>(arguments);
  blas::require_launched("the fused kernel");
}

template <class T, bool kVectors>
void launch_shape(cudaStream_t stream, const Arguments<T>& arguments, Shape shape) {
  if (shape.tile == 64) {
    shape.ib == 4 ? launch<T, 64, 4, kVectors>(stream, arguments, shape.blocks)
                  : launch<T, 64, 8, kVectors>(stream, arguments, shape.blocks);
  } else {
    shape.ib == 4 ? launch<T, 128, 4, kVectors>(stream, arguments, shape.blocks)
                  : launch<T, 128, 8, kVectors>(stream, arguments, shape.blocks);
  }
}

template <class T>
void run(cudaStream_t stream, Arguments<T> arguments, Shape shape, void* scratch) {
  if (arguments.rows == 0 || arguments.cols == 0) return;
  const std::int64_t tile_rows = (arguments.rows + shape.tile - 1) / shape.tile;
  auto* book = static_cast<Bookkeeping*>(scratch);
  arguments.done = reinterpret_cast<int*>(book + 1);
  arguments.below_ready = arguments.done + tile_rows;
  arguments.diagonal_ready = arguments.below_ready + tile_rows;
  arguments.chained = shape.tile == 64 && arguments.factors && !shape.exclusive;
  if (arguments.chained) {
    arguments.inverses = reinterpret_cast<double*>(static_cast<std::byte*>(scratch) +
                                                   zeroed_bytes(arguments.rows, shape.tile));
  }
  const auto launch = [&](int* ticket, int first, int tickets) {
    arguments.ticket = ticket;
    arguments.first_ticket = first;
    arguments.tickets = tickets;
    columns_aligned(arguments.x, arguments.ldx) && columns_aligned(arguments.l, arguments.ldl)
        ? launch_shape<T, true>(stream, arguments, shape)
        : launch_shape<T, false>(stream, arguments, shape);
  };
  const std::int64_t tile_cols = (arguments.cols + shape.tile - 1) / shape.tile;
  if (!shape.exclusive) {
    const auto tickets = static_cast<int>(std::min<std::int64_t>(tile_rows * tile_cols, INT_MAX));
    return launch(&book->ticket, 0, tickets);  // at most; the order knows how many there are
  }
  const TileOrder order{static_cast<int>(tile_rows), static_cast<int>(tile_cols)};
  int first = 0;
  for (int j = 0; j < order.cols; ++j) {
    if (order.count(j) == 0) continue;
    launch(arguments.diagonal_ready + tile_rows + j, first, order.count(j));
    first += order.count(j);
  }
}

template <class T, bool kVectors>
void launch_update(cudaStream_t stream, const Arguments<T>& arguments, int column, int depth,
                   int tiles) {
  using S = Sizes<T, kTriangleTile>;
  require_cuda(cudaFuncSetAttribute(update_tiles<T, kVectors>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes),
               "shared memory of update_tiles");
  update_tiles<T, kVectors>
      <<<static_cast<unsigned>(tiles), S::kThreads, S::kBytes, stream>>>(arguments, column, depth);
  blas::require_launched("update_tiles");
}

constexpr int kReportThreads = 256;

template <class T>
__global__ void __launch_bounds__(kReportThreads)
    report_kernel(const T* a, std::int64_t n, std::int64_t ld, const Verdict* verdict,
                  PivotStatus* status) {
  __shared__ double sums[kReportThreads];
  write_status<kReportThreads>(a, n, ld, verdict, status, sums);
}

}  // namespace

std::int64_t zeroed_bytes(std::int64_t rows, int tile) {
  const std::int64_t flags = (rows + tile - 1) / tile * 4 * static_cast<std::int64_t>(sizeof(int));
  return static_cast<std::int64_t>(sizeof(Bookkeeping)) + (flags + 127) / 128 * 128;
}

std::int64_t scratch_bytes(std::int64_t rows, std::int64_t cols, int tile) {
  constexpr std::int64_t kBytes = kInverses * static_cast<std::int64_t>(sizeof(double));
  return zeroed_bytes(rows, tile) + (tile == 64 ? (cols + tile - 1) / tile * kBytes : 0);
}

template <class T>
void factor(cudaStream_t stream, MatrixView<T> a, Shape shape, std::int64_t first_column,
            Verdict* verdict, PivotStatus* status, void* scratch) {
  Arguments<T> arguments{};
  arguments.x = a.data;
  arguments.ldx = a.ld;
  arguments.l = a.data;
  arguments.ldl = a.ld;
  arguments.rows = a.rows;
  arguments.cols = a.cols;
  arguments.first_column = first_column;
  arguments.verdict = verdict;
  arguments.status = status;
  arguments.factors = true;
  run(stream, arguments, shape, scratch);
}

template <class T>
void solve(cudaStream_t stream, MatrixView<const T> l, MatrixView<T> x, Shape shape,
           void* scratch) {
  Arguments<T> arguments{};
  arguments.x = x.data;
  arguments.ldx = x.ld;
  arguments.l = l.data;
  arguments.ldl = l.ld;
  arguments.rows = x.rows;
  arguments.cols = x.cols;
  run(stream, arguments, shape, scratch);
}

template <class T>
void update_triangle(cudaStream_t stream, MatrixView<T> c, std::int64_t left, std::int64_t inner) {
  if (c.rows == 0 || inner == 0) return;
  Arguments<T> arguments{};
  arguments.x = c.data - left * (c.ld + 1);  // the matrix in which C is a diagonal block
  arguments.ldx = c.ld;
  arguments.l = arguments.x;
  arguments.ldl = c.ld;
  arguments.rows = left + c.rows;
  arguments.cols = arguments.rows;
  arguments.factors = true;
  const int column = static_cast<int>(left / kTriangleTile);
  const int tiles = static_cast<int>((c.rows + kTriangleTile - 1) / kTriangleTile);
  const int depth = static_cast<int>(inner / kTriangleTile);
  columns_aligned(arguments.x, arguments.ldx)
      ? launch_update<T, true>(stream, arguments, column, depth, tiles * (tiles + 1) / 2)
      : launch_update<T, false>(stream, arguments, column, depth, tiles * (tiles + 1) / 2);
}

template <class T>
void report(cudaStream_t stream, MatrixView<const T> l, const Verdict* verdict,
            PivotStatus* status) {
  report_kernel<T><<<1, kReportThreads, 0, stream>>>(l.data, l.cols, l.ld, verdict, status);
  blas::require_launched("potrf: report");
}

template void factor<double>(cudaStream_t, MatrixView<double>, Shape, std::int64_t, Verdict*,
                             PivotStatus*, void*);
template void factor<float>(cudaStream_t, MatrixView<float>, Shape, std::int64_t, Verdict*,
                            PivotStatus*, void*);
template void solve<double>(cudaStream_t, MatrixView<const double>, MatrixView<double>, Shape,
                            void*);
template void solve<float>(cudaStream_t, MatrixView<const float>, MatrixView<float>, Shape, void*);
template void update_triangle<double>(cudaStream_t, MatrixView<double>, std::int64_t, std::int64_t);
template void update_triangle<float>(cudaStream_t, MatrixView<float>, std::int64_t, std::int64_t);
template void report<double>(cudaStream_t, MatrixView<const double>, const Verdict*, PivotStatus*);
template void report<float>(cudaStream_t, MatrixView<const float>, const Verdict*, PivotStatus*);

}  // namespace strata::fused
