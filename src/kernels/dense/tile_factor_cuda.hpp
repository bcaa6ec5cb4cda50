#pragma once
// What one thread block does with tiles, 5: factor 64 columns in shared memory.
//
// Contract: as tile_copy_cuda.hpp. Products are made in fp64 for both types, on the tensor cores,
// but for those inside of a block of 16 × 16 on the diagonal, which are made in T.

#include "kernels/dense/tile_strip_cuda.hpp"

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

/// What becomes of a block that factor_pairs() gives up.
struct SlowFactor {
  double row[8];
  int column;  ///< the bad one; 8 if there is none
  double pivot;
};
template <class T>
__device__ __noinline__ SlowFactor factor_slowly(const T* block, const T* row) {
  SlowFactor result{};
  Diagonal<8> diagonal;
  diagonal.read(block, 8);
  result.column = diagonal.factor(result.pivot);
#pragma unroll
  for (int k = 0; k < 8; ++k) result.row[k] = static_cast<double>(row[k]);
  diagonal.solve(result.row);
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

/// Barriers of factor_strips, two of each, for even and odd steps.
enum class StripBarrier : int { solved = 5, inverted = 7 };

/// A barrier of `warps` warps: come() waits for all, come_and_go(), the leader's, only arrives.
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
__device__ inline void put_late(T* x, int ld, const T* inverses, const StripSink<T>& sink) {
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

/// The 16 × 16 block on the diagonal in scratch memory, as the leader of factor_strips treats it:
/// three blocks of 8 × 8. The first 8 of each 16 lanes have a row of the block below each, the
/// others one of the unit matrix, which becomes a column of the inverse.
template <class T>
struct Corner {
  static constexpr int kLdBelow = sizeof(T) == 8 ? 10 : 12;  // so that all rows can be read at once
  static constexpr int kElements = 2 * 64 + 8 * kLdBelow;

  T* at;

  [[nodiscard]] __device__ T* first() const { return at; }        ///< column by column
  [[nodiscard]] __device__ T* second() const { return at + 64; }  ///< column by column
  [[nodiscard]] __device__ T* below() const { return at + 128; }  ///< row by row

  /// From what this thread has of the first block of columns of its strip, and of what is to be
  /// subtracted from the second.
  __device__ void put(const double (&left)[4], const double (&right)[4]) const {
    const int t = lane() % 4;
    const int u = other_column(t);
    const int row = lane() / 4 * 2 % 8;
    const bool upper = lane() < 16;  // half of the strip
    T* to = upper ? first() + row + 8 * t : below() + row * kLdBelow + t;
    const int next_row = upper ? 1 : kLdBelow;
    const int other = upper ? 8 * (u - t) : u - t;
    to[0] = static_cast<T>(left[0]);
    to[other] = static_cast<T>(left[1]);
    to[next_row] = static_cast<T>(left[2]);
    to[next_row + other] = static_cast<T>(left[3]);
    const Pair<T> left_of_second = first_column<T>(right);
    const Pair<T> right_of_second = second_column<T>(right);
    if (upper) return;
    *reinterpret_cast<Pair<T>*>(second() + row + 8 * t) = left_of_second;
    *reinterpret_cast<Pair<T>*>(second() + row + 8 * u) = right_of_second;
  }
  __device__ void read_row(T (&row)[8]) const {
#pragma unroll
    for (int k = 0; k < 8; k += 2) {
      const auto pair = read_both(below() + lane() % 8 * kLdBelow + k);
      row[k] = pair.x;
      row[k + 1] = pair.y;
    }
    if (lane() / 8 % 2 == 1) unit_row(row);
  }
  static __device__ void unit_row(T (&row)[8]) {
#pragma unroll
    for (int k = 0; k < 8; ++k) row[k] = lane() % 8 == k ? T{1} : T{0};
  }
  /// The second block ← A, from `a` on, less what is there and the product of the block below with
  /// itself: two elements a thread. What is subtracted is added up first, see subtract().
  __device__ void update_second(const T* a, int lda) const {
    const int r = lane() % 8;
    const int c = lane() / 8;
    T rest[2];
    T sum[2][2] = {};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      rest[h] = a[r + (c + 4 * h) * lda];
      sum[h][0] = second()[r + 8 * (c + 4 * h)];
    }
#pragma unroll
    for (int k = 0; k < 8; k += 2) {
      const auto own = read_both(below() + r * kLdBelow + k);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const auto other = read_both(below() + (c + 4 * h) * kLdBelow + k);
        sum[h][0] += own.x * other.x;
        sum[h][1] += own.y * other.y;
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) second()[r + 8 * (c + 4 * h)] = rest[h] - (sum[h][0] + sum[h][1]);
  }
};

/// Elements of double that factor_panel needs beside the panel: a Corner, and whether a pivot was
/// bad.
inline constexpr int kFactorScratch = Corner<double>::kElements + 2;

/// Factors a block of the corner, and solves this lane's row with it.
template <class T, class Report>
__device__ __forceinline__ void factor_block(const T* block, T (&row)[8], double* bad, int column,
                                             Report&& report) {
  Diagonal<8, T> diagonal;
  diagonal.read(block, 8);
  T given[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) given[k] = row[k];
  if (diagonal.factor_pairs(row)) return;
  const SlowFactor slow = factor_slowly(block, given);
  if (slow.column < 8) {
    if (*bad == 0) report(column + slow.column, slow.pivot);
    __syncwarp();
    if (lane() == 0) *bad = 1;
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) row[k] = static_cast<T>(slow.row[k]);
}

/// The first block has been factored and this lane's row solved with it. The first 8 lanes put the
/// block below to the corner, the next the inverse, the next the block below to the strip, all by
/// the same instructions.
template <class T>
__device__ inline void put_rows(const T (&row)[8], const Corner<T>& corner, T* inverse, T* strip,
                                int ld) {
  const int n = lane() % 8;
  const int group = lane() / 8;
  T* to = group == 0 ? corner.below() + n * Corner<T>::kLdBelow
                     : (group == 1 ? inverse + place_in_inverse(0, n) : strip + 8 + n);
  const int step = group == 0 ? 1 : ld;
  if (group == 3) return;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    to[group == 1 ? place_in_inverse(k, 0) - place_in_inverse(0, 0) : k * step] = row[k];
  }
}

