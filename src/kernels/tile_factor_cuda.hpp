#pragma once
// What one thread block does with tiles, 3: factor and solve 64 columns in shared memory.
//
// Contract: as tile_copy_cuda.hpp. This is all latency and little arithmetic, and is done in fp64
// for both types.

#include "kernels/tile_product_cuda.hpp"

namespace strata::tile {

/// 1/√x to the last bit or two, for x > 1e-290: the hardware's approximation (20 bits) and one step
/// of third order. Twice as fast as rsqrt, on whose latency the factorization of a block depends.
__device__ inline double reciprocal_root(double x) {
  double y = 0;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double error = fma(-(x * y), y, 1.0);
  return fma(y * error, fma(0.375, error, 0.5), y);
}

/// Two neighbours, aligned to 2·sizeof(T).
__device__ inline double2 read_pair(const double* from) {
  return *reinterpret_cast<const double2*>(from);
}
__device__ inline double2 read_pair(const float* from) {
  const auto pair = *reinterpret_cast<const float2*>(from);
  return {static_cast<double>(pair.x), static_cast<double>(pair.y)};
}

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

/// The lower triangle of a kIb × kIb block, in registers of each thread.
template <int kIb>
struct Diagonal {
  double value[kIb][kIb];  // value[i][j], j <= i; L after `factor`
  double inverse[kIb];     // 1 / L_jj

  /// Every thread of a warp reads the same: no bank conflicts. `from` is aligned to 16 bytes.
  template <class T>
  __device__ void read(const T* from, int ld) {
#pragma unroll
    for (int j = 0; j < kIb; ++j) {
#pragma unroll
      for (int i = j / 2 * 2; i < kIb; i += 2) {
        const double2 pair = read_pair(from + i + j * ld);
        value[i][j] = pair.x;
        value[i + 1][j] = pair.y;
      }
    }
  }
  /// Two columns at a time: with d = p·q − a² for the pivots p, q and the element a between them,
  /// the second pivot is d / p, and the roots of p and d need not wait for each other. done(j) is
  /// called when column j is there. Returns false if some pivot is not positive or the products
  /// could leave the range of numbers: what is here then has no meaning.
  template <class Done>
  __device__ bool factor_pairs(Done&& done) {
    bool safe = true;
#pragma unroll
    for (int j = 0; j < kIb; j += 2) {
      const double p = value[j][j];
      const double a = value[j + 1][j];
      const double d = fma(p, value[j + 1][j + 1], -(a * a));
      safe = safe && p > 1e-140 && p < 1e140 && d > 1e-280 && d < 1e280;
      const double root = reciprocal_root(d);
      inverse[j] = reciprocal_root(p);
      inverse[j + 1] = p * inverse[j] * root;
      value[j][j] = p * inverse[j];
      value[j + 1][j] = a * inverse[j];
      value[j + 1][j + 1] = d * root * inverse[j];
#pragma unroll
      for (int i = j + 2; i < kIb; ++i) {
        value[i][j] *= inverse[j];
        value[i][j + 1] = (value[i][j + 1] - value[i][j] * value[j + 1][j]) * inverse[j + 1];
      }
#pragma unroll
      for (int c = j + 2; c < kIb; ++c) {
#pragma unroll
        for (int i = c; i < kIb; ++i) {
          value[i][c] -= value[i][j] * value[c][j];
          value[i][c] -= value[i][j + 1] * value[c][j + 1];
        }
      }
      done(j);
      done(j + 1);
    }
    return safe;
  }
  __device__ bool factor_pairs() {
    return factor_pairs([](int) {});
  }
  /// Column by column. Returns the first column whose pivot is not positive and finite, and that
  /// pivot; kIb if there is none. From it on the columns of L and its inverse are zero, so that
  /// those before it stay what they are.
  __device__ int factor(double& bad_pivot) {
    int bad = kIb;
#pragma unroll
    for (int j = 0; j < kIb; ++j) {
      const double pivot = value[j][j];
      if (bad == kIb && (!(pivot > 0) || isinf(pivot))) {
        bad = j;
        bad_pivot = pivot;
      }
      inverse[j] = bad < kIb ? 0 : rsqrt(pivot);
      value[j][j] = bad < kIb ? 0 : sqrt(pivot);
#pragma unroll
      for (int i = j + 1; i < kIb; ++i) value[i][j] = bad < kIb ? 0 : value[i][j] * inverse[j];
#pragma unroll
      for (int c = j + 1; c < kIb; ++c) {
#pragma unroll
        for (int i = c; i < kIb; ++i) value[i][c] -= value[i][j] * value[c][j];
      }
    }
    return bad;
  }
  /// x ← x·L⁻ᵀ for one row.
  __device__ void solve(double (&x)[kIb]) const {
#pragma unroll
    for (int j = 0; j < kIb; ++j) {
      x[j] *= inverse[j];
#pragma unroll
      for (int c = j + 1; c < kIb; ++c) x[c] -= x[j] * value[c][j];
    }
  }
};

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

/// Elements of the inverses that invert_blocks makes.
inline constexpr int kInverses = kSolve * 8;

/// inverses ← L_bb⁻¹ of the eight 8 × 8 blocks on the diagonal of L (64 × 64, in shared memory; a
/// diagonal element past `count` counts as 1), row by row. Called by the two warps from first_warp.
template <class T>
__device__ inline void invert_blocks(double* inverses, const T* l, int ldl, int count,
                                     int first_warp) {
  const int c = static_cast<int>(threadIdx.x) - first_warp * kWarp;
  const int m = c % 8;  // this thread's column of the inverse
  const T* block = l + (c - m) * (ldl + 1);
  const double own = c < count ? 1.0 / static_cast<double>(block[m + m * ldl]) : 1.0;
  double x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    double sum = i == m ? 1.0 : 0.0;
#pragma unroll
    for (int k = 0; k < i; ++k) sum -= static_cast<double>(block[i + k * ldl]) * x[k];
    x[i] = sum * __shfl_sync(0xffffffffu, own, i, 8);
    inverses[(c - m) * 8 + i * 8 + m] = x[i];
  }
}

