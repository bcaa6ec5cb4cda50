// The fused Cholesky kernel: a left-looking tile factorization in one launch.
//
// Method: thread blocks draw tiles (i, j) from a counter, column by column. A block keeps its tile
// in registers, subtracts the products L(i, k)·L(j, k)ᵀ in the order of k as the tiles on the left
// are finished, then factors the tile (i = j) or solves with L(j, j), writes it once, and says so.
// A tile depends only on tiles drawn before it, and a block draws its next tile only when it is
// done with the last. So the least unfinished tile is always being worked on, whatever number of
// blocks runs: there is no deadlock. The sequence of operations on a tile is fixed: equal inputs
// give equal bits.
//
// What a block does follows from its tickets alone, never from blockIdx. A ticket is drawn by a
// block that runs, so all that a block waits for is made by blocks that run, whatever part of the
// grid the GPU has room for beside other work. The chain (below) is the first ticket. It waits for
// tiles with later ones, so it needs a second block: one is enough (fused_order.hpp). A kernel of
// which only the chain has a place waits for a multiprocessor, as if it had not begun; it gets none
// only if as many such kernels as there are multiprocessors each hold a single one.
//
// Tiles of 128 keep the tensor cores busiest. With tiles of 64, for small n, where latency rules,
// the critical path, the chain of diagonal tiles and the tiles below them, belongs to one block
// that never lets go of it: fused_chain_cuda.hpp. What it waits for comes through other blocks, and
// each handover from one to the next is on the critical path too: so the block that solves the tile
// on the left of one that the chain needs also makes that one's last product (hand_below).
//
// Why: no launch and no barrier between steps, so that neither their latency (small n) nor the
// panel (large n) is on the critical path; look-ahead comes by itself, as blocks that run out of a
// column begin the next. After Haidar, Abdelfattah, Tomov, Dongarra, "High-performance Cholesky
// factorization for GPU-only execution" (2017), which fuses the panel, and the static tile
// schedules of PLASMA (Kurzak, Ltaief, Dongarra, Badia, "Scheduling dense linear algebra operations
// on multicore processors", 2010).
//
// Memory: what one block writes and another reads is ordered by release and acquire at GPU scope on
// `done[i]`, the number of tiles of tile row i that are finished; they finish in the order of k.

#include "kernels/dense/fused_cuda.hpp"

#include <algorithm>
#include <climits>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/fused_chain_cuda.hpp"
#include "kernels/dense/fused_task_cuda.hpp"

