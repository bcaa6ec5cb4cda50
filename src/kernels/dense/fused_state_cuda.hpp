#pragma once
// What the blocks of the fused Cholesky kernel share: sizes, arguments, the workspace of a block,
// the flags in memory by which blocks tell each other. For fused_task_cuda.hpp.
//
// Contract: flags only grow, and are zero at the launch. What a block wrote before publish() is
// there for a warp behind await().
//
// Shared memory of a block: byte offsets, checked below. A column of a tile has 4 rows more than
// the tile (padded()); a stage is 16 columns of both operands.
//
//     tile of 64     tile of 128  |
//   double  float   double  float | during the products           then
//   ----------------------------- + -----------------------------------------------------------
//        0      0        0      0 | stages 0 … 3: X, L each       the tile (64: half of the place)
//    34816  17408        -      - |                               block of L that solves
//    69632  34816        -      - | A(i, j), loaded meanwhile
//        -      -   135168  67584 |                               block of L that solves
//        -      -   169984  84992 |                               another
//   104448  52224   204800 102400 |                               16 × 16 corner, bad pivot?
//   106128  53904   206480 104080 |                               inverses of 8 × 8 blocks
//   110224  58000   210576 108176 | full[], empty[] (128)
//   110288  58064   210640 108240 | end
//
// The chain (tiles of 64): at the first three places the diagonal tile, the tile below and the next
// diagonal tile (look-ahead); corner and inverses as above; then the ChainBarriers, 136 bytes.
//
// Barriers of threads. Named ones (bar.sync, bar.arrive), whose count is of threads:
//
//   number  arrive                       wait             why
//   0       all threads of the block     they             __syncthreads()
//   1       consumer warps of the chain  they             the next diagonal tile is complete
//   1       warps that factor, ib = 4    they             a block is there; it has been solved with
//   5, 6    leader of an even, odd step  warps with rows  the block of columns before is in shared
//           of factor_strips             below            memory: its products can be made
//   7, 8    the same                     the same         the inverse is there: rows can be solved
//
// Those of 5 … 8 are of (warps − leader)·32 threads: warps whose rows end have left, and the leader
// of a step only arrives. 2 … 4 and 9 … 15 are free. mbarriers in shared memory, of which a phase
// is a stage, or a column of the chain:
//
//   name        arrivals              wait                   why
//   full[s]     producer, and bytes   all warps              stage s is there (TMA)
//   empty[s]    every warp            its next producer      stage s has been read
//   factored[p] warps p … 3           store of diagonal      16 columns and inverses are there;
//                                     tiles; consumers (3)   the whole tile is
//   read        store of diagonal     consumers              the tile is in global memory: the next
//                                                            may take its place
//   below       2 producers and 2     consumers              the tile below is there
//               consumers
//   solved[b]   consumers             store of tiles below;  8 columns of it are solved
//                                     consumers
//   put         3 that store it       the one that publishes it is in global memory
//   ahead       its producer          consumers              the next diagonal tile is there
//   used        consumers             producers              both have been used: load the next

#include <climits>

#include "kernels/backend/tensor_map_cuda.hpp"
#include "kernels/dense/fused_cuda.hpp"
#include "kernels/dense/fused_order.hpp"
#include "kernels/dense/tile_factor_cuda.hpp"

