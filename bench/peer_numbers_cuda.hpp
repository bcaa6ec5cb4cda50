#pragma once
// Numbers of general and of Hermitian matrices in libstrata_peers_cuda.so.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "bench/compensated_sum.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/plugin_cuda.hpp"

namespace strata::bench {

/// Numbers by their parts; of real ones the second is zero.
struct Parts {
  double re = 0;
  double im = 0;
};
template <class T>
struct Number;
template <>
struct Number<double> {
  static constexpr bool kComplex = false;
  static constexpr cudaDataType kType = CUDA_R_64F;
  __device__ static Parts parts(double x) { return {x, 0}; }
  __device__ static double make(double re, double) { return re; }
};
template <>
struct Number<float> {
  static constexpr bool kComplex = false;
  static constexpr cudaDataType kType = CUDA_R_32F;
  __device__ static Parts parts(float x) { return {x, 0}; }
  __device__ static float make(double re, double) { return static_cast<float>(re); }
};
template <>
struct Number<cuDoubleComplex> {
  static constexpr bool kComplex = true;
  static constexpr cudaDataType kType = CUDA_C_64F;
  __device__ static Parts parts(cuDoubleComplex x) { return {x.x, x.y}; }
  __device__ static cuDoubleComplex make(double re, double im) { return {re, im}; }
};
template <>
struct Number<cuComplex> {
  static constexpr bool kComplex = true;
  static constexpr cudaDataType kType = CUDA_C_32F;
  __device__ static Parts parts(cuComplex x) { return {x.x, x.y}; }
  __device__ static cuComplex make(double re, double im) {
    return {static_cast<float>(re), static_cast<float>(im)};
  }
};

template <class F>
void dispatch(LuElement element, F&& f) {
  switch (element) {
    case LuElement::fp64: return f(double{});
    case LuElement::fp32: return f(float{});
    case LuElement::complex128: return f(cuDoubleComplex{});
    case LuElement::complex64: return f(cuComplex{});
  }
}

template <class T>
__device__ T element_at(std::uint64_t seed, std::int64_t n, std::int64_t i, std::int64_t j) {
  const auto k = static_cast<std::uint64_t>(i + j * n);
  if constexpr (Number<T>::kComplex)
    return Number<T>::make(2 * random_uniform(seed, 2 * k) - 1,
                           2 * random_uniform(seed, 2 * k + 1) - 1);
  else
    return Number<T>::make(2 * random_uniform(seed, k) - 1, 0);
}
__host__ __device__ inline double vector_at(std::uint64_t seed, std::int64_t i) {
  return random_uniform(seed + 1, static_cast<std::uint64_t>(i)) - 0.5;
}

inline constexpr int kThreads = 256;

inline unsigned blocks(std::int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}

/// A complex sum.
struct Sum {
  CompensatedSum re;
  CompensatedSum im;
};

/// v(i) = vector_at(seed, i).
static __global__ void start_vector(std::int64_t n, std::uint64_t seed, Sum* v) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i < n) v[i] = {{vector_at(seed, i), 0}, {0, 0}};
}

inline double largest(const double* device, std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  check(cudaMemcpy(values.data(), device, values.size() * sizeof(double), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  double most = 0;
  for (const double value : values)
    if (!(value <= most)) most = value;
  return most;
}

}  // namespace strata::bench
