// libstrata_peers_cuda.so: cuSOLVER on matrices that lie in device memory, and what the benchmarks
// need there. For the benchmarks only (the library does not use cuSOLVER). See cuda_peers.hpp.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/compensated_sum.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using strata::random_uniform;
using strata::bench::allocate;
using strata::bench::check;
using strata::bench::CompensatedSum;
using strata::bench::DeviceMemory;
using strata::bench::element;
using strata::bench::guarded;
using strata::bench::of_batch;
using strata::bench::TestMatrix;
using strata::bench::use_device_of;

void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}

/// What is kept from call to call, on one GPU. Never destroyed: the driver may be gone by then.
struct Kept {
  int device = -1;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
  cublasHandle_t blas = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  // State of Xpotrf, for one order and precision:
  std::int64_t n = -1;
  std::int64_t ld = -1;
  bool fp32 = false;
  DeviceMemory work;
  DeviceMemory info;
  std::size_t device_bytes = 0;
  std::vector<char> host_work;
};

Kept& kept() {
  static Kept& instance = *new Kept;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  if (instance.device == device) return instance;
  if (instance.device >= 0) throw std::runtime_error("one process serves one GPU");
  check(cusolverDnCreate(&instance.solver), "cusolverDnCreate");
  check(cusolverDnCreateParams(&instance.params), "cusolverDnCreateParams");
  check(cublasCreate(&instance.blas), "cublasCreate");
  check(cudaEventCreate(&instance.begin), "cudaEventCreate");
  check(cudaEventCreate(&instance.end), "cudaEventCreate");
  instance.device = device;
  return instance;
}

template <class F>
double seconds_of(Kept& k, F&& work) {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaEventRecord(k.begin), "cudaEventRecord");
  work();
  check(cudaEventRecord(k.end), "cudaEventRecord");
  check(cudaEventSynchronize(k.end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, k.begin, k.end), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

unsigned blocks(std::int64_t items, std::int64_t each, std::int64_t most = 1 << 30) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + each - 1) / each, 1, most));
}

/// One thread an element, column-major, matrix after matrix.
template <class T>
__global__ void fill(T* a, std::int64_t n, std::int64_t ld, std::int64_t count, TestMatrix matrix) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  for (std::int64_t b = blockIdx.z; b < count; b += gridDim.z) {
    T* out = a + b * ld * n;
    for (std::int64_t j = blockIdx.y; j < n; j += gridDim.y) {
      out[i + j * ld] = static_cast<T>(i < j ? 0.0 : element(of_batch(matrix, b), n, i, j));
    }
  }
}

template <class T>
void fill_matrices(void* a, std::int64_t n, std::int64_t ld, std::int64_t count,
                   const TestMatrix& matrix) {
  const int threads = n <= 64 ? 64 : 256;
  const dim3 grid(blocks(n, threads), blocks(n, 1, 4096), blocks(count, 1, 16384));
  fill<<<grid, threads>>>(static_cast<T*>(a), n, ld, count, matrix);
  check(cudaGetLastError(), "fill");
  check(cudaDeviceSynchronize(), "fill");
}

// ---- the residual

constexpr int kWarp = 32;
constexpr int kThreads = 256;

__device__ double vector_element(std::uint64_t seed, std::int64_t i) {
  return random_uniform(seed + 1, static_cast<std::uint64_t>(i)) - 0.5;
}

__device__ double of_lane_above(double value, int distance) {
  return __shfl_down_sync(0xffffffffU, value, static_cast<unsigned>(distance));
}

__device__ double sum_of_warp(double value) {
  for (int half = kWarp / 2; half > 0; half /= 2) value += of_lane_above(value, half);
  return value;
}

__device__ CompensatedSum sum_of_warp(CompensatedSum value) {
  for (int half = kWarp / 2; half > 0; half /= 2) {
    value.add(CompensatedSum{of_lane_above(value.sum, half), of_lane_above(value.rest, half)});
  }
  return value;
}

/// w = Lᵀ·v, one warp a column.
template <class T>
__global__ void transposed_product(const T* l, std::int64_t n, std::int64_t ld, std::uint64_t seed,
                                   CompensatedSum* w) {
  const std::int64_t j = (blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (j >= n) return;
  CompensatedSum sum;
  for (std::int64_t i = j + lane; i < n; i += kWarp) {
    sum.add_product(static_cast<double>(l[i + j * ld]), vector_element(seed, i));
  }
  sum = sum_of_warp(sum);
  if (lane == 0) w[j] = sum;
}

/// y = L·w, one thread a row.
template <class T>
__global__ void product(const T* l, std::int64_t n, std::int64_t ld, const CompensatedSum* w,
                        CompensatedSum* y) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (i >= n) return;
  CompensatedSum sum;
#pragma unroll 8
  for (std::int64_t j = 0; j <= i; ++j) sum.add_product(static_cast<double>(l[i + j * ld]), w[j]);
  y[i] = sum;
}

