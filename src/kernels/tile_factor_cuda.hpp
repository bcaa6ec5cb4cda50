#pragma once
// What one thread block does with tiles, 4: factor and solve 64 columns in shared memory.
//
// Contract: as tile_copy_cuda.hpp. Products are made in fp64 for both types, on the tensor cores.

#include "kernels/tile_diagonal_cuda.hpp"

namespace strata::tile {

/// X(·, c) ← X(·, c) − Σ_{k < first} X(·, k)·L(c, k) for the 16 rows of this warp, `strip`, and the
/// columns first <= c < first + kIb (4 or 8), on the tensor cores. What falls on the diagonal
/// block, rows first … of the panel, also goes to `block` (kIb × kIb, packed); `strip_row` is the
/// strip's first row.
template <int kIb, class T>
__device__ inline void eliminate(T* strip, int ldx, const T* l, int ldl, int first, int strip_row,
                                 double* block) {
  const int g = lane() / 4;
  const int t = lane() % 4;
  const bool holds = 2 * t < kIb;  // columns 2t, 2t + 1 of rows 2g, 2g + 1
  T* own = strip + 2 * g + (first + 2 * t) * ldx;
  double sum[2][4] = {};  // two chains of dependent products, of the negative
  if (holds) {
    const double2 left = read_pair(own);
    const double2 right = read_pair(own + ldx);
    sum[0][0] = -left.x;
    sum[0][1] = -right.x;
    sum[0][2] = -left.y;
    sum[0][3] = -right.y;
  }
  const T* a = strip + 2 * g + t * ldx;
  const T* b = l + first + g + t * ldl;
  int k = 0;
#pragma unroll 2
  for (; k + 8 <= first; k += 8) {
    const double2 even = read_pair(a + k * ldx);
    const double2 odd = read_pair(a + (k + 4) * ldx);
    multiply_add(sum[0], even.x, even.y, static_cast<double>(b[k * ldl]));
    multiply_add(sum[1], odd.x, odd.y, static_cast<double>(b[(k + 4) * ldl]));
  }
  if (k < first) {  // only if kIb == 4
    const double2 rows = read_pair(a + k * ldx);
    multiply_add(sum[0], rows.x, rows.y, static_cast<double>(b[k * ldl]));
  }
  if (!holds) return;
  double value[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) value[e] = -(sum[0][e] + sum[1][e]);
  own[0] = static_cast<T>(value[0]);
  own[1] = static_cast<T>(value[2]);
  own[ldx] = static_cast<T>(value[1]);
  own[ldx + 1] = static_cast<T>(value[3]);
  const int row = strip_row + 2 * g - first;  // even, as kIb is
  if (row >= 0 && row < kIb) {
    double* to = block + row + 2 * t * kIb;
    to[0] = value[0];
    to[1] = value[2];
    to[kIb] = value[1];
    to[kIb + 1] = value[3];
  }
}

/// What a factorization found; the last warp knows.
struct BadPivot {
  int column = kSolve;  // kSolve: none
  double pivot = 0;
};

/// A block barrier of the `warps` warps that come to it.
__device__ inline void barrier(int warps) {
  asm volatile("bar.sync 1, %0;" ::"r"(warps * kWarp) : "memory");
}

/// Solves kIb columns of this warp's 16 rows with a diagonal block, one row a thread.
template <int kIb, class T>
__device__ inline void solve_strip(T* strip, int ld, int first, const Diagonal<kIb>& diagonal,
                                   int first_row) {
  const int row = lane() % kRowsPerWarp;
  T* own = strip + row + first * ld;
  double value[kIb];
#pragma unroll
  for (int j = 0; j < kIb; ++j) value[j] = static_cast<double>(own[j * ld]);
  diagonal.solve(value);
  __syncwarp();
  if (lane() < kRowsPerWarp && row >= first_row) {
#pragma unroll
    for (int j = 0; j < kIb; ++j) own[j * ld] = static_cast<T>(value[j]);
  }
}

/// Factors a panel of 16·kWarps rows and 64 columns in shared memory, whose first 64 rows are the
/// diagonal block: left-looking, kIb columns at a time. Every thread factors the kIb × kIb diagonal
/// block for itself, which costs less than handing columns around, and solves a row. Called by
/// kWarps warps. `scratch` holds two such blocks.
template <int kIb, int kWarps, class T>
__device__ inline BadPivot factor_columns(T* x, int ld, double* scratch) {
  const int strip_row = warp() * kRowsPerWarp;
  BadPivot bad;
  for (int first = 0; first < kSolve; first += kIb) {
    double* block = scratch + first / kIb % 2 * kIb * kIb;  // the other one may still be read
    const bool works = strip_row + kRowsPerWarp > first;    // the same in a warp
    if (works) eliminate<kIb>(x + strip_row, ld, x, ld, first, strip_row, block);
    barrier(kWarps);
    Diagonal<kIb> diagonal;
    diagonal.read(block, kIb);
    if (!diagonal.factor_pairs()) {
      double pivot = 0;
      diagonal.read(block, kIb);
      const int column = diagonal.factor(pivot);
      if (column < kIb && bad.column == kSolve) bad = {first + column, pivot};
    }
    if (works) solve_strip<kIb>(x + strip_row, ld, first, diagonal, first - strip_row);
    barrier(kWarps);
  }
  return bad;
}

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

