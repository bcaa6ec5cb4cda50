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

#include "bench/cuda_peers.hpp"
#include "bench/peer_numbers_cuda.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using namespace strata::bench;

void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}
using strata::bench::check;

template <class T>
__global__ void fill(T* a, std::int64_t n, std::int64_t ld, std::uint64_t seed) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  for (std::int64_t j = blockIdx.y; j < n; j += gridDim.y)
    a[i + j * ld] = element_at<T>(seed, n, i, j);
}

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

cublasStatus_t getrf_batched(cublasHandle_t h, int n, double** a, int ld, int* p, int* i, int c) {
  return cublasDgetrfBatched(h, n, a, ld, p, i, c);
}
cublasStatus_t getrf_batched(cublasHandle_t h, int n, float** a, int ld, int* p, int* i, int c) {
  return cublasSgetrfBatched(h, n, a, ld, p, i, c);
}
cublasStatus_t getrf_batched(cublasHandle_t h, int n, cuDoubleComplex** a, int ld, int* p, int* i,
                             int c) {
  return cublasZgetrfBatched(h, n, a, ld, p, i, c);
}
cublasStatus_t getrf_batched(cublasHandle_t h, int n, cuComplex** a, int ld, int* p, int* i,
                             int c) {
  return cublasCgetrfBatched(h, n, a, ld, p, i, c);
}

/// The pivots of the last matrix go to `pivots`.
template <class T>
double time_getrf_batched(T* a, std::int64_t* pivots, std::int64_t n, std::int64_t ld,
                          std::int64_t count, int& info) {
  static cublasHandle_t blas = [] {
    cublasHandle_t handle = nullptr;
    check(cublasCreate(&handle), "cublasCreate");
    return handle;
  }();
  Kept& k = kept();
  const auto matrices = static_cast<std::size_t>(count);
  std::vector<T*> places(matrices);
  for (std::size_t m = 0; m < matrices; ++m) places[m] = a + static_cast<std::int64_t>(m) * ld * n;
  const DeviceMemory list = allocate(matrices * sizeof(T*));
  const DeviceMemory exchanged = allocate(matrices * static_cast<std::size_t>(n) * sizeof(int));
  const DeviceMemory infos = allocate(matrices * sizeof(int));
  check(cudaMemcpy(list.get(), places.data(), matrices * sizeof(T*), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaEventRecord(k.begin), "cudaEventRecord");
  check(getrf_batched(blas, static_cast<int>(n), static_cast<T**>(list.get()), static_cast<int>(ld),
                      static_cast<int*>(exchanged.get()), static_cast<int*>(infos.get()),
                      static_cast<int>(count)),
        "cublasXgetrfBatched");
  check(cudaEventRecord(k.end), "cudaEventRecord");
  check(cudaEventSynchronize(k.end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, k.begin, k.end), "cudaEventElapsedTime");
  std::vector<int> found(matrices);
  check(cudaMemcpy(found.data(), infos.get(), matrices * sizeof(int), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  info = 0;
  for (const int one : found) info = info != 0 ? info : one;
  std::vector<int> last(static_cast<std::size_t>(n));
  check(cudaMemcpy(last.data(), static_cast<int*>(exchanged.get()) + (count - 1) * n,
                   last.size() * sizeof(int), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  const std::vector<std::int64_t> wide(last.begin(), last.end());
  check(cudaMemcpy(pivots, wide.data(), wide.size() * sizeof(std::int64_t), cudaMemcpyHostToDevice),
        "cudaMemcpy");
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

extern "C" int strata_cublas_getrf_batched(void* a, std::int64_t* pivots, std::int64_t n,
                                           std::int64_t ld, std::int64_t count, LuElement element,
                                           double* seconds, int* info, char* message,
                                           std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    dispatch(element, [&]<class T>(T) {
      *seconds = time_getrf_batched(static_cast<T*>(a), pivots, n, ld, count, *info);
    });
  });
}

// The interface and its declaration stay the same.
static_assert(std::is_same_v<decltype(strata_lu_fill), strata::bench::LuFill>);
static_assert(std::is_same_v<decltype(strata_lu_residual), strata::bench::LuResidual>);
static_assert(std::is_same_v<decltype(strata_cusolver_getrf), strata::bench::CusolverGetrf>);
static_assert(
    std::is_same_v<decltype(strata_cublas_getrf_batched), strata::bench::CublasGetrfBatched>);