/// errors_i = |y_i − Σ_j A_ij·v_j| and norms_i = Σ_j |A_ij|, one warp a row.
template <class T>
__global__ void compare_rows(std::int64_t n, TestMatrix matrix, const CompensatedSum* y,
                             double* errors, double* norms) {
  const std::int64_t i = (blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (i >= n) return;
  CompensatedSum sum = lane == 0 ? y[i] : CompensatedSum{};
  double norm = 0;
  for (std::int64_t j = lane; j < n; j += kWarp) {
    const auto a = static_cast<double>(static_cast<T>(element(matrix, n, i, j)));
    sum.add_product(-a, vector_element(matrix.seed, j));
    norm += std::abs(a);
  }
  sum = sum_of_warp(sum);
  norm = sum_of_warp(norm);
  if (lane == 0) {
    errors[i] = std::abs(sum.value());
    norms[i] = norm;
  }
}

/// The largest; a NaN stays one.
double largest(const double* device, std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  check(cudaMemcpy(values.data(), device, values.size() * sizeof(double), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  double most = 0;
  for (const double value : values) {
    if (!(value <= most)) most = value;
  }
  return most;
}

template <class T>
double residual(const void* data, std::int64_t n, std::int64_t ld, const TestMatrix& matrix) {
  const auto* l = static_cast<const T*>(data);
  const DeviceMemory memory = allocate(6 * n * static_cast<std::int64_t>(sizeof(double)));
  auto* w = static_cast<CompensatedSum*>(memory.get());
  CompensatedSum* y = w + n;
  auto* errors = reinterpret_cast<double*>(y + n);
  double* norms = errors + n;
  transposed_product<T><<<blocks(n * kWarp, kThreads), kThreads>>>(l, n, ld, matrix.seed, w);
  product<T><<<blocks(n, kThreads), kThreads>>>(l, n, ld, w, y);
  compare_rows<T><<<blocks(n * kWarp, kThreads), kThreads>>>(n, matrix, y, errors, norms);
  check(cudaGetLastError(), "residual");
  check(cudaDeviceSynchronize(), "residual");
  double norm_v = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    norm_v = std::max(
        norm_v, std::abs(random_uniform(matrix.seed + 1, static_cast<std::uint64_t>(i)) - 0.5));
  }
  return largest(errors, n) / (largest(norms, n) * norm_v);
}

// ---- cuSOLVER and cuBLAS

void prepare_potrf(Kept& k, void* a, std::int64_t n, std::int64_t ld, bool fp32) {
  if (k.n == n && k.ld == ld && k.fp32 == fp32) return;
  const cudaDataType type = fp32 ? CUDA_R_32F : CUDA_R_64F;
  k.n = -1;
  k.work.reset();  // before the next one is asked for
  std::size_t host_bytes = 0;
  check(cusolverDnXpotrf_bufferSize(k.solver, k.params, CUBLAS_FILL_MODE_LOWER, n, type, a, ld,
                                    type, &k.device_bytes, &host_bytes),
        "bufferSize");
  k.work = allocate(static_cast<std::int64_t>(k.device_bytes));
  if (!k.info) k.info = allocate(sizeof(int));
  k.host_work.resize(host_bytes + 1);
  k.n = n;
  k.ld = ld;
  k.fp32 = fp32;
}

double time_potrf(void* a, std::int64_t n, std::int64_t ld, bool fp32, int& info) {
  Kept& k = kept();
  prepare_potrf(k, a, n, ld, fp32);
  const cudaDataType type = fp32 ? CUDA_R_32F : CUDA_R_64F;
  const double seconds = seconds_of(k, [&] {
    check(cusolverDnXpotrf(k.solver, k.params, CUBLAS_FILL_MODE_LOWER, n, type, a, ld, type,
                           k.work.get(), k.device_bytes, k.host_work.data(), k.host_work.size() - 1,
                           static_cast<int*>(k.info.get())),
          "cusolverDnXpotrf");
  });
  check(cudaMemcpy(&info, k.info.get(), sizeof info, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return seconds;
}

template <class T>
double time_batched(T* a, std::int64_t n, std::int64_t ld, std::int64_t count, int& info) {
  Kept& k = kept();
  std::vector<T*> pointers;
  for (std::int64_t b = 0; b < count; ++b) pointers.push_back(a + b * ld * n);
  std::vector<int> infos(pointers.size());
  const DeviceMemory array = allocate(count * static_cast<std::int64_t>(sizeof(T*)));
  const DeviceMemory info_array = allocate(count * static_cast<std::int64_t>(sizeof(int)));
  check(cudaMemcpy(array.get(), pointers.data(), pointers.size() * sizeof(T*),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  const double seconds = seconds_of(k, [&] {
    const auto order = static_cast<int>(n);
    const auto stride = static_cast<int>(ld);
    const auto matrices = static_cast<int>(count);
    auto* out = static_cast<int*>(info_array.get());
    auto** in = static_cast<T**>(array.get());
    if constexpr (sizeof(T) == 8) {
      check(cusolverDnDpotrfBatched(k.solver, CUBLAS_FILL_MODE_LOWER, order, in, stride, out,
                                    matrices),
            "cusolverDnDpotrfBatched");
    } else {
      check(cusolverDnSpotrfBatched(k.solver, CUBLAS_FILL_MODE_LOWER, order, in, stride, out,
                                    matrices),
            "cusolverDnSpotrfBatched");
    }
  });
  check(cudaMemcpy(infos.data(), info_array.get(), infos.size() * sizeof(int),
                   cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  const auto bad = std::find_if(infos.begin(), infos.end(), [](int i) { return i != 0; });
  info = bad == infos.end() ? 0 : *bad;
  return seconds;
}

void multiply(Kept& k, int m, int inner, const double* a, const double* b, double* c) {
  const double minus = -1;
  const double one = 1;
  check(cublasDgemm(k.blas, CUBLAS_OP_N, CUBLAS_OP_T, m, m, inner, &minus, a, m, b, m, &one, c, m),
        "cublasDgemm");
}
void multiply(Kept& k, int m, int inner, const float* a, const float* b, float* c) {
  const float minus = -1;
  const float one = 1;
  check(cublasSgemm(k.blas, CUBLAS_OP_N, CUBLAS_OP_T, m, m, inner, &minus, a, m, b, m, &one, c, m),
        "cublasSgemm");
}

/// The power that products draw depends on their values: random ones.
template <class T>
__global__ void fill_uniform(T* values, std::int64_t count) {
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  for (std::int64_t i = first; i < count; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    values[i] = static_cast<T>(2 * random_uniform(1, static_cast<std::uint64_t>(i)) - 1);
  }
}

template <class T>
double gemm_rate(double seconds) {
  Kept& k = kept();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  std::int64_t m = 16384;
  // Two matrices of order m: C, and A beside B, m × m/2 each.
  const auto bytes_of = [](std::int64_t order) {
    return 2 * order * order * static_cast<std::int64_t>(sizeof(T));
  };
  while (m > 256 && bytes_of(m) > static_cast<std::int64_t>(free_bytes / 10 * 9)) m /= 2;
  const std::int64_t inner = m / 2;
  const DeviceMemory memory = allocate(bytes_of(m));
  T* c = static_cast<T*>(memory.get());
  T* a = c + m * m;
  T* b = a + m * inner;
  fill_uniform<<<4096, kThreads>>>(c, 2 * m * m);
  check(cudaGetLastError(), "fill_uniform");
  const auto run = [&](int times) {
    return seconds_of(k, [&] {
      for (int r = 0; r < times; ++r) {
        multiply(k, static_cast<int>(m), static_cast<int>(inner), a, b, c);
      }
    });
  };
  (void)run(1);
  const double once = run(1);
  const int times = std::max(1, static_cast<int>(std::lround(seconds / once)));
  const double elapsed = run(times);
  return 2.0 * static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(inner) *
         times / elapsed;
}

}  // namespace

extern "C" int strata_bench_fill(void* a, std::int64_t n, std::int64_t ld, std::int64_t count,
                                 bool fp32, TestMatrix matrix, char* message,
                                 std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    fp32 ? fill_matrices<float>(a, n, ld, count, matrix)
         : fill_matrices<double>(a, n, ld, count, matrix);
  });
}

extern "C" int strata_bench_residual(const void* l, std::int64_t n, std::int64_t ld, bool fp32,
                                     TestMatrix matrix, double* result, char* message,
                                     std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(l);
    *result = fp32 ? residual<float>(l, n, ld, matrix) : residual<double>(l, n, ld, matrix);
  });
}

extern "C" int strata_bench_free_bytes(std::int64_t* bytes, char* message,
                                       std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    *bytes = static_cast<std::int64_t>(free_bytes);
  });
}

extern "C" int strata_cusolver_potrf(void* a, std::int64_t n, std::int64_t ld, bool fp32,
                                     double* seconds, int* info, char* message,
                                     std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    *seconds = time_potrf(a, n, ld, fp32, *info);
  });
}

