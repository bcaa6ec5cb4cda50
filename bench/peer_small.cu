// Part of libstrata_peers_cuda.so: many small products by cuBLAS. See cuda_peers.hpp.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "bench/cuda_peers.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using strata::bench::allocate;
using strata::bench::check;
using strata::bench::DeviceMemory;
using strata::bench::guarded;

void check_status(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " +
                             std::to_string(static_cast<int>(status)));
}

/// A handle on a stream of its own, kept; never destroyed, since the driver may be gone by then.
struct Lane {
  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
};

/// At least so many of the GPU that is used.
const std::vector<Lane>& lanes_of(std::size_t count) {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  static auto& all = *std::make_unique<std::map<int, std::vector<Lane>>>().release();
  std::vector<Lane>& lanes = all[device];
  while (lanes.size() < count) {
    Lane lane;
    check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check_status(cublasCreate(&lane.blas), "cublasCreate");
    check_status(cublasSetStream(lane.blas, lane.stream), "cublasSetStream");
    lanes.push_back(lane);
  }
  return lanes;
}

double run(std::int64_t n, std::int64_t batch, int streams, std::int64_t count) {
  const auto each = static_cast<std::size_t>(n * n);
  const auto all = static_cast<std::size_t>(count);
  const DeviceMemory numbers = allocate(3 * all * each * sizeof(double));
  check(cudaMemset(numbers.get(), 0, 3 * all * each * sizeof(double)), "cudaMemset");
  std::vector<double*> places(3 * all);
  for (std::size_t k = 0; k < places.size(); ++k)
    places[k] = static_cast<double*>(numbers.get()) + k * each;
  const DeviceMemory pointers = allocate(places.size() * sizeof(double*));
  check(cudaMemcpy(pointers.get(), places.data(), places.size() * sizeof(double*),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  auto** there = static_cast<double**>(pointers.get());
  const auto some = static_cast<std::size_t>(streams);
  const std::vector<Lane>& lanes = lanes_of(some);
  const auto order = static_cast<int>(n);
  const double minus = -1;
  const double one = 1;
  double seconds = 0;
  for (int turn = 0; turn < 2; ++turn) {  // of which the first loads kernels
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    std::size_t next = 0;
    for (std::int64_t k = 0; k < count; k += batch, ++next) {
      const Lane& lane = lanes[next % some];
      check_status(cublasDgemmBatched(lane.blas, CUBLAS_OP_N, CUBLAS_OP_T, order, order, order,
                                      &minus, there + k, order, there + count + k, order, &one,
                                      there + 2 * count + k, order,
                                      static_cast<int>(std::min(batch, count - k))),
                   "cublasDgemmBatched");
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return seconds;
}

}  // namespace

extern "C" int strata_small_products(std::int64_t n, std::int64_t batch, int streams,
                                     std::int64_t count, double* seconds, char* message,
                                     std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] { *seconds = run(n, batch, streams, count); });
}