  /// Of the block `offset` elements further.
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

/// Where nobody follows what is done while it is done.
struct NoProgress {
  __device__ void operator()(int) const {}
};

/// X ← X·L⁻ᵀ for 16 rows a warp and 64 columns, with the inverses that invert_blocks made; also to
/// the sink, if it is not NoSink. A warp calls progress(b) when it has block b of eight columns in
/// X. All on the tensor cores and in registers: what a thread has of a result is what it must give
/// as an operand. Rows of different warps have nothing to do with each other: no barrier.
template <class T, class Sink, class Progress>
__device__ inline void solve_columns(T* x, int ldx, const T* l, int ldl, const double* inverses,
                                     const Sink& sink, Progress&& progress) {
  constexpr int kBlocks = kSolve / 8;
  const StripBlock<T> own(x + warp() * kRowsPerWarp, ldx);
  const AcrossBlock<T> across(l, ldl);
  constexpr double kZero[4] = {};
  double value[kBlocks][4] = {};  // what is to be subtracted; then the result
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    double rest[4];
    own.read(rest, 8 * b * ldx);
    subtract(rest, value[b]);
    multiply_add(value[b], kZero, rest, read_pair(inverses + b * 64 + lane() * 2));
#pragma unroll
    for (int n = b + 1; n < kBlocks; ++n) {
      multiply_add(value[n], value[n], value[b], across.read(8 * n + 8 * b * ldl));
    }
    own.write(value[b], 8 * b * ldx);
    if constexpr (!std::is_same_v<Sink, NoSink>) sink.put(value[b], b);
    progress(b);
  }
}

/// The elements t and other_column(t) of row column_of(g) of L⁻¹, for the factored 8 × 8 block L.
template <class Value>
__device__ inline double2 inverse_row(const Diagonal<8, Value>& l) {
  const int row = column_of(lane() / 4);
  const int t = lane() % 4;
  Value w[8];
#pragma unroll
  for (int k = 7; k >= 0; --k) {
    Value sum = row == k ? Value{1} : Value{0};
#pragma unroll
    for (int i = 7; i > k; --i) sum -= w[i] * l.value[i][k];  // the newest last
    w[k] = sum * l.inverse[k];
  }
  const Value left = t < 2 ? (t == 0 ? w[0] : w[1]) : (t == 2 ? w[2] : w[3]);
  const Value right = t < 2 ? (t == 0 ? w[6] : w[7]) : (t == 2 ? w[4] : w[5]);
  return {static_cast<double>(left), static_cast<double>(right)};
}

/// What becomes of a block that factor_pairs() gives up.
struct SlowInverse {
  double2 row;  ///< as inverse_row()
  int column;   ///< the bad one; 8 if there is none
  double pivot;
};
template <class T>
__device__ __noinline__ SlowInverse invert_slowly(const T* block) {
  SlowInverse result{};
  Diagonal<8> diagonal;
  diagonal.read(block, 8);
  result.column = diagonal.factor(result.pivot);
  result.row = inverse_row(diagonal);
  return result;
}

