#pragma once
// What one thread block does with tiles, 4: strips of 16 rows, one a warp, as operands and results
// of the tensor cores; solve 64 columns with them.
//
// Contract: as tile_copy_cuda.hpp. Products are made in fp64 for both types.

#include "kernels/dense/tile_diagonal_cuda.hpp"

namespace strata::tile {

/// Rows 2g and 2g + 1 of columns t and u, of what multiply_add has.
template <class T>
__device__ inline Pair<T> first_column(const double (&value)[4]) {
  return {static_cast<T>(value[0]), static_cast<T>(value[2])};
}
template <class T>
__device__ inline Pair<T> second_column(const double (&value)[4]) {
  return {static_cast<T>(value[1]), static_cast<T>(value[3])};
}

/// What this thread has of 8 columns of 16 rows, the operand of multiply_add, in shared memory.
template <class T>
struct StripBlock {
  T* at;      ///< element (2g, t)
  int other;  ///< from there to (2g, u)

  StripBlock() = default;
  __device__ StripBlock(T* x, int ld)
      : at(x + lane() / 4 * 2 + lane() % 4 * ld),
        other((other_column(lane() % 4) - lane() % 4) * ld) {}

  /// Reads the block `offset` elements further.
  __device__ void read(double (&value)[4], int offset) const {
    const double2 left = read_pair(at + offset);
    const double2 right = read_pair(at + offset + other);
    value[0] = left.x;
    value[1] = right.x;
    value[2] = left.y;
    value[3] = right.y;
  }
  __device__ void write(const double (&value)[4], int offset) const {
    *reinterpret_cast<Pair<T>*>(at + offset) = first_column<T>(value);
    *reinterpret_cast<Pair<T>*>(at + offset + other) = second_column<T>(value);
  }
};

/// Where results go besides: to a tile in global memory, of which `at` is this thread's element
/// (2g, t) of strip number `strip`, its warp's; or nowhere, if it is null.
template <class T>
struct StripSink {
  T* at;
  std::int64_t ld;
  int strip;

  __device__ StripSink(T* tile, std::int64_t ld, int strip)
      : at(tile == nullptr ? nullptr
                           : tile + strip * kRowsPerWarp + lane() / 4 * 2 + lane() % 4 * ld),
        ld(ld),
        strip(strip) {}

  /// Columns t and u of the block of columns from 8·block on.
  __device__ void put(const double (&value)[4], int block) const {
    if (at == nullptr) return;
    const int t = lane() % 4;
    T* left = at + 8 * block * ld;
    *reinterpret_cast<Pair<T>*>(left) = first_column<T>(value);
    *reinterpret_cast<Pair<T>*>(left + (other_column(t) - t) * ld) = second_column<T>(value);
  }
  /// As much of them as is not above the diagonal.
  __device__ void put_lower(const double (&value)[4], int block) const {
    if (at == nullptr) return;
    const int t = lane() % 4;
    const int row = strip * kRowsPerWarp + lane() / 4 * 2;
    put_lower(at + 8 * block * ld, row - 8 * block - t, first_column<T>(value));
    put_lower(at + (8 * block + other_column(t) - t) * ld, row - 8 * block - other_column(t),
              second_column<T>(value));
  }

 private:
  /// `below`: rows below the diagonal that the pair begins.
  static __device__ void put_lower(T* to, int below, Pair<T> pair) {
    if (below >= 0) *reinterpret_cast<Pair<T>*>(to) = pair;
    if (below == -1) to[1] = pair.y;
  }
};

/// Where somebody else sees to that.
struct NoSink {};

/// What this thread has of 8 × 8 elements of L, the other operand of multiply_add for products with
/// Lᵀ, in shared memory: (column_of(g), t) and (column_of(g), u).
template <class T>
struct AcrossBlock {
  const T* at;
  int other;

  AcrossBlock() = default;
  __device__ AcrossBlock(const T* l, int ld)
      : at(l + column_of(lane() / 4) + lane() % 4 * ld),
        other((other_column(lane() % 4) - lane() % 4) * ld) {}

  __device__ double2 read(int offset) const {
    return {static_cast<double>(at[offset]), static_cast<double>(at[offset + other])};
  }
};

/// Here and in factor_strips, what is to be subtracted from an element is added up first: sums that
/// begin with an element of A lose digits of its size at each step.
__device__ inline void subtract(double (&rest)[4], const double (&sum)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) rest[e] -= sum[e];
}

/// The progress of work that no other warp follows.
struct NoProgress {
  __device__ void operator()(int) const {}
};

/// X ← X·L⁻ᵀ for 16 rows a warp and 64 columns, with the inverses that invert_blocks made; also to
/// the sink, if it is not NoSink. A warp calls progress(b) when it has block b of eight columns in
/// X. All on the tensor cores and in registers: what a thread has of a result is what it must give
/// as an operand. Rows of different warps have nothing to do with each other: no barrier. With kFew
/// only the first `blocks` blocks of eight columns are there.
template <bool kFew = false, class T, class Sink, class Progress>
__device__ inline void solve_columns(T* x, int ldx, const T* l, int ldl, const T* inverses,
                                     const Sink& sink, Progress&& progress,
                                     int blocks = kSolve / 8) {
  constexpr int kBlocks = kSolve / 8;
  const StripBlock<T> own(x + warp() * kRowsPerWarp, ldx);
  const AcrossBlock<T> across(l, ldl);
  constexpr double kZero[4] = {};
  double value[kBlocks][4] = {};  // what is to be subtracted; then the result
  double rest[4];
  own.read(rest, 0);
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    if (kFew && b >= blocks) break;
    subtract(rest, value[b]);
    multiply_add(value[b], kZero, rest, read_pair(inverses + b * 64 + lane() * 2));
    if (b + 1 < kBlocks) own.read(rest, 8 * (b + 1) * ldx);  // before anything is written
#pragma unroll
    for (int n = b + 1; n < kBlocks; ++n) {
      if (kFew && n >= blocks) break;
      multiply_add(value[n], value[n], value[b], across.read(8 * n + 8 * b * ldl));
    }
    own.write(value[b], 8 * b * ldx);
    if constexpr (!std::is_same_v<Sink, NoSink>) sink.put(value[b], b);
    progress(b);
  }
}

}  // namespace strata::tile
