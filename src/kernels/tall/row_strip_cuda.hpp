#pragma once
// Strips of rows of a tall matrix, as the threads of a warp have them for the tensor cores.
//
// Method: mma.m16n8k8 of doubles is, bit for bit, a chain of fused multiply-adds in ascending depth
// (gram_tensor_cuda.cu). A warp has 16 rows; of eight columns thread g·4 + q has the rows 2g and
// 2g + 1 of the columns q and q + 4. That is how the instruction has an operand on the left; the
// columns of the operand on the right are taken in such an order that results lie so too, and
// can become operands where they are. Contract: included by *_cuda.cu only.

#include <algorithm>
#include <cstdint>

#include "kernels/dense/tile_product_cuda.hpp"
#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

inline constexpr int kEight = 8;
inline constexpr int kRows = 16;  // of a strip
inline constexpr int kRowThreads = 256;
inline constexpr int kRowWarps = kRowThreads / kWarpSize;

/// Which of eight columns of a result tile::multiply_add() has at `place`, so that a thread has q
/// and q + 4 of what it gives, as of its operand on the left.
__device__ inline int column_at(int place) { return place % 2 == 0 ? place / 2 : place / 2 + 4; }

/// Sixteen rows of a tall matrix, from `row` on, as one thread sees them.
struct Strip {
  std::int64_t row;  ///< of this thread: the first of two
  std::int64_t rows;
  int q;
  bool pairs;  ///< both can be read at once

  /// Whether this thread's column of a half of eight j is one.
  __device__ bool has(int j, int half, std::int64_t cols) const {
    return j * kEight + q + 4 * half < cols;
  }
  /// (row, q), (row, q + 4), (row + 1, q), (row + 1, q + 4) of the eight columns from `first` on,
  /// of which `cols` there are; zeros elsewhere.
  __device__ void read(const double* data, std::int64_t ld, std::int64_t first, std::int64_t cols,
                       double (&to)[4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t col = first + q + 4 * half;
      to[half] = to[2 + half] = 0;
      if (col >= cols || row >= rows) continue;
      const double* from = data + row + col * ld;
      if (pairs && row + 1 < rows) {
        const double2 both = *reinterpret_cast<const double2*>(from);
        to[half] = both.x;
        to[2 + half] = both.y;
      } else {
        to[half] = from[0];
        if (row + 1 < rows) to[2 + half] = from[1];
      }
    }
  }
  __device__ void write(double* data, std::int64_t ld, std::int64_t first, std::int64_t cols,
                        const double (&from)[4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t col = first + q + 4 * half;
      if (col >= cols || row >= rows) continue;
      double* to = data + row + col * ld;
      if (pairs && row + 1 < rows) {
        *reinterpret_cast<double2*>(to) = make_double2(from[half], from[2 + half]);
      } else {
        to[0] = from[half];
        if (row + 1 < rows) to[1] = from[2 + half];
      }
    }
  }
};

__device__ inline Strip strip_of(std::int64_t number, std::int64_t rows, bool pairs) {
  return {number * kRows + 2 * (tile::lane() / 4), rows, tile::lane() % 4, pairs};
}

/// Thread blocks that fill the multiprocessors, at most one a strip of each warp.
[[nodiscard]] inline unsigned blocks_of(const void* kernel, int threads, std::int64_t rows,
                                        std::size_t bytes) {
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "shared memory of rows");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, bytes),
               "rows");
  const std::int64_t most = std::int64_t{multiprocessors()} * std::max(resident, 1);
  return static_cast<unsigned>(
      std::min(most, std::int64_t{blocks_for(rows, std::int64_t{kRows} * threads / kWarpSize)}));
}

}  // namespace strata::gram_gpu
