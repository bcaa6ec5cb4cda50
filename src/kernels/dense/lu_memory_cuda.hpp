#pragma once
// The shared memory of a thread block that factors a panel of LU.
//
// Contract: as lu_messages_cuda.hpp; only for *_cuda.cu.

#include <type_traits>

#include "kernels/dense/lu_messages_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"

namespace strata::lu_cuda {

/// Rows of a warp, at a time; and the rows of U of a group, at most.
inline constexpr int kWarpRows = 32;
/// Columns on the right whose rows of U a warp finds at once.
inline constexpr int kAtOnce = 2;

/// Whether products are those of tensor cores.
template <class T>
inline constexpr bool kTensorCores = std::is_same_v<RealOf<T>, double>;

/// What all threads of a block share. kWide: columns of a group.
template <class T, int kWide, class Group>
struct PanelMemory {
  static constexpr int kWarps = Group::kThreads / 32;
  static constexpr int kSize = static_cast<int>(sizeof(T));
  static constexpr int kMessage = kMessageBytes<T, kWide>;
  /// From row to row of U: rows of a tensor core's operand lie in other banks.
  static constexpr int kStride = kWide + 32 / kSize;
  /// From column to column of results of tensor cores.
  static constexpr int kResultStride = kWarpRows + 2;
  static constexpr int kResult = kTensorCores<T> ? kResultStride * kWide * kSize : 0;  // of a warp

  T* u;            // U above the group, negated for tensor cores, kStride from row to row
  double* result;  // of tensor cores, of this warp; complex numbers by their parts
  T* strip;        // in the place of both: the group's rows of L, kWarpRows from column to column
  T* columns;      // and columns of U, of this warp
  unsigned char* stage;
  unsigned char* messages;
  Candidate* found;  // by warps, for two columns
  int* pivots;
  unsigned long long* barriers;

  static __host__ __device__ constexpr int products_bytes(int cols) {
    return cols * kStride * kSize + kWarps * kResult;
  }
  static __host__ __device__ constexpr int work_bytes(int cols) {
    const int rows_of_u = cols * (kWarpRows + kWarps * kAtOnce) * kSize;
    return products_bytes(cols) > rows_of_u ? products_bytes(cols) : rows_of_u;
  }
  static __host__ __device__ constexpr int pivots_bytes(int cols) { return (cols + 3) / 4 * 16; }
  static __host__ __device__ constexpr int bytes(int cols) {
    return work_bytes(cols) + kMessage * (1 + Group::kPlaces) +
           2 * kWarps * static_cast<int>(sizeof(Candidate)) + pivots_bytes(cols) + 16;
  }
  __device__ PanelMemory(unsigned char* memory, int cols) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    u = reinterpret_cast<T*>(memory);
    result = reinterpret_cast<double*>(memory + cols * kStride * kSize + warp * kResult);
    strip = u;
    columns = strip + cols * (kWarpRows + warp * kAtOnce);
    memory += work_bytes(cols);
    const auto take = [&](int size) {
      unsigned char* here = memory;
      memory += size;
      return here;
    };
    stage = take(kMessage);
    messages = take(Group::kPlaces * kMessage);
    found = reinterpret_cast<Candidate*>(take(2 * kWarps * static_cast<int>(sizeof(Candidate))));
    pivots = reinterpret_cast<int*>(take(pivots_bytes(cols)));
    barriers = reinterpret_cast<unsigned long long*>(take(16));
  }
};

}  // namespace strata::lu_cuda
