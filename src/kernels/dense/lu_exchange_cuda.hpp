#pragma once
// What the thread blocks of a panel of LU tell each other, and the search for a pivot in a warp.
//
// Contract: `send` puts bytes into a slot that all blocks read after the next `barrier`; slots of
// one column are not those of the next. Only for lu_panel_cuda.cu.

#include <cooperative_groups.h>

#include <climits>
#include <cstdint>

#include "kernels/dense/lu_panel_cuda.hpp"

namespace strata::lu_cuda {

namespace cg = cooperative_groups;

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kClusterMost = 16;
inline constexpr int kBlocksMost = 256;  // of a launch without clusters
inline constexpr int kNoRow = INT_MAX;

/// The best row of a block: what its first 16 bytes are; its elements follow.
struct alignas(16) Candidate {
  unsigned long long key;
  int row;
};
static_assert(sizeof(Candidate) == 16);

template <class T, int kWide>
inline constexpr int kSlotBytes = 16 + kWide* static_cast<int>(sizeof(T));
inline constexpr int kSlotBytesMost = 16 + 32 * 8;

template <class T>
struct Panel {
  T* a;
  std::int64_t ld;
  int rows;
  int cols;
  std::int64_t* pivots;
  std::int64_t base;
  unsigned char* slots;  // of all blocks, without clusters
  int* flags;
  int epoch;
};

/// Blocks of a cluster: slots in the shared memory of each.
struct ClusterGroup {
  static constexpr bool kShared = true;
  unsigned char* slots;

  template <class T>
  __device__ ClusterGroup(const Panel<T>&, unsigned char* shared) : slots(shared) {}
  __device__ int rank() const { return static_cast<int>(cg::this_cluster().block_rank()); }
  __device__ int size() const { return static_cast<int>(cg::this_cluster().num_blocks()); }
  /// By a warp: `kBytes` from `stage` to slot `slot` of every block. Unrolled, a chunk of 16 bytes
  /// a lane: all other warps wait for it.
  template <int kBytes>
  __device__ __forceinline__ void send(int slot, const unsigned char* stage) {
    constexpr int kChunks = kBytes / 16;
    static_assert(kChunks <= 32);
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (lane >= kChunks) return;
    const uint4 chunk = reinterpret_cast<const uint4*>(stage)[lane];
    const auto here =
        static_cast<unsigned>(__cvta_generic_to_shared(slots + slot * kBytes + 16 * lane));
    const int blocks = size();
#pragma unroll
    for (int b = 0; b < kClusterMost; ++b) {
      if (b >= blocks) break;
      unsigned there = 0;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(b));
      asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(there), "r"(chunk.x),
                   "r"(chunk.y), "r"(chunk.z), "r"(chunk.w)
                   : "memory");
    }
  }
  __device__ void barrier() { cg::this_cluster().sync(); }
};

/// Blocks of a launch: slots in global memory. Each block raises a flag of its own.
struct GridGroup {
  static constexpr bool kShared = false;
  unsigned char* slots;
  int* flags;
  int epoch;

  template <class T>
  __device__ GridGroup(const Panel<T>& p, unsigned char*)
      : slots(p.slots), flags(p.flags), epoch(p.epoch) {}
  __device__ int rank() const { return static_cast<int>(blockIdx.x); }
  __device__ int size() const { return static_cast<int>(gridDim.x); }
  template <int kBytes>
  __device__ void send(int slot, const unsigned char* stage) {
    constexpr int kChunks = kBytes / 16;
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int i = lane; i < kChunks; i += 32)
      __stcg(reinterpret_cast<uint4*>(slots + slot * kBytes) + i,
             reinterpret_cast<const uint4*>(stage)[i]);
  }
  __device__ void barrier() {
    ++epoch;
    __syncthreads();
    const int t = static_cast<int>(threadIdx.x);
    if (t == 0) {
      __threadfence();
      asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flags + rank()), "r"(epoch)
                   : "memory");
    }
    for (int b = t; b < size(); b += kThreads) {
      int seen = 0;
      do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(flags + b)
                     : "memory");
      } while (seen < epoch);
    }
    __syncthreads();
  }
};

// ---- the search for a pivot ---------------------------------------------------------------------

/// The largest key of a warp and the least row that has it; the same on all lanes.
template <class Key>
__device__ __forceinline__ void best_of_warp(Key& key, int& row) {
  constexpr unsigned kAll = 0xffffffffU;
  bool mine = true;
  if constexpr (sizeof(Key) == 8) {
    const unsigned high = __reduce_max_sync(kAll, static_cast<unsigned>(key >> 32));
    mine = static_cast<unsigned>(key >> 32) == high;
    const unsigned low = __reduce_max_sync(kAll, mine ? static_cast<unsigned>(key) : 0U);
    mine = mine && static_cast<unsigned>(key) == low;
    key = (static_cast<Key>(high) << 32) | low;
  } else {
    const Key most = __reduce_max_sync(kAll, key);
    mine = key == most;
    key = most;
  }
  row = __reduce_min_sync(kAll, mine ? row : kNoRow);
}

}  // namespace strata::lu_cuda