/// The 16 rows of this warp in registers: value[b] is block b, the elements (2g, 2t), (2g, 2t + 1),
/// (2g + 1, 2t), (2g + 1, 2t + 1) of its columns from 8b.
template <int kBlocks, class T>
__device__ inline void read_strip(double (&value)[kBlocks][4], const T* x, int ld) {
  const T* from = x + warp() * kRowsPerWarp + lane() / 4 * 2 + lane() % 4 * 2 * ld;
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    const double2 left = read_pair(from + 8 * b * ld);
    const double2 right = read_pair(from + (8 * b + 1) * ld);
    value[b][0] = left.x;
    value[b][1] = right.x;
    value[b][2] = left.y;
    value[b][3] = right.y;
  }
}

/// X·L⁻ᵀ for 16 rows a warp and 64 columns, with the inverses that invert_blocks made. All on the
/// tensor cores and in registers: what a thread has of a result, columns 2t and 2t + 1, is what it
/// must give as an operand if the columns of the operand are taken in the order 2t + s. Rows of
/// different warps have nothing to do with each other: no barrier.
/// put(row, col, even, odd) receives the elements (row, col) and (row + 1, col), row even; a thread
/// has read all that it puts before it puts any.
template <class T, class Put>
__device__ inline void solve_columns(const T* x, int ldx, const T* l, int ldl,
                                     const double* inverses, Put&& put) {
  const int g = lane() / 4;
  const int t = lane() % 4;
  const int row = warp() * kRowsPerWarp + 2 * g;
  double value[8][4];
  read_strip(value, x, ldx);
#pragma unroll
  for (int b = 0; b < 8; ++b) {
    const double2 inverse = read_pair(inverses + b * 64 + g * 8 + 2 * t);
    double y[4] = {};
    multiply_add(y, value[b][0], value[b][2], inverse.x);
    multiply_add(y, value[b][1], value[b][3], inverse.y);
#pragma unroll
    for (int n = b + 1; n < 8; ++n) {
      const T* across = l + 8 * n + g + (8 * b + 2 * t) * ldl;
      multiply_add(value[n], -y[0], -y[2], static_cast<double>(across[0]));
      multiply_add(value[n], -y[1], -y[3], static_cast<double>(across[ldl]));
    }
    put(row, 8 * b + 2 * t, static_cast<T>(y[0]), static_cast<T>(y[2]));
    put(row, 8 * b + 2 * t + 1, static_cast<T>(y[1]), static_cast<T>(y[3]));
  }
}

/// factor() out of line, for blocks that factor_pairs() gives up.
template <int kIb>
__device__ __noinline__ int factor_slowly(Diagonal<kIb>& diagonal, const double* block,
                                          double& bad_pivot) {
  diagonal.read(block, kIb);
  return diagonal.factor(bad_pivot);
}

/// The elements 2t and 2t + 1 of row g of L⁻¹, for the factored 8 × 8 block L.
__device__ inline double2 inverse_row(const Diagonal<8>& l) {
  const int g = lane() / 4;
  const int t = lane() % 4;
  double w[8];
#pragma unroll
  for (int k = 7; k >= 0; --k) {
    double sum = g == k ? 1.0 : 0.0;
#pragma unroll
    for (int i = 7; i > k; --i) sum -= w[i] * l.value[i][k];  // the newest last
    w[k] = sum * l.inverse[k];
  }
  const double even = t < 2 ? (t == 0 ? w[0] : w[2]) : (t == 2 ? w[4] : w[6]);
  const double odd = t < 2 ? (t == 0 ? w[1] : w[3]) : (t == 2 ? w[5] : w[7]);
  return {even, odd};
}

