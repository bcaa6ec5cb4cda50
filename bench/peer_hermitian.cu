// Hermitian matrices of libstrata_peers_cuda.so: cusolverDnXpotrf, and residuals of factors in
// device memory. See cuda_peers.hpp.

#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/cuda_peers.hpp"
#include "bench/peer_numbers_cuda.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using namespace strata::bench;

void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}
using strata::bench::check;

template <class F>
void dispatch_complex(LuElement element, F&& f) {
  if (element == LuElement::complex128) return f(cuDoubleComplex{});
  if (element == LuElement::complex64) return f(cuComplex{});
  throw std::runtime_error("a Hermitian matrix is complex here");
}

/// Element (i, j), i >= j.
template <class T>
__device__ Parts lower_at(std::uint64_t seed, std::int64_t n, std::int64_t i, std::int64_t j) {
  if (i == j) return {static_cast<double>(2 * n + 2), 0};
  return Number<T>::parts(element_at<T>(seed, n, i, j));
}

template <class T>
__global__ void fill_lower(T* a, std::int64_t n, std::int64_t ld, std::uint64_t seed) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  for (std::int64_t j = blockIdx.y; j < n; j += gridDim.y) {
    const Parts x = i >= j ? lower_at<T>(seed, n, i, j) : Parts{};
    a[i + j * ld] = Number<T>::make(x.re, x.im);
  }
}

__device__ void add_product(Sum& sum, const Parts& a, const Sum& v) {
  sum.re.add_product(a.re, v.re);
  sum.re.add_product(-a.im, v.im);
  sum.im.add_product(a.re, v.im);
  sum.im.add_product(a.im, v.re);
}

/// out = Lᴴ·v or L·v, a thread an element.
template <class T>
__global__ void lower_product(const T* l, std::int64_t n, std::int64_t ld, bool adjoint,
                              const Sum* v, Sum* out) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  Sum sum;
  for (std::int64_t k = adjoint ? i : 0; k < (adjoint ? n : i + 1); ++k) {
    Parts a = Number<T>::parts(adjoint ? l[k + i * ld] : l[i + k * ld]);
    if (adjoint) a.im = -a.im;
    add_product(sum, a, v[k]);
  }
  out[i] = sum;
}

template <class T>
__global__ void compare_rows(std::int64_t n, std::uint64_t seed, const Sum* y, double* errors,
                             double* norms) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  Sum sum = y[i];
  double norm = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    Parts a = i >= j ? lower_at<T>(seed, n, i, j) : lower_at<T>(seed, n, j, i);
    if (j > i) a.im = -a.im;
    sum.re.add_product(-a.re, vector_at(seed, j));
    sum.im.add_product(-a.im, vector_at(seed, j));
    norm += sqrt(a.re * a.re + a.im * a.im);
  }
  errors[i] = sqrt(sum.re.value() * sum.re.value() + sum.im.value() * sum.im.value());
  norms[i] = norm;
}

template <class T>
double residual_of(const T* l, std::int64_t n, std::int64_t ld, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(n);
  const DeviceMemory v = allocate(count * sizeof(Sum));
  const DeviceMemory w = allocate(count * sizeof(Sum));
  const DeviceMemory sums = allocate(2 * count * sizeof(double));
  auto* first = static_cast<Sum*>(v.get());
  auto* second = static_cast<Sum*>(w.get());
  auto* errors = static_cast<double*>(sums.get());
  start_vector<<<blocks(n), kThreads>>>(n, seed, first);
  lower_product<T><<<blocks(n), kThreads>>>(l, n, ld, true, first, second);
  lower_product<T><<<blocks(n), kThreads>>>(l, n, ld, false, second, first);
  compare_rows<T><<<blocks(n), kThreads>>>(n, seed, first, errors, errors + n);
  check(cudaGetLastError(), "residual");
  double norm_v = 0;
  for (std::int64_t i = 0; i < n; ++i) norm_v = std::max(norm_v, std::abs(vector_at(seed, i)));
  return largest(errors, n) / (largest(errors + n, n) * norm_v);
}

template <class T>
double time_potrf(T* a, std::int64_t n, std::int64_t ld, int& info) {
  static cusolverDnHandle_t solver = [] {
    cusolverDnHandle_t handle = nullptr;
    check(cusolverDnCreate(&handle), "cusolverDnCreate");
    return handle;
  }();
  static cusolverDnParams_t params = [] {
    cusolverDnParams_t made = nullptr;
    check(cusolverDnCreateParams(&made), "cusolverDnCreateParams");
    return made;
  }();
  constexpr cudaDataType kType = Number<T>::kType;
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;
  check(cusolverDnXpotrf_bufferSize(solver, params, CUBLAS_FILL_MODE_LOWER, n, kType, a, ld, kType,
                                    &device_bytes, &host_bytes),
        "bufferSize");
  const DeviceMemory work = allocate(device_bytes + 1);
  const DeviceMemory found = allocate(sizeof(int));
  std::vector<char> host_work(host_bytes + 1);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaEventRecord(begin), "cudaEventRecord");
  check(
      cusolverDnXpotrf(solver, params, CUBLAS_FILL_MODE_LOWER, n, kType, a, ld, kType, work.get(),
                       device_bytes, host_work.data(), host_bytes, static_cast<int*>(found.get())),
      "cusolverDnXpotrf");
  check(cudaEventRecord(end), "cudaEventRecord");
  check(cudaEventSynchronize(end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  check(cudaMemcpy(&info, found.get(), sizeof info, cudaMemcpyDeviceToHost), "cudaMemcpy");
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

extern "C" int strata_hermitian_fill(void* a, std::int64_t n, std::int64_t ld, LuElement element,
                                     std::uint64_t seed, char* message,
                                     std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    dispatch_complex(element, [&]<class T>(T) {
      const dim3 grid(blocks(n), static_cast<unsigned>(std::min<std::int64_t>(n, 4096)));
      fill_lower<<<grid, kThreads>>>(static_cast<T*>(a), n, ld, seed);
    });
    check(cudaGetLastError(), "fill");
    check(cudaDeviceSynchronize(), "fill");
  });
}

extern "C" int strata_hermitian_residual(const void* l, std::int64_t n, std::int64_t ld,
                                         LuElement element, std::uint64_t seed, double* result,
                                         char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(l);
    dispatch_complex(
        element, [&]<class T>(T) { *result = residual_of(static_cast<const T*>(l), n, ld, seed); });
  });
}

extern "C" int strata_cusolver_hermitian_potrf(void* a, std::int64_t n, std::int64_t ld,
                                               LuElement element, double* seconds, int* info,
                                               char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    dispatch_complex(element,
                     [&]<class T>(T) { *seconds = time_potrf(static_cast<T*>(a), n, ld, *info); });
  });
}

// The interface and its declaration stay the same.
static_assert(std::is_same_v<decltype(strata_hermitian_fill), HermitianFill>);
static_assert(std::is_same_v<decltype(strata_hermitian_residual), HermitianResidual>);
static_assert(std::is_same_v<decltype(strata_cusolver_hermitian_potrf), CusolverHermitianPotrf>);