extern "C" int strata_cusolver_potrf_batched(void* a, std::int64_t n, std::int64_t ld,
                                             std::int64_t count, bool fp32, double* seconds,
                                             int* info, char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    use_device_of(a);
    *seconds = fp32 ? time_batched(static_cast<float*>(a), n, ld, count, *info)
                    : time_batched(static_cast<double*>(a), n, ld, count, *info);
  });
}

extern "C" int strata_dgemm_rate(bool fp32, double seconds, double* flops_per_second, char* message,
                                 std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    *flops_per_second = fp32 ? gemm_rate<float>(seconds) : gemm_rate<double>(seconds);
  });
}

// The interface and its declaration stay the same.
static_assert(std::is_same_v<decltype(strata_bench_fill), strata::bench::BenchFill>);
static_assert(std::is_same_v<decltype(strata_bench_residual), strata::bench::BenchResidual>);
static_assert(std::is_same_v<decltype(strata_bench_free_bytes), strata::bench::BenchFreeBytes>);
static_assert(std::is_same_v<decltype(strata_cusolver_potrf), strata::bench::CusolverPotrf>);
static_assert(
    std::is_same_v<decltype(strata_cusolver_potrf_batched), strata::bench::CusolverPotrfBatched>);
static_assert(std::is_same_v<decltype(strata_dgemm_rate), strata::bench::DgemmRate>);
