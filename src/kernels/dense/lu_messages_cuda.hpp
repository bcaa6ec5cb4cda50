#pragma once
// What the thread blocks of a panel of LU tell each other, and the search for a pivot in a warp.
//
// Contract: for each column every block sends a message, once: a Candidate and the elements of its
// row. `receive` waits for those of all blocks. Messages of one column have other places than
// those of the next; a block sends for a column once all its threads are done with the messages of
// the column before. A block that is alone stages them, and sends none.
// Only for *_cuda.cu.

#include <cooperative_groups.h>

#include <climits>
#include <cstdint>

#include "kernels/dense/lu_panel_cuda.hpp"

namespace strata::lu_cuda {

namespace cg = cooperative_groups;

inline constexpr int kPanelThreads = 256;  // of a block, where several take a panel
inline constexpr int kClusterMost = 16;
inline constexpr int kBlocksMost = 256;  // of a launch without clusters
inline constexpr int kNoRow = INT_MAX;
inline constexpr int kMessageChunk = 16;  // bytes

/// The best row of a block, or of a warp.
struct alignas(16) Candidate {
  unsigned long long key;
  int place;  // the row of the panel where it is now
  int row;    // where it was before the exchanges of this group of columns
};
static_assert(sizeof(Candidate) == 16);

/// A message before the elements of its row: a Candidate, in fp64 also the reciprocal of its pivot.
template <class T>
inline constexpr int kHeaderBytes = std::is_same_v<T, double> ? 32 : 16;
template <class T, int kWide>
inline constexpr int kMessageBytes = kHeaderBytes<T> + kWide* static_cast<int>(sizeof(T));
inline constexpr int kMessageBytesMost = 32 + 32 * 8;

template <class T>
struct Panel {
  T* a;
  std::int64_t ld;
  int rows;
  int cols;
  int rows_each;  // of a block, a multiple of 32
  std::int64_t* pivots;
  std::int64_t base;
  unsigned char* messages;  // of all blocks, without clusters
  int* flags;
  int epoch;
  cudaEvent_t started;  // if not null, recorded when all blocks run
};

/// Blocks of a cluster: messages go into the shared memory of each. Their bytes are counted by a
/// barrier there, so that nothing but them is waited for.
struct ClusterGroup {
  static constexpr int kThreads = kPanelThreads;
  static constexpr int kPlaces = 2 * kClusterMost;  // of messages in shared memory
  static constexpr bool kShared = true;
  unsigned char* messages;
  unsigned barriers;  // two, their address in shared memory
  int blocks;

  template <class T>
  __device__ ClusterGroup(const Panel<T>&, unsigned char* shared_messages,
                          unsigned long long* shared_barriers)
      : messages(shared_messages),
        barriers(static_cast<unsigned>(__cvta_generic_to_shared(shared_barriers))),
        blocks(static_cast<int>(cg::this_cluster().num_blocks())) {}
  __device__ int rank() const { return static_cast<int>(cg::this_cluster().block_rank()); }
  __device__ int size() const { return blocks; }
  /// All blocks run before one writes to another.
  __device__ void start() {
    if (threadIdx.x == 0) {
      for (int b = 0; b < 2; ++b)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8U * b) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    barrier();
  }
  /// By a warp, to every block: 16 bytes each of `stage` up to `header`, and from `first` to
  /// `last`.
  template <int kBytes>
  __device__ __forceinline__ void send(int parity, int slot, const unsigned char* stage, int header,
                                       int first, int last) {
    constexpr int kChunks = kBytes / kMessageChunk;
    constexpr int kEach = (kChunks + 1) / 2;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int there = lane % kClusterMost;
    const int half = lane / kClusterMost;
    const auto offset = static_cast<unsigned>((parity * kClusterMost + slot) * kBytes);
    const auto here = static_cast<unsigned>(__cvta_generic_to_shared(messages)) + offset;
    const unsigned barrier = barriers + 8U * static_cast<unsigned>(parity);
    if (there >= blocks) return;
    unsigned to = 0;
    unsigned signal = 0;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(here), "r"(there));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(barrier), "r"(there));
    const auto goes = [&](int chunk) { return chunk < header || (chunk >= first && chunk < last); };
    uint4 all[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (goes(2 * i + half)) all[i] = reinterpret_cast<const uint4*>(stage)[2 * i + half];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int chunk = 2 * i + half;
      if (goes(chunk)) {
        const uint4 v = all[i];
        asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
            "[%5];" ::"r"(to + static_cast<unsigned>(kMessageChunk * chunk)),
            "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(signal)
            : "memory");
      }
    }
  }
  /// `bytes`: of a message; `phase`: whether the barrier has been passed an odd number of times.
  __device__ __forceinline__ void receive(int parity, int phase, int bytes) {
    const unsigned barrier = barriers + 8U * static_cast<unsigned>(parity);
    if (threadIdx.x == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                   "r"(bytes * blocks)
                   : "memory");
    unsigned done = 0;
    do {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
          "selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(barrier), "r"(phase)
          : "memory");
    } while (done == 0);
  }
  /// All memory that blocks wrote before is seen by all of them.
  __device__ void barrier() { cg::this_cluster().sync(); }
};

