#pragma once
// What one thread block does with tiles, 1: how they come to shared memory.
//
// Contract: tiles in shared memory are column-major, `ld` elements from column to column; with
// ld = padded(order), ≡ 4 (mod 16), neither vector loads nor products of fp64 have bank conflicts.
// All functions are called by all threads of a block, or of a warp where they say so. T is double
// or float. Only for *_cuda.cu.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

namespace strata::tile {

inline constexpr int kWarp = 32;
inline constexpr int kWarpCols = 32;     // of the product of one warp
inline constexpr int kDepth = 16;        // of a stage of a product
inline constexpr int kStages = 4;        // in flight
inline constexpr int kSolve = 64;        // columns that factor_columns and solve_columns treat
inline constexpr int kRowsPerWarp = 16;  // there

__host__ __device__ constexpr int padded(int order) { return order + 4; }

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / kWarp; }

/// Two neighbours.
template <class T>
using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;

template <class T>
__device__ inline Pair<T> read_both(const T* from) {
  return *reinterpret_cast<const Pair<T>*>(from);
}

// ---- asynchronous copies from global to shared memory -----------------------------------------

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Copies `bytes` (0 … kBytes) and fills the rest of the kBytes with zeros.
template <int kBytes>
__device__ inline void copy_async(void* shared, const void* global, int bytes) {
  const unsigned to = shared_address(shared);
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  } else if constexpr (kBytes == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  }
}
/// Copies kBytes, or writes zeros if `ignored` is not 0.
template <int kBytes>
__device__ inline void copy_async_unless(void* shared, const void* global, int ignored) {
  const unsigned to = shared_address(shared);
  if constexpr (kBytes == 16) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }" ::
            "r"(to),
        "l"(global), "r"(ignored)
        : "memory");
  } else {
    copy_async<kBytes>(shared, global, ignored != 0 ? 0 : kBytes);
  }
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most kPending groups of this thread are in flight.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// All columns begin at multiples of 16 bytes: copies may take as much at a time.
template <class T>
__host__ __device__ inline bool columns_aligned(const T* data, std::int64_t ld) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         ld * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
}

/// What one of kThreads threads copies of a kRows × kCols block (column-major in both memories):
/// always the same rows, of every so many columns. Rows past `rows` and columns past `cols` become
/// zeros. `vectors`: 16-byte copies may be used.
template <class T, int kRows, int kCols, int kThreads>
class BlockCopy {
 public:
  __device__ BlockCopy(int thread, const T* global, std::int64_t ldg, int rows, bool vectors)
      : ldg_(ldg), vectors_(vectors) {
    const int width = vectors ? kVector : 1;
    row_ = thread % (kRows / width) * width;
    col_ = thread / (kRows / width);
    const int valid = min(max(rows - row_, 0), width);
    bytes_ = valid * static_cast<int>(sizeof(T));
    from_ = valid > 0 ? global + row_ + col_ * ldg : global;
    if (valid == 0) ldg_ = 0;
  }

  __device__ void issue(T* shared, int ld, int cols = kCols) const {
    if (vectors_) {
      copy<kVector>(shared, ld, cols);
    } else {
      copy<1>(shared, ld, cols);
    }
  }

 private:
  static constexpr int kVector = 16 / sizeof(T);

  template <int kWidth>
  __device__ void copy(T* shared, int ld, int cols) const {
    constexpr int kStep = kThreads * kWidth / kRows;  // columns between the copies of a thread
    static_assert(kThreads * kWidth % kRows == 0 && kCols % kStep == 0);
    T* to = shared + row_ + col_ * ld;
    const T* from = from_;
#pragma unroll 4
    for (int k = 0; k < kCols; k += kStep) {
      const bool inside = col_ + k < cols;
      copy_async<kWidth * sizeof(T)>(to, inside ? from : from_, inside ? bytes_ : 0);
      to += kStep * ld;
      from += kStep * ldg_;
    }
  }

  const T* from_;
  std::int64_t ldg_;
  int row_;
  int col_;
  int bytes_;
  bool vectors_;
};

