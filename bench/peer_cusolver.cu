// libstrata_peers_cuda.so: cuSOLVER's Xpotrf, for the benchmarks only (the library does not use
// cuSOLVER).

#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/random_matrix.hpp"

namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}

/// One thread an element of the lower triangle, column-major n × n.
template <class T>
__global__ void fill(T* a, std::int64_t n, std::uint64_t seed) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  for (std::int64_t j = blockIdx.y; j < n; j += gridDim.y) {
    if (i >= j && i < n)
      a[i + j * n] = static_cast<T>(strata::bench::random_element(n, seed, i, j));
  }
}

struct DeviceFree {
  void operator()(void* p) const { cudaFree(p); }
};
using DeviceMemory = std::unique_ptr<void, DeviceFree>;

DeviceMemory allocate(std::size_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, bytes > 0 ? bytes : 1), "cudaMalloc");
  return DeviceMemory(p);
}

template <class T>
void time_potrf(std::int64_t n, std::uint64_t seed, int runs, double* seconds) {
  const cudaDataType type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
  check(cudaSetDevice(0), "cudaSetDevice");
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;
  check(cusolverDnCreate(&handle), "cusolverDnCreate");
  check(cusolverDnCreateParams(&params), "cusolverDnCreateParams");
  const DeviceMemory a =
      allocate(sizeof(T) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  const DeviceMemory info = allocate(sizeof(int));
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;
  check(cusolverDnXpotrf_bufferSize(handle, params, CUBLAS_FILL_MODE_LOWER, n, type, a.get(), n,
                                    type, &device_bytes, &host_bytes),
        "bufferSize");
  const DeviceMemory work = allocate(device_bytes);
  std::vector<char> host_work(host_bytes + 1);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  for (int r = 0; r < runs; ++r) {
    const dim3 grid(static_cast<unsigned>((n + 255) / 256),
                    static_cast<unsigned>(n < 4096 ? n : 4096));
    fill<<<grid, 256>>>(static_cast<T*>(a.get()), n, seed);
    check(cudaGetLastError(), "fill");
    check(cudaDeviceSynchronize(), "fill");
    check(cudaEventRecord(begin), "cudaEventRecord");
    check(cusolverDnXpotrf(handle, params, CUBLAS_FILL_MODE_LOWER, n, type, a.get(), n, type,
                           work.get(), device_bytes, host_work.data(), host_bytes,
                           static_cast<int*>(info.get())),
          "cusolverDnXpotrf");
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    seconds[r] = 1e-3 * milliseconds;
    int failed = 0;
    check(cudaMemcpy(&failed, info.get(), sizeof failed, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (failed != 0) throw std::runtime_error("info " + std::to_string(failed));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cusolverDnDestroyParams(params);
  cusolverDnDestroy(handle);
}

}  // namespace

extern "C" int strata_cusolver_potrf(std::int64_t n, bool fp32, std::uint64_t seed, int runs,
                                     double* seconds, char* message, std::int64_t message_bytes) {
  try {
    if (fp32) {
      time_potrf<float>(n, seed, runs, seconds);
    } else {
      time_potrf<double>(n, seed, runs, seconds);
    }
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, static_cast<std::size_t>(message_bytes), "%s", error.what());
    return -1;
  }
}
