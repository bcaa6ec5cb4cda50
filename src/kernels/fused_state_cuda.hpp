#pragma once
// What the blocks of the fused Cholesky kernel share: sizes, arguments, the workspace of a block,
// the flags in memory by which blocks tell each other. For fused_task_cuda.hpp.
//
// Contract: flags only grow, and are zero at the launch. What a block wrote before publish() is
// there for a warp behind await().

#include <climits>

#include "kernels/box_map_cuda.hpp"
#include "kernels/fused_cuda.hpp"
#include "kernels/fused_order.hpp"
#include "kernels/tile_factor_cuda.hpp"

namespace strata::fused {

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
  PivotStatus* status;  ///< where the whole factorization reports; or null
  bool factors;         ///< x is l
  bool chained;         ///< the first ticket is the chain's; for tiles of 64
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
  // Copies of whole stages pay where products take longer than they do; for tiles of 64, and of 128
  // floats, copies by all threads between the products were faster.
  static constexpr bool kBoxes = kTile == 128 && sizeof(T) == 8;
};

/// Where the stages of both operands come from, if they come in boxes.
struct StageMaps {
  BoxMap x;
  BoxMap l;
};

/// What a thread block has for its tiles, one after another.
template <class T>
struct Workspace {
  T* shared;                        ///< the pipeline; then a tile and blocks of L
  double* scratch;                  ///< of the factorization; behind it the inverses
  StageBarriers* stages;            ///< of the pipeline, for tiles of 128
  const StageMaps* maps = nullptr;  ///< for its copies, if they are boxes
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
    fence_boxes();
  }
  return workspace;
}

// ---- flags and tickets ------------------------------------------------------------------------

__device__ inline int acquire(const int* flag) {
  int value = 0;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
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

}  // namespace strata::fused
