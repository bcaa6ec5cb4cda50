#pragma once
// Arithmetic of real and complex numbers in the LU kernels of the GPU, and rows of them in shared
// memory.
//
// Contract: T is double or float, or std::complex of one of them. Only for *_cuda.cu.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "scalar/complex.hpp"

namespace strata::lu_cuda {

/// x ← x − a·b, each product fused with its sum.
template <class T>
__device__ __forceinline__ void subtract_product(T& x, const T& a, const T& b) {
  if constexpr (is_complex_v<T>) {
    const auto re = fma(a.imag(), b.imag(), fma(-a.real(), b.real(), x.real()));
    const auto im = fma(-a.imag(), b.real(), fma(-a.real(), b.imag(), x.imag()));
    x = T(re, im);
  } else {
    x = fma(-a, b, x);
  }
}

/// Products and sums that are rounded one by one, as the host's.
[[nodiscard]] __device__ __forceinline__ double product(double a, double b) {
  return __dmul_rn(a, b);
}
[[nodiscard]] __device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
[[nodiscard]] __device__ __forceinline__ double sum(double a, double b) { return __dadd_rn(a, b); }
[[nodiscard]] __device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }

/// Division by y, as DivisionBy (scalar/complex.hpp) does it.
template <class T>
class Quotient {
 public:
  __device__ explicit Quotient(const T& y) : y_(y) {
    if constexpr (is_complex_v<T>) {
      const Real size = fmax(fabs(y.real()), fabs(y.imag()));
      const int exponent = size > Real{0} && isfinite(size) ? -ilogb(size) : 0;
      half_ = scalbn(Real{1}, exponent / 2);
      rest_ = scalbn(Real{1}, exponent - exponent / 2);
      y_ = T(y.real() * half_ * rest_, -(y.imag() * half_ * rest_));
      square_ = sum(product(y_.real(), y_.real()), product(y_.imag(), y_.imag()));
    }
  }
  [[nodiscard]] __device__ T operator()(const T& x) const {
    if constexpr (is_complex_v<T>) {
      const T scaled(x.real() * half_ * rest_, x.imag() * half_ * rest_);
      const Real re = sum(product(scaled.real(), y_.real()), -product(scaled.imag(), y_.imag()));
      const Real im = sum(product(scaled.real(), y_.imag()), product(scaled.imag(), y_.real()));
      return T(re / square_, im / square_);
    } else {
      return x / y_;
    }
  }

 private:
  using Real = RealOf<T>;
  T y_;  // scaled and conjugated
  Real half_ = 1;
  Real rest_ = 1;
  Real square_ = 1;
};

/// By what pivots are compared, |x| or |re| + |im| (kernels/dense/getrf.hpp), as an integer that
/// grows with it. What is not a number has none (0).
template <class T>
using PivotKey = std::conditional_t<sizeof(RealOf<T>) == 8, unsigned long long, unsigned>;

template <class T>
[[nodiscard]] __device__ __forceinline__ RealOf<T> size_of(const T& x) {
  if constexpr (is_complex_v<T>)
    return fabs(x.real()) + fabs(x.imag());
  else
    return fabs(x);
}
template <class T>
[[nodiscard]] __device__ __forceinline__ PivotKey<T> key_of(const T& x) {
  const RealOf<T> size = size_of(x);
  if (isnan(size)) return 0;
  if constexpr (sizeof(RealOf<T>) == 8)
    return static_cast<unsigned long long>(__double_as_longlong(size));
  else
    return __float_as_uint(size);
}

/// A read past the first-level cache: of what other thread blocks of the launch may have written.
template <class T>
[[nodiscard]] __device__ __forceinline__ T load_global(const T* from) {
  if constexpr (!is_complex_v<T>) {
    return __ldcg(from);
  } else if constexpr (sizeof(T) == 16) {
    const double2 v = __ldcg(reinterpret_cast<const double2*>(from));
    return T(v.x, v.y);
  } else {
    const float2 v = __ldcg(reinterpret_cast<const float2*>(from));
    return T(v.x, v.y);
  }
}

/// Elements of 16 bytes.
template <class T>
inline constexpr int kChunk = 16 / static_cast<int>(sizeof(T));