/// Zero where the block of columns 8·block is above the diagonal, in this warp's strip of a
/// diagonal tile: there may be anything, NaN too.
__device__ inline void clear_above_diagonal(double (&value)[4], int block) {
  const int row = warp() * kRowsPerWarp + lane() / 4 * 2;
  const int t = lane() % 4;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int above = 8 * block + (e == 0 ? t : other_column(t)) - row;
    if (above > 0) value[e] = 0;
    if (above > 1) value[2 + e] = 0;
  }
}

/// The 8 × 8 block on the diagonal at `step`, column by column, from the strip that has it, of
/// which `value` is this thread's part.
template <class T>
__device__ inline void hand_out(T* block, const double (&value)[4], int step) {
  const int row = lane() / 4 * 2;
  if (row / 8 != step % 2) return;
  const int t = lane() % 4;
  T* to = block + row % 8;
  *reinterpret_cast<Pair<T>*>(to + t * 8) = first_column<T>(value);
  *reinterpret_cast<Pair<T>*>(to + other_column(t) * 8) = second_column<T>(value);
}

/// Barriers of factor_strips, two of each, for even and odd steps.
enum class StripBarrier : int { solved = 5, inverted = 7 };

/// Of `warps` warps; those that come wait, the leader only says that it was there.
__device__ inline void come(StripBarrier barrier, int step, int warps) {
  asm volatile("bar.sync %0, %1;" ::"r"(static_cast<int>(barrier) + step % 2), "r"(warps * kWarp)
               : "memory");
}
__device__ inline void come_and_go(StripBarrier barrier, int step, int warps) {
  asm volatile("bar.arrive %0, %1;" ::"r"(static_cast<int>(barrier) + step % 2), "r"(warps * kWarp)
               : "memory");
}

/// What the leaders of factor_strips have no time for: the results of the last blocks of columns of
/// this warp's strip go to the sink. The roots as the inverses have them: what products with those
/// have made of them is worse by the condition of the block.
template <class T>
__device__ inline void put_late(T* x, int ld, const double* inverses, const StripSink<T>& sink) {
  constexpr int kBlocks = kSolve / 8;
  __syncwarp();
  const int row = sink.strip * kRowsPerWarp + lane();
  if (row < kSolve && lane() < kRowsPerWarp) {
    x[row * (ld + 1)] = static_cast<T>(root_of(inverses, row));
  }
  __syncwarp();
  const StripBlock<T> own(x + sink.strip * kRowsPerWarp, ld);
#pragma unroll 1
  for (int step = max(min(2 * sink.strip, kBlocks) - 1, 0); step < min(2 * sink.strip + 2, kBlocks);
       ++step) {
    double value[4];
    own.read(value, 8 * step * ld);
    sink.put_lower(value, step);
  }
}