/// What the leader of factor_strips does: its block of 16 × 16 on the diagonal, from column
/// 8·step on. This thread has its part of the first block of columns in `left`, and of what is to
/// be subtracted from the second, which is still A in the leader's `strip`, in `right`; both are
/// used up. Calls handed() as soon as there is time for something else.
template <class T, class Report, class Handed>
__device__ __forceinline__ void lead(T* strip, int ld, double* scratch, T* inverses,
                                     double (&left)[4], double (&right)[4], int step, int warps,
                                     Report&& report, Handed&& handed) {
  const Corner<T> corner{reinterpret_cast<T*>(scratch)};
  double* bad = scratch + Corner<double>::kElements;
  T* inverse = inverses + step * 64;
  clear_above_diagonal(left, step);
  corner.put(left, right);
  __syncwarp();
  handed();
  T row[8];
  corner.read_row(row);
  factor_block(corner.first(), row, bad, 8 * step, report);
  __syncwarp();
  put_rows(row, corner, inverse, strip + 8 * step * ld, ld);
  __syncwarp();
  corner.update_second(strip + 8 + 8 * (step + 1) * ld, ld);
  __syncwarp();
  if (warps > 1) {
    come_and_go(StripBarrier::inverted, step, warps);
    come_and_go(StripBarrier::solved, step + 1, warps);
  }
  // As rows 8 … 15 of a block of columns; what it gives the rows before has no meaning. Now: behind
  // the last barrier it belongs to the next leader.
  StripBlock<T>(corner.second() - 8, 8).read(right, 0);
  corner.unit_row(row);
  factor_block(corner.second(), row, bad, 8 * step + 8, report);
  if (lane() < 8) {
#pragma unroll
    for (int k = 0; k < 8; ++k) inverse[64 + place_in_inverse(k, lane())] = row[k];
  }
  __syncwarp();
  if (warps > 1) come_and_go(StripBarrier::inverted, step + 1, warps);
  // The roots of the first rows and of the last ones, by products with the inverses.
  const StripBlock<T> own(strip, ld);
  clear_above_diagonal(right, step + 1);
  double y[4] = {};
  double z[4] = {};
  multiply_add(y, y, left, read_pair(inverse + lane() * 2));
  multiply_add(z, z, right, read_pair(inverse + 64 + lane() * 2));
  lane() < 16 ? own.write(y, 8 * step * ld) : own.write(z, 8 * (step + 1) * ld);
}

