#pragma once
// What one thread block does with tiles, 3: factor and invert 8 × 8 blocks on the diagonal.
//
// Contract: as tile_copy_cuda.hpp. This is all latency and little arithmetic. It is done in the
// matrix's own precision, as fp32 has half the latency.

#include "kernels/dense/tile_product_cuda.hpp"

namespace strata::tile {

/// 1/√x to the last bit or two, for x > 1e-290: the hardware's approximation (20 bits) and one step
/// of third order. Twice as fast as rsqrt, on whose latency the factorization of a block depends.
__device__ inline double reciprocal_root(double x) {
  double y = 0;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double error = fma(-(x * y), y, 1.0);
  return fma(y * error, fma(0.375, error, 0.5), y);
}

/// In fp32 it has 22 bits, and one step of second order does.
__device__ inline float reciprocal_root(float x) {
  float y = 0;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  const float error = fmaf(-(x * y), y, 1.0F);
  return fmaf(y * error, 0.5F, y);
}

/// 1/x to the last bit or two, for x whose reciprocal is a normal number; as reciprocal_root.
__device__ inline double reciprocal(double x) {
  double y = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double error = fma(-x, y, 1.0);
  return fma(y * error, 1.0 + error, y);
}

/// kLow <= x < kHigh, powers of two by their exponents; false for NaN. No comparison of doubles,
/// which would stand in line with the arithmetic.
template <int kLow, int kHigh>
__device__ inline bool between_powers(double x) {
  constexpr unsigned kFrom = static_cast<unsigned>(kLow + 1023) << 20;
  constexpr unsigned kTo = static_cast<unsigned>(kHigh + 1023) << 20;
  return static_cast<unsigned>(__double2hiint(x)) - kFrom < kTo - kFrom;
}
template <int kLow, int kHigh>
__device__ inline bool between_powers(float x) {
  constexpr unsigned kFrom = static_cast<unsigned>(kLow + 127) << 23;
  constexpr unsigned kTo = static_cast<unsigned>(kHigh + 127) << 23;
  return __float_as_uint(x) - kFrom < kTo - kFrom;
}

/// Two neighbours, aligned to 2·sizeof(T).
__device__ inline double2 read_pair(const double* from) {
  return *reinterpret_cast<const double2*>(from);
}
__device__ inline double2 read_pair(const float* from) {
  const auto pair = *reinterpret_cast<const float2*>(from);
  return {static_cast<double>(pair.x), static_cast<double>(pair.y)};
}

/// The lower triangle of a kIb × kIb block, in registers of each thread.
template <int kIb, class Value = double>
struct Diagonal {
  Value value[kIb][kIb];  // value[i][j], j <= i; L after `factor`
  Value inverse[kIb];     // 1 / L_jj

  /// Every thread of a warp reads the same: no bank conflicts. `from` is aligned to 2·sizeof(T).
  template <class T>
  __device__ void read(const T* from, int ld) {
#pragma unroll
    for (int j = 0; j < kIb; ++j) {
#pragma unroll
      for (int i = j / 2 * 2; i < kIb; i += 2) {
        const auto pair = *reinterpret_cast<const Pair<T>*>(from + i + j * ld);
        value[i][j] = static_cast<Value>(pair.x);
        value[i + 1][j] = static_cast<Value>(pair.y);
      }
    }
  }
  /// Two columns at a time: with d = p·q − a² for the pivots p, q and the element a between them,
  /// the second pivot is d / p, and the roots of p and d need not wait for each other. Returns
  /// false if some pivot is not positive or the products could leave the range of numbers: what is
  /// here then has no meaning.
  __device__ bool factor_pairs() {
    Value row[kIb] = {};
    return factor_pairs(row);
  }
  /// And row ← row·L⁻ᵀ, in the shadow of the roots.
  __device__ bool factor_pairs(Value (&row)[kIb]) {
    constexpr int kRange = sizeof(Value) == 8 ? 464 : 56;  // of exponents
    bool safe = true;
#pragma unroll
    for (int j = 0; j < kIb; j += 2) {
      const Value p = value[j][j];
      const Value a = value[j + 1][j];
      const Value d = fma(p, value[j + 1][j + 1], -(a * a));
      // No && here: a branch would keep what is on its two sides from being mixed.
      safe = safe & between_powers<-kRange, kRange>(p) & between_powers<-2 * kRange, 2 * kRange>(d);
      const Value root = reciprocal_root(d);
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
      row[j] *= inverse[j];
      row[j + 1] = (row[j + 1] - row[j] * value[j + 1][j]) * inverse[j + 1];
#pragma unroll
      for (int c = j + 2; c < kIb; ++c) {
#pragma unroll
        for (int i = c; i < kIb; ++i) {
          value[i][c] -= value[i][j] * value[c][j];
          value[i][c] -= value[i][j + 1] * value[c][j + 1];
        }
        row[c] -= row[j] * value[c][j];
        row[c] -= row[j + 1] * value[c][j + 1];
      }
    }
    return safe;
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

/// Elements of the inverses that invert_blocks makes.
inline constexpr int kInverses = kSolve * 8;

/// Element (row, col) of an 8 × 8 inverse lies where the lane that needs it as an operand finds its
/// two side by side.
__device__ inline int place_in_inverse(int row, int col) {
  const int g = row < 4 ? 2 * row : 2 * ((row - 4) ^ 2) + 1;  // column_of(g) is row
  const int t = col < 4 ? col : (col - 4) ^ 2;                // other_column(t) is col
  return (4 * g + t) * 2 + col / 4;
}

/// inverses ← L_bb⁻¹ of the eight 8 × 8 blocks on the diagonal of L (64 × 64, in shared memory; a
/// diagonal element past `count` counts as 1), one after the other, each in the order of
/// place_in_inverse. Called by the two warps from first_warp.
template <class T>
__device__ inline void invert_blocks(T* inverses, const T* l, int ldl, int count, int first_warp) {
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
    inverses[(c - m) * 8 + place_in_inverse(i, m)] = static_cast<T>(x[i]);
  }
}

/// Element (row, row) of L to the precision of the inverses, 0 where a pivot was bad.
template <class T>
__device__ inline double root_of(const T* inverses, int row) {
  const auto inverse =
      static_cast<double>(inverses[row / 8 * 64 + place_in_inverse(row % 8, row % 8)]);
  return inverse > 0 ? reciprocal(inverse) : 0;
}

}  // namespace strata::tile