/// A strip as read_strip has it, of a diagonal tile: above the diagonal there may be anything, NaN
/// too.
template <int kBlocks>
__device__ inline void clear_above_diagonal(double (&value)[kBlocks][4]) {
  const int row = warp() * kRowsPerWarp + lane() / 4 * 2;
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    const int above = 8 * b + lane() % 4 * 2 - row;
    if (above > 0) value[b][0] = 0;
    if (above > -1) value[b][1] = 0;
    if (above > 1) value[b][2] = 0;
    if (above > 0) value[b][3] = 0;
  }
}

/// As factor_columns, but right-looking, with the rows of each warp in its registers, as in
/// solve_columns. Results go to X and to put(row, col, even, odd), the inverses of the blocks on
/// the diagonal to `inverses`, all behind no barrier; a bad pivot goes to report(column, pivot), by
/// the warp with its row. A warp leaves when its rows are done. The loop is not unrolled: code that
/// does not fit the instruction cache is fetched over again, at the mercy of the traffic of all
/// other blocks (measured: three times the time at n = 8192).
template <int kWarps, class T, class Put, class Report>
__device__ inline void factor_strips(T* x, int ld, double* scratch, double* inverses, Put&& put,
                                     Report&& report) {
  const int g = lane() / 4;
  const int t = lane() % 4;
  const int row = warp() * kRowsPerWarp + 2 * g;
  constexpr int kBlocks = kSolve / 8;
  double value[kBlocks][4];  // of block first / 8 + n
  read_strip(value, x, ld);
  clear_above_diagonal(value);
  bool seen_bad = false;
  double y[4] = {};  // the solved block
#pragma unroll 1
  for (int first = 0; first < kSolve; first += 8) {
    const int leader = first / kRowsPerWarp;  // its rows are the diagonal block
    if (warp() < leader) break;
    double* block = scratch + first % 16 * 8;  // the other one may still be read
    if (warp() == leader && 2 * g / 8 == first / 8 % 2) {
      double* to = block + (2 * g) % 8 + 2 * t * 8;
      *reinterpret_cast<double2*>(to) = {value[0][0], value[0][2]};
      *reinterpret_cast<double2*>(to + 8) = {value[0][1], value[0][3]};
    }
    barrier(kWarps - leader);
    Diagonal<8> diagonal;
    diagonal.read(block, 8);
    if (first > 0) {  // what the solved block takes from the others, which move up
      const T* solved = x + first + g + (first - 8 + 2 * t) * ld;
#pragma unroll
      for (int n = 0; n < kBlocks - 1; ++n) {
        if (first + 8 * n < kSolve && (n > 0 || warp() != leader)) {
          multiply_add(value[n], value[n + 1], -y[0], -y[2], static_cast<double>(solved[8 * n]));
          multiply_add(value[n], -y[1], -y[3], static_cast<double>(solved[8 * n + ld]));
        }
      }
    }
    if (!diagonal.factor_pairs()) {
      Diagonal<8> slow;  // of its own: whose address is taken lies in memory
      double pivot = 0;
      const int column = factor_slowly(slow, block, pivot);
      // All that are left see this block; the report of an earlier one may still be under way.
      if (column < 8 && warp() == leader && !seen_bad) report(first + column, pivot);
      seen_bad = seen_bad || column < 8;
      diagonal = slow;
    }
    const double2 inverse = inverse_row(diagonal);
    if (warp() == leader) {
      *reinterpret_cast<double2*>(inverses + first * 8 + lane() * 2) = inverse;
    }
    y[0] = y[1] = y[2] = y[3] = 0;
    multiply_add(y, value[0][0], value[0][2], inverse.x);
    multiply_add(y, value[0][1], value[0][3], inverse.y);
    const Pair<T> left{static_cast<T>(y[0]), static_cast<T>(y[2])};
    const Pair<T> right{static_cast<T>(y[1]), static_cast<T>(y[3])};
    T* at = x + row + (first + 2 * t) * ld;
    *reinterpret_cast<Pair<T>*>(at) = left;
    *reinterpret_cast<Pair<T>*>(at + ld) = right;
    if (first + 8 < kSolve && warp() == (first + 8) / kRowsPerWarp) {
      __syncwarp();  // the next leader has all that the next diagonal block needs
      const T* solved = x + first + 8 + g + (first + 2 * t) * ld;
      multiply_add(value[0], value[1], -y[0], -y[2], static_cast<double>(solved[0]));
      multiply_add(value[0], -y[1], -y[3], static_cast<double>(solved[ld]));
    }
    put(row, first + 2 * t, left.x, left.y);
    put(row, first + 2 * t + 1, right.x, right.y);
  }
}

}  // namespace strata::tile