/// As factor_columns, but right-looking, with the rows of each warp in its registers, as in
/// solve_columns. Every two steps of eight columns have one leader, the warp with the rows of the
/// two blocks on the diagonal. It factors and inverts them and waits for no other warp, since its
/// rows end there; the others follow in its shadow and do the rest. They are at most two steps
/// behind: the next leader has followed this one to its end. Results go to X and to the sink, the
/// inverses of the blocks on the diagonal to `inverses`, all behind no barrier; for the sink and
/// progress(pair) see factor_panel. A bad pivot goes to report(column, pivot). A warp leaves when
/// its rows are done. The loop is not unrolled: code that does not fit the instruction cache is
/// fetched over again, at the mercy of the traffic of all other blocks (measured: three times the
/// time at n = 8192). all_warps of four call it for the first 16·all_warps rows and columns of a
/// tile.
template <class T, class Sink, class Report, class Progress>
__device__ inline void factor_strips(T* x, int ld, double* scratch, T* inverses, const Sink& sink,
                                     Report&& report, Progress&& progress, int all_warps) {
  constexpr int kBlocks = kSolve / 8;
  T* strip = x + warp() * kRowsPerWarp;
  const StripBlock<T> own(strip, ld);
  const AcrossBlock<T> across(x, ld);
  const int end = min(2 * warp() + 2, kBlocks);  // of the blocks of columns with rows of this warp
  double sum[kBlocks][4] = {};                   // what is to be subtracted from block step + n
  if (threadIdx.x == 0) scratch[Corner<double>::kElements] = 0;
  double y[4] = {};  // the solved block
  double rest[4];
  own.read(rest, 0);
#pragma unroll 1
  for (int step = 0; step < end; ++step) {
    const int leader = step / 2;
    const int warps = all_warps - leader;
    const int solved = 8 * (step - 1) * ld;
    if (warp() == leader) {
      if (step > 0) {
        __syncwarp();
        if (warps > 1) come_and_go(StripBarrier::solved, step, warps);
        multiply_add(sum[0], sum[1], y, across.read(8 * step + solved));
        multiply_add(sum[1], sum[2], y, across.read(8 * (step + 1) + solved));
      }
      subtract(rest, sum[0]);
      lead(strip, ld, scratch, inverses, rest, sum[1], step, warps, report, [&] {
        if (step > 0) progress(leader - 1);
      });
      progress(leader);
      break;
    }
    if (step > 0) {
      come(StripBarrier::solved, step, warps);
#pragma unroll
      for (int n = 0; n < kBlocks - 1; ++n) {
        if (step + n < end) {
          multiply_add(sum[n], sum[n + 1], y, across.read(8 * (step + n) + solved));
        }
      }
      if constexpr (!std::is_same_v<Sink, NoSink>) {
        sink.put_lower(y, step - 1);  // delays no warp: the leader is factoring
      }
    }
    subtract(rest, sum[0]);
    double next[4] = {};
    if (step + 1 < end) own.read(next, 8 * (step + 1) * ld);
    come(StripBarrier::inverted, step, warps);
    y[0] = y[1] = y[2] = y[3] = 0;
    multiply_add(y, y, rest, read_pair(inverses + step * 64 + lane() * 2));
    own.write(y, 8 * step * ld);
    const bool leads_next = step + 1 == 2 * warp() && step + 1 < kBlocks;  // and has no time
    if (step % 2 == 1 && !leads_next) progress(leader);
#pragma unroll
    for (int e = 0; e < 4; ++e) rest[e] = next[e];
  }
  if constexpr (!std::is_same_v<Sink, NoSink>) put_late(x, ld, inverses, sink);
}

/// Factors 64 columns of 16·kWarps rows, by kIb at a time: 4 from shared memory (factor_columns), 8
/// from registers (factor_strips). The result is in X and in the sink (a StripSink<T>, or NoSink:
/// then the diagonal of X is not to be used), a bad pivot went to report(column, pivot); inverses
/// is what invert_blocks makes, for the diagonal block. A warp has seen to its own rows. Each warp
/// with rows in or below 16 columns, number `pair` of four, calls progress(pair) when it has them,
/// and the inverses of their two blocks, in shared memory. Ends behind no barrier.
template <int kIb, int kWarps, class T, class Sink, class Report, class Progress>
__device__ inline void factor_panel(T* x, int ld, double* scratch, T* inverses, const Sink& sink,
                                    Report&& report, Progress&& progress) {
  if constexpr (kIb == 8) {
    factor_strips(x, ld, scratch, inverses, sink, report, progress, kWarps);
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
      for (int pair = 0; pair < kSolve / 16 && pair <= warp(); ++pair) progress(pair);
    }
  }
}

}  // namespace strata::tile