/// kChunk<T> numbers from an aligned place in shared memory.
template <class T>
__device__ __forceinline__ void load_chunk(T* out, const T* from) {
  if constexpr (sizeof(RealOf<T>) == 8) {
    const double2 v = *reinterpret_cast<const double2*>(from);
    if constexpr (is_complex_v<T>) {
      out[0] = T(v.x, v.y);
    } else {
      out[0] = v.x;
      out[1] = v.y;
    }
  } else {
    const float4 v = *reinterpret_cast<const float4*>(from);
    if constexpr (is_complex_v<T>) {
      out[0] = T(v.x, v.y);
      out[1] = T(v.z, v.w);
    } else {
      out[0] = v.x;
      out[1] = v.y;
      out[2] = v.z;
      out[3] = v.w;
    }
  }
}

/// The other way.
template <class T>
__device__ __forceinline__ void store_chunk(T* to, const T* in) {
  if constexpr (sizeof(RealOf<T>) == 8) {
    if constexpr (is_complex_v<T>)
      *reinterpret_cast<double2*>(to) = make_double2(in[0].real(), in[0].imag());
    else
      *reinterpret_cast<double2*>(to) = make_double2(in[0], in[1]);
  } else if constexpr (is_complex_v<T>) {
    *reinterpret_cast<float4*>(to) =
        make_float4(in[0].real(), in[0].imag(), in[1].real(), in[1].imag());
  } else {
    *reinterpret_cast<float4*>(to) = make_float4(in[0], in[1], in[2], in[3]);
  }
}

/// From row to row of `columns` numbers in shared memory: rows that neighbouring threads read lie
/// in other banks, and each begins at a multiple of 16 bytes.
template <class T>
[[nodiscard]] constexpr int row_stride(int columns) {
  return columns + kChunk<T>;
}

inline constexpr int kSolveRows = 16;

/// U ← L⁻¹·U by a thread block, L unit lower triangular of order `order` in global memory, U
/// `order` × kColumns in shared memory, row_stride<T>(kColumns) from row to row. Every element has
/// its products taken off in the order of the columns of L. `triangle` is shared memory for
/// kSolveRows² numbers. Begins and ends with a barrier.
template <class T, int kColumns, int kThreads>
__device__ void solve_in_shared(const T* l, std::int64_t ld, int order, T* u, T* triangle) {
  constexpr int kStride = row_stride<T>(kColumns);
  constexpr int kB = kSolveRows;
  const int t = static_cast<int>(threadIdx.x);
  for (int i0 = 0; i0 < order; i0 += kB) {
    const int rows = min(kB, order - i0);
    __syncthreads();
    for (int k = t; k < kB * kB; k += kThreads) {
      const int r = k % kB;
      const int c = k / kB;
      triangle[r * kB + c] = r < rows && c < r ? load_global(l + i0 + r + (i0 + c) * ld) : T{};
    }
    __syncthreads();
    if (t < kColumns) {
      T x[kB];
#pragma unroll
      for (int r = 0; r < kB; ++r) x[r] = r < rows ? u[(i0 + r) * kStride + t] : T{};
#pragma unroll
      for (int k = 0; k + 1 < kB; ++k) {
#pragma unroll
        for (int r = k + 1; r < kB; ++r) subtract_product(x[r], triangle[r * kB + k], x[k]);
      }
#pragma unroll
      for (int r = 0; r < kB; ++r)
        if (r < rows) u[(i0 + r) * kStride + t] = x[r];
    }
    __syncthreads();
    // Two threads a row, each with half of the columns.
    constexpr int kHalf = kColumns / 2;
    for (int k = t; k < 2 * (order - i0 - rows); k += kThreads) {
      const int below = order - i0 - rows;
      const int row = i0 + rows + k % below;
      T* mine = u + row * kStride + k / below * kHalf;
      T sum[kHalf];
#pragma unroll
      for (int c = 0; c < kHalf; ++c) sum[c] = mine[c];
#pragma unroll 4
      for (int m = 0; m < rows; ++m) {
        const T factor = load_global(l + row + (i0 + m) * ld);
        const T* above = u + (i0 + m) * kStride + k / below * kHalf;
#pragma unroll
        for (int c = 0; c < kHalf; ++c) subtract_product(sum[c], factor, above[c]);
      }
#pragma unroll
      for (int c = 0; c < kHalf; ++c) mine[c] = sum[c];
    }
  }
  __syncthreads();
}

}  // namespace strata::lu_cuda
