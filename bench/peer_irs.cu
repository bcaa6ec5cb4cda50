// cuSOLVER's mixed-precision solver, cusolverDnIRSXgesv, of libstrata_peers_cuda.so. See
// cuda_peers.hpp.

#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/cuda_peers.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using namespace strata::bench;
using Clock = std::chrono::steady_clock;

void check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}
using strata::bench::check;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

cusolverPrecType_t lowest_of(IrsFactor factor) {
  switch (factor) {
    case IrsFactor::fp64: return CUSOLVER_R_64F;
    case IrsFactor::fp32: return CUSOLVER_R_32F;
    case IrsFactor::tf32: return CUSOLVER_R_TF32;
    case IrsFactor::fp16: return CUSOLVER_R_16F;
  }
  throw std::runtime_error("no such precision");
}

struct Destroy {
  void operator()(cusolverDnIRSParams_t p) const { cusolverDnIRSParamsDestroy(p); }
  void operator()(cusolverDnIRSInfos_t p) const { cusolverDnIRSInfosDestroy(p); }
};

void solve(const double* a, const double* b, double* x, std::int64_t n, IrsFactor factor,
           IrsSolution& out) {
  static cusolverDnHandle_t solver = [] {
    cusolverDnHandle_t handle = nullptr;
    check(cusolverDnCreate(&handle), "cusolverDnCreate");
    return handle;
  }();
  cusolverDnIRSParams_t made_params = nullptr;
  check(cusolverDnIRSParamsCreate(&made_params), "cusolverDnIRSParamsCreate");
  const std::unique_ptr<cusolverDnIRSParams, Destroy> params(made_params);
  cusolverDnIRSInfos_t made_infos = nullptr;
  check(cusolverDnIRSInfosCreate(&made_infos), "cusolverDnIRSInfosCreate");
  const std::unique_ptr<cusolverDnIRSInfos, Destroy> infos(made_infos);
  check(cusolverDnIRSParamsSetSolverPrecisions(params.get(), CUSOLVER_R_64F, lowest_of(factor)),
        "cusolverDnIRSParamsSetSolverPrecisions");
  check(cusolverDnIRSParamsSetRefinementSolver(params.get(), factor == IrsFactor::fp64
                                                                 ? CUSOLVER_IRS_REFINE_CLASSICAL
                                                                 : CUSOLVER_IRS_REFINE_GMRES),
        "cusolverDnIRSParamsSetRefinementSolver");
  const int order = static_cast<int>(n);
  std::size_t work_bytes = 0;
  check(cusolverDnIRSXgesv_bufferSize(solver, params.get(), order, 1, &work_bytes), "bufferSize");
  const std::size_t column = static_cast<std::size_t>(n) * sizeof(double);
  const DeviceMemory matrix = allocate(column * static_cast<std::size_t>(n));
  const DeviceMemory right = allocate(column);
  const DeviceMemory left = allocate(column);
  const DeviceMemory work = allocate(work_bytes);
  const DeviceMemory found = allocate(sizeof(int));
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const Clock::time_point start = Clock::now();
  check(cudaMemcpy(matrix.get(), a, column * static_cast<std::size_t>(n), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  check(cudaMemcpy(right.get(), b, column, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const Clock::time_point copied = Clock::now();
  int iterations = 0;
  check(cusolverDnIRSXgesv(solver, params.get(), infos.get(), order, 1, matrix.get(), order,
                           right.get(), order, left.get(), order, work.get(), work_bytes,
                           &iterations, static_cast<int*>(found.get())),
        "cusolverDnIRSXgesv");
  check(cudaDeviceSynchronize(), "cusolverDnIRSXgesv");
  out.call_seconds = since(copied);
  check(cudaMemcpy(x, left.get(), column, cudaMemcpyDeviceToHost), "cudaMemcpy");
  out.seconds = since(start);
  out.iterations = iterations;
  int info = 0;
  check(cudaMemcpy(&info, found.get(), sizeof info, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (info != 0) throw std::runtime_error("info " + std::to_string(info));
}

}  // namespace

extern "C" int strata_cusolver_irs(const double* a, const double* b, double* x, std::int64_t n,
                                   IrsFactor factor, int device, IrsSolution* out, char* message,
                                   std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check(cudaSetDevice(device), "cudaSetDevice");
    solve(a, b, x, n, factor, *out);
  });
}

// The interface and its declaration stay the same.
static_assert(std::is_same_v<decltype(strata_cusolver_irs), strata::bench::CusolverIrs>);