/// As factor_columns, but right-looking, with the rows of each warp in its registers, as in
/// solve_columns, and by one leader a step, the warp with the rows of the diagonal block: it
/// factors and inverts the block and waits for nobody, since its rows end there; the others follow
/// in its shadow and do the rest. They are at most a step behind: all have come to `solved` of a
/// step before the leader of the next but one is a leader. Results go to X and to the sink, the
/// inverses of the blocks on the diagonal to `inverses`, all behind no barrier; for the sink and
/// progress(step) see factor_panel. A bad pivot goes to
/// report(column, pivot). A warp leaves when its rows are done. The loop is not unrolled: code that
/// does not fit the instruction cache is fetched over again, at the mercy of the traffic of all
/// other blocks (measured: three times the time at n = 8192).
template <int kWarps, class T, class Sink, class Report, class Progress>
__device__ inline void factor_strips(T* x, int ld, double* scratch, double* inverses,
                                     const Sink& sink, Report&& report, Progress&& progress) {
  constexpr int kBlocks = kSolve / 8;
  const StripBlock<T> own(x + warp() * kRowsPerWarp, ld);
  const AcrossBlock<T> across(x, ld);
  double sum[kBlocks][4] = {};  // what is to be subtracted from block step + n
  T* block = reinterpret_cast<T*>(scratch);
  double* bad = scratch + 64;  // some pivot was
  if (threadIdx.x == 0) *bad = 0;
  double y[4] = {};  // the solved block
#pragma unroll 1
  for (int step = 0; step < kBlocks; ++step) {
    const int leader = step / 2;
    if (warp() < leader) break;
    const int warps = kWarps - leader;
    const int solved = 8 * (step - 1) * ld;
    double rest[4];
    own.read(rest, 8 * step * ld);
    double2 inverse;
    if (warp() == leader) {
      clear_above_diagonal(rest, step);
      if (step > 0) {
        __syncwarp();
        if (warps > 1) come_and_go(StripBarrier::solved, step, warps);
        multiply_add(sum[0], sum[1], y, across.read(8 * step + solved));
        if (step % 2 == 0) {
          multiply_add(sum[1], sum[2], y, across.read(8 * (step + 1) + solved));
        }
      }
      subtract(rest, sum[0]);
      hand_out(block, rest, step);
      __syncwarp();
      Diagonal<8, T> diagonal;
      diagonal.read(block, 8);
      const bool safe = diagonal.factor_pairs();
      inverse = inverse_row(diagonal);  // before anything branches: it mixes with what is before it
      if (!safe) {
        const SlowInverse slow = invert_slowly(block);
        if (slow.column < 8) {
          if (*bad == 0) report(8 * step + slow.column, slow.pivot);
          __syncwarp();
          if (lane() == 0) *bad = 1;
        }
        inverse = slow.row;
      }
      *reinterpret_cast<double2*>(inverses + step * 64 + lane() * 2) = inverse;
      if (warps > 1) come_and_go(StripBarrier::inverted, step, warps);
    } else {
      if (step > 0) {
        come(StripBarrier::solved, step, warps);
#pragma unroll
        for (int n = 0; n < kBlocks - 1; ++n) {
          if (step + n < kBlocks) {
            multiply_add(sum[n], sum[n + 1], y, across.read(8 * (step + n) + solved));
          }
        }
        if constexpr (!std::is_same_v<Sink, NoSink>) {
          sink.put_lower(y, step - 1);  // on nobody's way: the leader is factoring
        }
      }
      subtract(rest, sum[0]);
      come(StripBarrier::inverted, step, warps);
      inverse = read_pair(inverses + step * 64 + lane() * 2);
    }
    y[0] = y[1] = y[2] = y[3] = 0;
    multiply_add(y, y, rest, inverse);
    own.write(y, 8 * step * ld);
    progress(step);
  }
  if constexpr (!std::is_same_v<Sink, NoSink>) put_late(x, ld, inverses, sink);
}

/// Factors 64 columns of 16·kWarps rows, by kIb at a time: 4 from shared memory (factor_columns), 8
/// from registers (factor_strips). The result is in X and in the sink (a StripSink<T>, or NoSink:
/// then the diagonal of X is not to be used), a bad pivot went to report(column, pivot); inverses
/// is what invert_blocks makes, for the diagonal block. A warp has seen to its own rows. Each warp
/// with rows in or below the diagonal block `step` of eight columns calls progress(step) when it
/// has them, and that block's inverse, in shared memory. Ends behind no barrier.
template <int kIb, int kWarps, class T, class Sink, class Report, class Progress>
__device__ inline void factor_panel(T* x, int ld, double* scratch, double* inverses,
                                    const Sink& sink, Report&& report, Progress&& progress) {
  if constexpr (kIb == 8) {
    factor_strips<kWarps>(x, ld, scratch, inverses, sink, report, progress);
  } else {
    const BadPivot bad = factor_columns<kIb, kWarps>(x, ld, scratch);
    if (warp() == kWarps - 1 && bad.column < kSolve) report(bad.column, bad.pivot);
    if (warp() >= kWarps - 2) invert_blocks(inverses, x, ld, kSolve, kWarps - 2);
    if constexpr (!std::is_same_v<Sink, NoSink>) {
      const StripBlock<T> own(x + warp() * kRowsPerWarp, ld);
#pragma unroll 1
      for (int b = 0; b < kSolve / 8; ++b) {
        double value[4];
        own.read(value, 8 * b * ld);
        sink.put_lower(value, b);
      }
    }
    if constexpr (!std::is_same_v<std::decay_t<Progress>, NoProgress>) {
      barrier(kWarps);  // the inverses are there
      for (int step = 0; step < kSolve / 8 && step / 2 <= warp(); ++step) progress(step);
    }
  }
}

}  // namespace strata::tile
