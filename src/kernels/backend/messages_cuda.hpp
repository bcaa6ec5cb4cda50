#pragma once
// Numbers that one thread block writes and others of the same launch read, without a flag.
//
// Contract: a place holds a NaN that stands for nothing, kNothing, whose bytes are all 0xff, before
// the launch; it is written once, and who needs the number reads the place until it is something
// else. A flag would take a fence on one side and a second reading on the other. T is double or
// float. Only for *_cuda.cu.

#include <cuda_runtime_api.h>

namespace strata::tile {

template <class T>
struct Messages;

template <>
struct Messages<double> {
  using Bits = unsigned long long;
  static constexpr Bits kNothing = ~Bits{0};
  __device__ static Bits read(const double* from) {
    Bits bits = 0;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(bits) : "l"(from) : "memory");
    return bits;
  }
  __device__ static void write(double* to, Bits bits) {
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(bits) : "memory");
  }
  __device__ static Bits bits_of(double value) {
    return static_cast<Bits>(__double_as_longlong(value));
  }
  __device__ static double number(Bits bits) {
    return __longlong_as_double(static_cast<long long>(bits));
  }
};
template <>
struct Messages<float> {
  using Bits = unsigned;
  static constexpr Bits kNothing = ~Bits{0};
  __device__ static Bits read(const float* from) {
    Bits bits = 0;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(bits) : "l"(from) : "memory");
    return bits;
  }
  __device__ static void write(float* to, Bits bits) {
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(to), "r"(bits) : "memory");
  }
  __device__ static Bits bits_of(float value) { return __float_as_uint(value); }
  __device__ static float number(Bits bits) { return __uint_as_float(bits); }
};

/// Writes a number; a NaN of the caller's that is kNothing becomes another NaN.
template <class T>
__device__ inline void send(T* place, T value) {
  const auto bits = Messages<T>::bits_of(value);
  Messages<T>::write(place, bits == Messages<T>::kNothing ? bits - 1 : bits);
}

}  // namespace strata::tile