namespace strata::fused_kernel {
namespace {

constexpr int kTriangleTile = 128;

struct NoMaps {};
/// The tensor maps of a kernel that copies by TMA, or nothing.
template <class T, int kTile, bool kVectors>
using Maps = std::conditional_t<Sizes<T, kTile>::kByTma && kVectors, StageMaps, NoMaps>;

template <class T, int kTile, int kIb, bool kVectors>
__global__ void __launch_bounds__(Sizes<T, kTile>::kBlock, Sizes<T, kTile>::kBlocksPerSm)
    run_tiles(const __grid_constant__ Arguments<T> arguments,
              const __grid_constant__ Maps<T, kTile, kVectors> maps) {
  using S = Sizes<T, kTile>;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int drawn;
  const bool chained = kTile == 64 && arguments.chained;
  const int tile_cols = static_cast<int>((arguments.cols + kTile - 1) / kTile);
  if (threadIdx.x == 0) drawn = atomicAdd(arguments.ticket, 1);
  __syncthreads();
  if (chained && drawn == kChainTicket) {
    if constexpr (kTile == 64) run_chain<T, kIb, kVectors>(arguments, memory);
  } else {
    Workspace<T> workspace = make_workspace<T, kTile>(memory);
    if constexpr (S::kByTma && kVectors) workspace.maps = &maps;
    __syncthreads();                  // all have seen the ticket
    if (warp() >= S::kWarps) return;  // barriers count only the threads that are left
    TileOrder order{static_cast<int>((arguments.rows + kTile - 1) / kTile), tile_cols,
                    arguments.factors, chained};
    for (;;) {
      const int ticket = drawn;
      Tile tile;
      if (ticket >= arguments.tickets || !order.find(arguments.first_ticket + ticket, tile)) break;
      run_tile<T, kTile, kIb, kVectors>(arguments, workspace, tile, order.hands(tile.i, tile.j));
      // Behind a barrier in run_tile(), so all have seen the last one.
      if (threadIdx.x == 0) drawn = atomicAdd(arguments.ticket, 1);
      __syncthreads();
    }
  }
}

/// Number blockIdx.x of the lower triangle of tiles of X that begins at tile (column, column): less
/// the products of the first `depth` tile columns.
template <class T, bool kVectors>
__global__ void __launch_bounds__(Sizes<T, kTriangleTile>::kThreads)
    update_tiles(const __grid_constant__ Arguments<T> arguments,
                 const __grid_constant__ Maps<T, kTriangleTile, kVectors> maps, int column,
                 int depth) {
  using S = Sizes<T, kTriangleTile>;
  extern __shared__ __align__(128) unsigned char memory[];
  Workspace<T> workspace = make_workspace<T, kTriangleTile>(memory);
  if constexpr (S::kByTma && kVectors) workspace.maps = &maps;
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

template <class T, int kTile, bool kVectors>
Maps<T, kTile, kVectors> make_maps(const Arguments<T>& a) {
  using S = Sizes<T, kTile>;
  if constexpr (S::kByTma && kVectors) {
    const TensorMap x = make_tensor_map({a.x, a.rows, a.cols, a.ldx}, S::kLd, kDepth);
    if (a.factors) return {x, x};
    return {x, make_tensor_map({a.l, a.cols, a.cols, a.ldl}, S::kLd, kDepth)};
  } else {
    return {};
  }
}

template <class T, int kTile, int kIb, bool kVectors>
void launch(cudaStream_t stream, const Arguments<T>& arguments, int blocks_max) {
  using S = Sizes<T, kTile>;
  const auto kernel = run_tiles<T, kTile, kIb, kVectors>;
  // With the chain or without: the attribute is the kernel's, and other threads launch it too.
  constexpr int kBytes = kTile == 64 ? Chain<T, kVectors>::kBytes : S::kBytes;
  static_assert(kBytes >= S::kBytes);
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
               "shared memory of the fused kernel");
  int blocks = std::min(multiprocessors() * S::kBlocksPerSm, arguments.tickets);
  if (blocks_max > 0) blocks = std::min(blocks, blocks_max);
  kernel<<<static_cast<unsigned>(blocks), S::kBlock, kBytes, stream>>>(
      arguments, make_maps<T, kTile, kVectors>(arguments));
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
  int* tickets_of_columns = arguments.diagonal_ready + tile_rows;
  arguments.below_products = tickets_of_columns;  // with a chain there is one launch
  // A chain waits for other blocks: it is not for a GPU, or a share of one, that holds no second.
  const bool holds_two = multiprocessors() > 1 && shape.blocks != 1;
  arguments.chained = shape.tile == 64 && arguments.factors && !shape.exclusive && holds_two;
  if (arguments.chained) {
    arguments.inverses = reinterpret_cast<T*>(static_cast<std::byte*>(scratch) +
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
    // At most, with the chain's; the order knows how many there are.
    return launch(&book->ticket, 0, tickets);
  }
  const TileOrder order{static_cast<int>(tile_rows), static_cast<int>(tile_cols)};
  int first = 0;
  for (int j = 0; j < order.cols; ++j) {
    if (order.count(j) == 0) continue;
    launch(tickets_of_columns + j, first, order.count(j));
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
  update_tiles<T, kVectors><<<static_cast<unsigned>(tiles), S::kThreads, S::kBytes, stream>>>(
      arguments, make_maps<T, kTriangleTile, kVectors>(arguments), column, depth);
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
  // The inverses in doubles; in floats they take half of it.
  constexpr std::int64_t kBytes = kInverses * static_cast<std::int64_t>(sizeof(double));
  return zeroed_bytes(rows, tile) + (tile == 64 ? (cols + tile - 1) / tile * kBytes : 0);
}

template <class T>
void factor(cudaStream_t stream, MatrixView<T> a, Shape shape, std::int64_t first_column,
            Verdict* verdict, void* scratch) {
  Arguments<T> arguments{};
  arguments.x = a.data;
  arguments.ldx = a.ld;
  arguments.l = a.data;
  arguments.ldl = a.ld;
  arguments.rows = a.rows;
  arguments.cols = a.cols;
  arguments.first_column = first_column;
  arguments.verdict = verdict;
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
                             void*);
template void factor<float>(cudaStream_t, MatrixView<float>, Shape, std::int64_t, Verdict*, void*);
template void solve<double>(cudaStream_t, MatrixView<const double>, MatrixView<double>, Shape,
                            void*);
template void solve<float>(cudaStream_t, MatrixView<const float>, MatrixView<float>, Shape, void*);
template void update_triangle<double>(cudaStream_t, MatrixView<double>, std::int64_t, std::int64_t);
template void update_triangle<float>(cudaStream_t, MatrixView<float>, std::int64_t, std::int64_t);
template void report<double>(cudaStream_t, MatrixView<const double>, const Verdict*, PivotStatus*);
template void report<float>(cudaStream_t, MatrixView<const float>, const Verdict*, PivotStatus*);

}  // namespace strata::fused_kernel