namespace strata::fused_kernel {

using namespace tile;

/// At the head of the scratch memory; four flags a tile row follow it, or three and the tickets of
/// launches of one column: all zero at the launch. Then the inverses.
struct Bookkeeping {
  int ticket;
  int padding[31];
};

template <class T>
struct Arguments {
  T* x;  ///< rows × cols; its tiles are updated
  std::int64_t ldx;
  const T* l;  ///< factoring: x; solving: cols × cols
  std::int64_t ldl;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t first_column;
  int* ticket;          ///< the next one, less first_ticket
  int first_ticket;     ///< of this launch
  int tickets;          ///< of this launch
  int* done;            ///< finished tiles of a tile row; null: this block does them all, in order
  int* below_products;  ///< [j]: tile (j + 1, j) lacks its last product and its solve
  int* below_ready;     ///< [j]: it lacks only its solve
  int* diagonal_ready;  ///< [j]: tile (j, j) lacks only the product with tile (j, j − 1)
  T* inverses;          ///< of tile (j, j) from j·kInverses on, where the chain tells; or null
  Verdict* verdict;
  bool factors;  ///< x is l
  bool chained;  ///< the first ticket is the chain's; for tiles of 64
};

/// Sizes of one instance. T double or float, kTile 64 or 128.
template <class T, int kTile>
struct Sizes {
  static constexpr int kWarps = kTile == 64 ? 4 : 8;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kBlock =
      kThreads + (kTile == 64 ? 4 * kWarp : 0);  // and the chain's helpers
  static constexpr int kLd = padded(kTile);
  static constexpr int kLdBlock = padded(kSolve);  // of a block of L that multiplies or solves
  static constexpr int kWarpRows = kTile / 2;      // of the product of a warp
  static constexpr int kWarpsAcross = kTile / kWarpCols;
  static constexpr int kStage = 2 * kDepth * kLd;  // elements of both operands
  static constexpr int kPipeline = kStages * kStage;
  // A tile takes half of the pipeline (64) or all of it (128), once that has run dry. The blocks of
  // L that solve use the other half, or memory of their own; so does a tile that fetch_tile() has.
  static constexpr int kSolveBlock = kSolve * kLdBlock;
  static constexpr int kOwn = kTile == 64 ? kSolveBlock : 2 * kSolveBlock;
  static constexpr int kScratchAt = (kPipeline + kOwn) * static_cast<int>(sizeof(T));
  static constexpr int kScratch = kFactorScratch + kInverses;  // doubles, enough for floats
  static constexpr int kBarriersAt = kScratchAt + kScratch * static_cast<int>(sizeof(double));
  static constexpr int kBytes = kBarriersAt + static_cast<int>(sizeof(StageBarriers));
  static constexpr int kBlocksPerSm = 1;  // its registers leave room for no more
  // TMA copies of whole stages pay where products take longer than they do; for tiles of 64, and of
  // 128 floats, copies by all threads between the products were faster.
  static constexpr bool kByTma = kTile == 128 && sizeof(T) == 8;
};

// The map at the head of this file.
template <class T, int kTile, int kLoaded, int kScratchAt, int kBytes>
inline constexpr bool kMapIs =
    Sizes<T, kTile>::kPipeline* int{sizeof(T)} == kLoaded&& Sizes<T, kTile>::kScratchAt ==
    kScratchAt&& Sizes<T, kTile>::kBytes == kBytes;
static_assert(kMapIs<double, 64, 69632, 104448, 110288> && kMapIs<float, 64, 34816, 52224, 58064>);
static_assert(kMapIs<double, 128, 135168, 204800, 210640> &&
              kMapIs<float, 128, 67584, 102400, 108240>);
static_assert(kFactorScratch * sizeof(double) == 106128 - 104448);

/// The tensor maps of both operands, if their stages come by TMA.
struct StageMaps {
  TensorMap x;
  TensorMap l;
};

/// What a thread block has for its tiles, one after another.
template <class T>
struct Workspace {
  T* shared;                        ///< the pipeline; then a tile and blocks of L
  double* scratch;                  ///< of the factorization; behind it the inverses
  StageBarriers* stages;            ///< of the pipeline, for tiles of 128
  const StageMaps* maps = nullptr;  ///< for its copies, if they are by TMA
  int staged = 0;                   ///< stages that the pipeline has had

  __device__ T* inverses() const { return reinterpret_cast<T*>(scratch + kFactorScratch); }
};

/// The workspace in the shared memory of a block, by all its threads, before a barrier of theirs.
template <class T, int kTile>
__device__ inline Workspace<T> make_workspace(unsigned char* memory) {
  using S = Sizes<T, kTile>;
  Workspace<T> workspace{reinterpret_cast<T*>(memory),
                         reinterpret_cast<double*>(memory + S::kScratchAt),
                         reinterpret_cast<StageBarriers*>(memory + S::kBarriersAt)};
  if (kTile == 128 && threadIdx.x < kStages) {
    init_barrier(&workspace.stages->full[threadIdx.x], 1);
    init_barrier(&workspace.stages->empty[threadIdx.x], S::kWarps);
    fence_async_proxy();
  }
  return workspace;
}

// ---- flags and tickets ------------------------------------------------------------------------

__device__ inline int acquire(const int* flag) {
  int value = 0;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

/// By one thread, behind a barrier with those who wrote: one more of what others wait for.
__device__ inline void signal(int* flag) {
  __threadfence();
  atomicAdd(flag, 1);
}

/// By one thread, behind a barrier with those who wrote: what they have written is there for whom
/// sees the flag.
__device__ inline void publish(int* flag, int value) {
  __threadfence();
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

/// Waits until *flag >= count, and returns it; the whole warp then sees what was written before.
__device__ inline int await(const int* flag, int count) {
  int value = 0;
  if (lane() == 0) {
    value = acquire(flag);
    while (value < count) {
      __nanosleep(20);
      value = acquire(flag);
    }
  }
  __syncwarp();
  return __shfl_sync(0xffffffffu, value, 0);
}

/// The same for two flags at once; returns the lesser.
__device__ inline int await(const int* first, const int* second, int count) {
  const int* flag = lane() == 0 ? first : second;
  int value = INT_MAX;
  while (true) {
    if (lane() < 2) value = acquire(flag);
    if (__all_sync(0xffffffffu, value >= count)) break;
    __nanosleep(20);
  }
  __syncwarp();
  return min(__shfl_sync(0xffffffffu, value, 0), __shfl_sync(0xffffffffu, value, 1));
}

/// *verdict ← this bad pivot, unless it knows one of a lesser column. By one thread.
__device__ inline void report_least(Verdict* verdict, std::int64_t column, double pivot) {
  constexpr int kKnown = 1;
  constexpr int kLocked = 2;
  while (true) {
    const int state = acquire(&verdict->failed);
    if (state == kKnown && __ldcg(&verdict->bad_column) <= column) return;
    if (state == kLocked || atomicCAS(&verdict->failed, state, kLocked) != state) continue;
    __threadfence();
    if (state == 0 || column < __ldcg(&verdict->bad_column)) {
      verdict->bad_column = column;
      verdict->bad_pivot = pivot;
    }
    publish(&verdict->failed, kKnown);
    return;
  }
}

}  // namespace strata::fused_kernel
