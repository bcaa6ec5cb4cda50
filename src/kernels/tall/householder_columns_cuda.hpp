#pragma once
// Columns of a panel in the registers of a warp. Included by .cu files only.
//
// Method: thread l holds rows l, l + 32, … of all columns that a warp has, so that a product of
// columns is the lane of the contract. The sums over lanes of all columns are added together: in
// each of the five rounds a thread hands over half of what it has and keeps the other half, and in
// the end a thread has the sum of one column.

#include "kernels/tall/householder_parts_cuda.hpp"

namespace strata::householder_cuda {

/// The sums over lanes of M numbers, lane_of_sum<M>(k) with the k-th.
template <int Half, int M>
__device__ double sums_of_lanes(const double (&s)[M]) {
  constexpr int kKept = (M + 1) / 2;
  const bool upper = (lane() & Half) != 0;
  double kept[kKept];
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const bool paired = i + kKept < M;
    const double low = s[i];
    const double high = paired ? s[i + kKept] : low;
    kept[i] =
        rounded_sum(upper ? high : low, __shfl_xor_sync(0xffffffffU, upper ? low : high, Half));
  }
  if constexpr (Half > 1) {
    return sums_of_lanes<Half / 2>(kept);
  } else {
    return kept[0];
  }
}
template <int M>
[[nodiscard]] __device__ constexpr int lane_of_sum(int k) {
  int at = 0;
  int count = M;
  for (int half = kWarpSize / 2; half > 0; half /= 2) {
    const int kept = (count + 1) / 2;
    if (k >= kept) {
      at += half;
      k -= kept;
    }
    count = kept;
  }
  return at;
}

/// Whether the i-th plane of 32 rows of a column may have rows above the current one of N.
template <int N>
[[nodiscard]] __device__ constexpr bool may_be_above(int i) {
  return i * kWarpSize < N;
}
/// Row j < N of a column, for all threads.
template <int N, int K>
__device__ double row_of(const double (&x)[K], int j) {
  double plane = x[0];
#pragma unroll
  for (int i = 1; i < K; ++i) {
    if (may_be_above<N>(i) && j >= i * kWarpSize) plane = x[i];
  }
  return __shfl_sync(0xffffffffU, plane, j % kWarpSize);
}

/// v ← the reflection of a column x whose current row is j < N.
template <int N, int K>
__device__ Reflection reflect(const double (&x)[K], int j, double (&v)[K]) {
  unsigned high = 0;
#pragma unroll
  for (int i = 0; i < K; ++i) {
    if (!may_be_above<N>(i) || lane() + i * kWarpSize >= j) high = max(high, high_word(x[i]));
  }
  const Scaling scaling = scaling_of(largest_field(high));
  double sigma = 0;
#pragma unroll
  for (int i = 0; i < K; ++i) {
    v[i] = rounded_product(x[i], scaling.down);
    if (!may_be_above<N>(i) || lane() + i * kWarpSize > j) sigma = fused(v[i], v[i], sigma);
  }
  sigma = sum_of_lanes(sigma);
  const double above = row_of<N>(x, j);
  const Reflection found =
      reflection_of(above, rounded_product(above, scaling.down), sigma, scaling.up);
#pragma unroll
  for (int i = 0; i < K; ++i) {
    const int r = lane() + i * kWarpSize;
    v[i] = rounded_product(v[i], found.scale);
    if (may_be_above<N>(i) && r <= j) v[i] = r == j ? 1 : 0;
  }
  return found;
}

/// Column k − Shift ← what the reflection makes of column k, for columns Shift … Live − 1.
template <int Live, int Shift, int K, int N>
__device__ void eliminate(double (&a)[N][K], const double (&v)[K], double tau) {
  constexpr int kCount = Live - Shift;
  if constexpr (kCount > 0) {
    double s[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      s[k] = 0;
#pragma unroll
      for (int i = 0; i < K; ++i) s[k] = fused(v[i], a[k + Shift][i], s[k]);
    }
    const double minus = -rounded_product(tau, sums_of_lanes<kWarpSize / 2>(s));
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const double t = __shfl_sync(0xffffffffU, minus, lane_of_sum<kCount>(k));
#pragma unroll
      for (int i = 0; i < K; ++i) a[k][i] = fused(t, v[i], a[k + Shift][i]);
    }
  }
}

}  // namespace strata::householder_cuda
