// LU of libstrata_peers_cuda.so: cusolverDnXgetrf, and residuals of factors in device memory. See
// cuda_peers.hpp.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "bench/compensated_sum.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using strata::random_uniform;
using strata::bench::allocate;
using strata::bench::check;
using strata::bench::CompensatedSum;
using strata::bench::DeviceMemory;
using strata::bench::guarded;
using strata::bench::LuElement;
using strata::bench::use_device_of;

void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}

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
__host__ __device__ double vector_at(std::uint64_t seed, std::int64_t i) {
  return random_uniform(seed + 1, static_cast<std::uint64_t>(i)) - 0.5;
}

constexpr int kThreads = 256;

unsigned blocks(std::int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}

template <class T>
__global__ void fill(T* a, std::int64_t n, std::int64_t ld, std::uint64_t seed) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  for (std::int64_t j = blockIdx.y; j < n; j += gridDim.y)
    a[i + j * ld] = element_at<T>(seed, n, i, j);
}

/// A complex sum.
struct Sum {
  CompensatedSum re;
  CompensatedSum im;
};

/// out = U·v or L·v, a thread a row; L has a unit diagonal. v has two parts.
template <class T>
__global__ void triangle_product(const T* f, std::int64_t n, std::int64_t ld, bool upper,
                                 const Sum* v, Sum* out) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  Sum sum;
  if (!upper) sum = v[i];
  const std::int64_t first = upper ? i : 0;
  const std::int64_t last = upper ? n : i;
#pragma unroll 4
  for (std::int64_t j = first; j < last; ++j) {
    const Parts a = Number<T>::parts(f[i + j * ld]);
    sum.re.add_product(a.re, v[j].re);
    if constexpr (Number<T>::kComplex) {
      sum.re.add_product(-a.im, v[j].im);
      sum.im.add_product(a.re, v[j].im);
      sum.im.add_product(a.im, v[j].re);
    }
  }
  out[i] = sum;
}

__global__ void start_vector(std::int64_t n, std::uint64_t seed, Sum* v) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i < n) v[i] = {{vector_at(seed, i), 0}, {0, 0}};
}

/// Row by row: what y, the rows of L·U·v in the order of A's rows, differs by from A·v; and the sum
/// of the magnitudes of A's row.
template <class T>
__global__ void compare(std::int64_t n, std::uint64_t seed, const Sum* y, const std::int64_t* place,
                        double* errors, double* norms) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  Sum sum = y[place[i]];
  double norm = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const Parts a = Number<T>::parts(element_at<T>(seed, n, i, j));
    sum.re.add_product(-a.re, vector_at(seed, j));
    if constexpr (Number<T>::kComplex) sum.im.add_product(-a.im, vector_at(seed, j));
    norm += sqrt(a.re * a.re + a.im * a.im);
  }
  errors[i] = sqrt(sum.re.value() * sum.re.value() + sum.im.value() * sum.im.value());
  norms[i] = norm;
}