/// Blocks of a launch: messages in global memory. Each block raises a flag of its own.
struct GridGroup {
  static constexpr int kThreads = kPanelThreads;
  static constexpr int kPlaces = 2;
  static constexpr bool kShared = false;
  unsigned char* messages;
  int* flags;
  int epoch;

  template <class T>
  __device__ GridGroup(const Panel<T>& p, unsigned char*, unsigned long long*)
      : messages(p.messages), flags(p.flags), epoch(p.epoch) {}
  __device__ int rank() const { return static_cast<int>(blockIdx.x); }
  __device__ int size() const { return static_cast<int>(gridDim.x); }
  __device__ void start() {}
  template <int kBytes>
  __device__ void send(int parity, int slot, const unsigned char* stage, int header, int first,
                       int last) {
    constexpr int kChunks = kBytes / kMessageChunk;
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int i = lane; i < kChunks; i += 32)
      if (i < header || (i >= first && i < last))
        __stcg(reinterpret_cast<uint4*>(messages + (parity * size() + slot) * kBytes) + i,
               reinterpret_cast<const uint4*>(stage)[i]);
  }
  __device__ void receive(int, int, int) { barrier(); }
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

/// A block that has a panel of its own, as others have theirs: what it stages is the message.
template <int kOwnThreads>
struct SoloGroup {
  static constexpr int kThreads = kOwnThreads;
  static constexpr int kPlaces = 0;
  static constexpr bool kShared = true;

  template <class T>
  __device__ SoloGroup(const Panel<T>&, unsigned char*, unsigned long long*) {}
  __device__ int rank() const { return 0; }
  __device__ int size() const { return 1; }
  __device__ void start() {}
  template <int kBytes>
  __device__ void send(int, int, const unsigned char*, int, int, int) {}
  __device__ void receive(int, int, int) { __syncthreads(); }
  __device__ void barrier() { __syncthreads(); }
};
template <class Group>
inline constexpr bool kIsSolo = Group::kPlaces == 0;

// ---- the search for a pivot ---------------------------------------------------------------------

/// The lane with the largest key among `lanes`, which call it, of equal ones that with the
/// least place. Most often the upper halves of the keys tell.
template <class Key>
[[nodiscard]] __device__ __forceinline__ int best_lane(Key key, int place,
                                                       unsigned lanes = 0xffffffffU) {
  const auto high = static_cast<unsigned>(sizeof(Key) == 8 ? key >> (4 * sizeof(Key)) : key);
  bool mine = high == __reduce_max_sync(lanes, high);
  unsigned equal = __ballot_sync(lanes, mine);
  if ((equal & (equal - 1)) != 0) {
    if constexpr (sizeof(Key) == 8) {
      const unsigned low = mine ? static_cast<unsigned>(key) : 0U;
      const unsigned most = __reduce_max_sync(lanes, low);
      mine = mine && low == most;
    }
    const int least = __reduce_min_sync(lanes, mine ? place : kNoRow);
    equal = __ballot_sync(lanes, mine && place == least);
  }
  return __ffs(static_cast<int>(equal)) - 1;
}

}  // namespace strata::lu_cuda
