#pragma once
// Arithmetic of real and complex numbers in the LU kernels of the GPU.
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

/// 1 / y, within a unit of rounding, if has_sure_reciprocal(y).
[[nodiscard]] __device__ __forceinline__ double reciprocal_of(double y) {
  double r = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(y));
  double e = fma(-y, r, 1.0);
  e = fma(e, e, e);
  r = fma(r, e, r);
  e = fma(-y, r, 1.0);
  return fma(r, e, r);
}
/// x / y from r = 1 / y: x·r, corrected once by its remainder, as division itself does it
/// (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
/// It takes has_sure_quotient(x) and has_sure_reciprocal(y): no result comes near the ends of the
/// range.
[[nodiscard]] __device__ __forceinline__ double quotient_by(double x, double y, double r) {
  const double q = x * r;
  return fma(fma(-q, y, x), r, q);
}
[[nodiscard]] __device__ __forceinline__ bool has_sure_reciprocal(double y) {
  constexpr unsigned kLeast = 0x07b00000U;  // 2^−900 and 2^100, by the upper halves of their bits
  constexpr unsigned kMost = 0x46300000U;
  return (static_cast<unsigned>(__double2hiint(y)) & 0x7fffffffU) - kLeast <= kMost - kLeast;
}
[[nodiscard]] __device__ __forceinline__ bool has_sure_quotient(double x) {
  return has_sure_reciprocal(x) || x == 0;
}

/// Division by y, as DivisionBy (scalar/complex.hpp) does it.
template <class T>
class Quotient {
 public:
  __device__ explicit Quotient(const T& y) : y_(y) {
    if constexpr (is_complex_v<T>) {
      const Real size = fmax(fabs(y.real()), fabs(y.imag()));
      const int exponent = size > Real{0} && isfinite(size) ? -exponent_of(size) : 0;
      half_ = power_of_two<Real>(exponent / 2);
      rest_ = power_of_two<Real>(exponent - exponent / 2);
      y_ = T(y.real() * half_ * rest_, -(y.imag() * half_ * rest_));
      square_ = sum(product(y_.real(), y_.real()), product(y_.imag(), y_.imag()));
      if constexpr (std::is_same_v<Real, double>) reciprocal_ = reciprocal_of(square_);
    }
  }
  [[nodiscard]] __device__ T operator()(const T& x) const {
    if constexpr (is_complex_v<T>) {
      const T scaled(x.real() * half_ * rest_, x.imag() * half_ * rest_);
      const Real re = sum(product(scaled.real(), y_.real()), -product(scaled.imag(), y_.imag()));
      const Real im = sum(product(scaled.real(), y_.imag()), product(scaled.imag(), y_.real()));
      if constexpr (std::is_same_v<Real, double>) {
        if (has_sure_quotient(re) && has_sure_quotient(im) && has_sure_reciprocal(square_))
          return T(quotient_by(re, square_, reciprocal_), quotient_by(im, square_, reciprocal_));
      }
      return T(re / square_, im / square_);
    } else {
      return x / y_;
    }
  }

 private:
  using Real = RealOf<T>;
  template <class R>
  static __device__ __forceinline__ R power_of_two(int exponent) {
    if constexpr (sizeof(R) == 8)
      return __hiloint2double((exponent + 1023) << 20, 0);
    else
      return __int_as_float((exponent + 127) << 23);
  }
  static __device__ __forceinline__ int exponent_of(double x) {
    const int biased = __double2hiint(x) >> 20;
    return biased > 0 ? biased - 1023 : ilogb(x);
  }
  static __device__ __forceinline__ int exponent_of(float x) {
    const int biased = __float_as_int(x) >> 23;
    return biased > 0 ? biased - 127 : ilogb(x);
  }

  T y_;  // scaled and conjugated
  Real half_ = 1;
  Real rest_ = 1;
  Real square_ = 1;
  Real reciprocal_ = 1;
};

/// What lane `from` of the warp has.
template <class T>
[[nodiscard]] __device__ __forceinline__ T from_lane(const T& x, int from) {
  constexpr unsigned kAll = 0xffffffffU;
  if constexpr (is_complex_v<T>)
    return T(__shfl_sync(kAll, x.real(), from), __shfl_sync(kAll, x.imag(), from));
  else
    return __shfl_sync(kAll, x, from);
}

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
  if constexpr (sizeof(RealOf<T>) == 8) {
    constexpr unsigned long long kInfinity = 0x7ff0000000000000ULL;
    const auto key = static_cast<unsigned long long>(__double_as_longlong(size));
    return key > kInfinity ? 0 : key;
  } else {
    return isnan(size) ? 0 : __float_as_uint(size);
  }
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

}  // namespace strata::lu_cuda