/// What one thread copies of the operands of stages, kTile × kDepth each, from left to right: 16
/// bytes at a time (kVectors) or as many in single elements, so that copies can be spread between
/// products. What begins below `rows` is copied, with what follows in the same 16 bytes; the rest
/// becomes zeros.
template <class T, int kTile, int kThreads, bool kVectors>
class StageCopy {
 public:
  static constexpr int kVector = 16 / sizeof(T);
  static constexpr int kCopies = kDepth * kTile / kVector / kThreads;  // of 16 bytes, a stage

  __device__ StageCopy(const T* global, std::int64_t ldg, int rows) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread % kColumn * kWidth;
    const int col = thread / kColumn;
    column_ = col;
    const bool inside = row < rows;
    from_ = inside ? global + row + col * ldg : global;
    stride_ = inside ? kStep * ldg : 0;
    offset_ = row + col * padded(kTile);
    // Opaque, lest it is computed again at each copy.
    asm volatile("mov.b32 %0, %1;" : "=r"(ignored_) : "r"(inside ? 0 : 1));
  }
  /// The next copy: number `part` < kCopies of its stage, whose operand is at `shared`. Zeros if
  /// none of the columns is wanted, or with kPartial in columns after the first `wanted`: cheaper
  /// than a branch between products.
  template <bool kPartial = false>
  __device__ void issue(int part, T* shared, int wanted) {
    constexpr int kEach = kVectors ? 1 : kVector;
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      const int step = (part * kEach + c) * kStep;
      copy_async_unless<kWidth * sizeof(T)>(
          shared + offset_ + step * padded(kTile), from_,
          (kPartial ? column_ + step < wanted : wanted > 0) ? ignored_ : 1);
      from_ += stride_;
    }
  }

 private:
  static constexpr int kWidth = kVectors ? kVector : 1;
  static constexpr int kColumn = kTile / kWidth;    // copies a column
  static constexpr int kStep = kThreads / kColumn;  // columns between the copies of a thread

  const T* from_;
  std::int64_t stride_;
  int offset_;
  int column_;
  int ignored_;  ///< 1: zeros are to be written
};

// ---- copies by TMA, and the barriers in shared memory (mbarriers) that count their bytes --------

/// By what producer and consumer warps of a pipeline of stages tell each other: full[] when a stage
/// is there, empty[] when all warps have read it.
struct StageBarriers {
  unsigned long long full[kStages];
  unsigned long long empty[kStages];
};

__device__ inline void init_barrier(unsigned long long* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
__device__ inline void arrive(unsigned long long* barrier) {
  asm volatile(
      "{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(shared_address(barrier))
      : "memory");
}
/// Arrives when all copies are done that this thread started by copy_async() before.
__device__ inline void arrive_after_copies(unsigned long long* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
/// Arrives, and says how many bytes of TMA copies the phase also waits for.
__device__ inline void arrive_expecting(unsigned long long* barrier, int bytes) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
/// Waits for the end of the phase with that parity.
__device__ inline void wait_phase(unsigned long long* barrier, int parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
/// All of a warp have done what others wait for.
__device__ inline void arrive_as_warp(unsigned long long* barrier) {
  __syncwarp();
  if (lane() == 0) arrive(barrier);
}

/// One thread has the box copied that begins at (row, col) of the matrix whose tensor map is `map`;
/// what is outside of the matrix becomes zeros, and `barrier` counts all bytes of the box. `shared`
/// is a multiple of 128.
__device__ inline void copy_by_tma(void* shared, const void* map, int row, int col,
                                   unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(map), "r"(row), "r"(col), "r"(shared_address(barrier))
      : "memory");
}
/// The same of a map of row groups (tensor_map_cuda.hpp): columns from `col` on, groups from
/// `group` on. `shared` is a multiple of 1024.
__device__ inline void copy_groups_by_tma(void* shared, const void* map, int col, int group,
                                          unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(shared)),
      "l"(map), "r"(0), "r"(col), "r"(group), "r"(shared_address(barrier))
      : "memory");
}
/// One thread has `bytes` copied that lie together, a multiple of 16, as both addresses are.
__device__ inline void copy_bulk(void* shared, const void* global, int bytes,
                                 unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
/// Orders ordinary accesses of this thread before TMA copies (the asynchronous proxy).
__device__ inline void fence_async_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }

}  // namespace strata::tile