double largest(const double* device, std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  check(cudaMemcpy(values.data(), device, values.size() * sizeof(double), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  double most = 0;
  for (const double value : values)
    if (!(value <= most)) most = value;
  return most;
}

template <class T>
double residual(const T* f, const std::int64_t* pivots, std::int64_t n, std::int64_t ld,
                std::int64_t base, std::uint64_t seed) {
  std::vector<std::int64_t> exchanged(static_cast<std::size_t>(n));
  check(cudaMemcpy(exchanged.data(), pivots, exchanged.size() * sizeof(std::int64_t),
                   cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  // Row r of P·A is row from[r] of A; `place` is the inverse.
  std::vector<std::int64_t> from(exchanged.size());
  std::vector<std::int64_t> place(exchanged.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < from.size(); ++i)
    std::swap(from[i], from.at(static_cast<std::size_t>(exchanged[i] - base)));
  for (std::size_t i = 0; i < from.size(); ++i)
    place[static_cast<std::size_t>(from[i])] = static_cast<std::int64_t>(i);
  const auto count = static_cast<std::size_t>(n);
  const DeviceMemory v = allocate(count * sizeof(Sum));
  const DeviceMemory w = allocate(count * sizeof(Sum));
  const DeviceMemory where = allocate(count * sizeof(std::int64_t));
  const DeviceMemory sums = allocate(2 * count * sizeof(double));
  check(cudaMemcpy(where.get(), place.data(), count * sizeof(std::int64_t), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  auto* first = static_cast<Sum*>(v.get());
  auto* second = static_cast<Sum*>(w.get());
  auto* errors = static_cast<double*>(sums.get());
  start_vector<<<blocks(n), kThreads>>>(n, seed, first);
  triangle_product<T><<<blocks(n), kThreads>>>(f, n, ld, true, first, second);
  triangle_product<T><<<blocks(n), kThreads>>>(f, n, ld, false, second, first);
  compare<T><<<blocks(n), kThreads>>>(n, seed, first, static_cast<const std::int64_t*>(where.get()),
                                      errors, errors + n);
  check(cudaGetLastError(), "residual");
  double norm_v = 0;
  for (std::int64_t i = 0; i < n; ++i) norm_v = std::max(norm_v, std::abs(vector_at(seed, i)));
  return largest(errors, n) / (largest(errors + n, n) * norm_v);
}

/// What is kept from call to call. Never destroyed: the driver may be gone by then.
struct Kept {
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  DeviceMemory work;
  std::size_t work_bytes = 0;
  DeviceMemory info;
};

Kept& kept() {
  static Kept& instance = []() -> Kept& {
    Kept& k = *new Kept;
    check(cusolverDnCreate(&k.solver), "cusolverDnCreate");
    check(cusolverDnCreateParams(&k.params), "cusolverDnCreateParams");
    check(cudaEventCreate(&k.begin), "cudaEventCreate");
    check(cudaEventCreate(&k.end), "cudaEventCreate");
    k.info = allocate(sizeof(int));
    return k;
  }();
  return instance;
}

template <class T>
double time_getrf(T* a, std::int64_t* pivots, std::int64_t n, std::int64_t ld, int& info) {
  Kept& k = kept();
  constexpr cudaDataType kType = Number<T>::kType;
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;
  check(cusolverDnXgetrf_bufferSize(k.solver, k.params, n, n, kType, a, ld, kType, &device_bytes,
                                    &host_bytes),
        "bufferSize");
  if (device_bytes > k.work_bytes) {
    k.work.reset();
    k.work = allocate(device_bytes);
    k.work_bytes = device_bytes;
  }
  std::vector<char> host_work(host_bytes + 1);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaEventRecord(k.begin), "cudaEventRecord");
  check(
      cusolverDnXgetrf(k.solver, k.params, n, n, kType, a, ld, pivots, kType, k.work.get(),
                       device_bytes, host_work.data(), host_bytes, static_cast<int*>(k.info.get())),
      "cusolverDnXgetrf");
  check(cudaEventRecord(k.end), "cudaEventRecord");
  check(cudaEventSynchronize(k.end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, k.begin, k.end), "cudaEventElapsedTime");
  check(cudaMemcpy(&info, k.info.get(), sizeof info, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

extern "C" int strata_lu_fill(void* a, std::int64_t n, std::int64_t ld, LuElement element,
                              std::uint64_t seed, char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    dispatch(element, [&]<class T>(T) {
      const dim3 grid(blocks(n), static_cast<unsigned>(std::min<std::int64_t>(n, 4096)));
      fill<<<grid, kThreads>>>(static_cast<T*>(a), n, ld, seed);
    });
    check(cudaGetLastError(), "fill");
    check(cudaDeviceSynchronize(), "fill");
  });
}

extern "C" int strata_lu_residual(const void* factors, const std::int64_t* pivots, std::int64_t n,
                                  std::int64_t ld, std::int64_t base, LuElement element,
                                  std::uint64_t seed, double* result, char* message,
                                  std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(factors);
    dispatch(element, [&]<class T>(T) {
      *result = residual(static_cast<const T*>(factors), pivots, n, ld, base, seed);
    });
  });
}

extern "C" int strata_cusolver_getrf(void* a, std::int64_t* pivots, std::int64_t n, std::int64_t ld,
                                     LuElement element, double* seconds, int* info, char* message,
                                     std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    dispatch(element,
             [&]<class T>(T) { *seconds = time_getrf(static_cast<T*>(a), pivots, n, ld, *info); });
  });
}

// The interface and its declaration stay the same.
static_assert(std::is_same_v<decltype(strata_lu_fill), strata::bench::LuFill>);
static_assert(std::is_same_v<decltype(strata_lu_residual), strata::bench::LuResidual>);
static_assert(std::is_same_v<decltype(strata_cusolver_getrf), strata::bench::CusolverGetrf>);
