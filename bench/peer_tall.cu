// Part of libstrata_peers_cuda.so: what cuBLAS and cuSOLVER do with a tall matrix in device memory,
// and how fast that memory is read. See cuda_peers.hpp.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <memory>

#include "bench/cuda_peers.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using strata::bench::check;
using strata::bench::guarded;
using strata::bench::TallWork;
using strata::bench::use_device_of;

void check_status(int status, const char* what) {
  if (status != 0)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}

struct DeviceFree {
  void operator()(void* p) const { cudaFree(p); }
};
std::unique_ptr<double, DeviceFree> doubles(std::int64_t count) {
  void* p = nullptr;
  check(cudaMalloc(&p, static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(double)),
        "cudaMalloc");
  return std::unique_ptr<double, DeviceFree>(static_cast<double*>(p));
}

/// Handles of one GPU, kept; never destroyed, since the driver may be gone by then.
struct Handles {
  int device = -1;
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

Handles& handles_of(int device) {
  static Handles& h = *std::make_unique<Handles>().release();
  if (h.device == device) return h;
  check_status(cublasCreate(&h.blas), "cublasCreate");
  check_status(cusolverDnCreate(&h.solver), "cusolverDnCreate");
  check(cudaEventCreate(&h.begin), "cudaEventCreate");
  check(cudaEventCreate(&h.end), "cudaEventCreate");
  h.device = device;
  return h;
}

constexpr int kThreads = 512;

/// Adds up all elements, so that they have to be read.
__global__ void __launch_bounds__(kThreads)
    read_all(const double2* v, std::int64_t pairs, double* to) {
  double sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  std::int64_t k = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  for (; k + 3 * step < pairs; k += 4 * step) {
    double2 x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = __ldcs(v + k + i * step);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += x[i].x + x[i].y;
  }
  for (; k < pairs; k += step) sum += v[k].x + v[k].y;
  if (sum == 0.123456789) *to = sum;
}

void start_read(const double* v, std::int64_t count, double* to) {
  read_all<<<132 * 8, kThreads>>>(reinterpret_cast<const double2*>(v), count / 2, to);
  check(cudaGetLastError(), "read_all");
}

struct Tall {
  double* v;
  std::int64_t m, n, ld;
};

void gemm_gram(const Handles& h, const Tall& t, double* b) {
  const double one = 1;
  const double zero = 0;
  check_status(cublasDgemm_64(h.blas, CUBLAS_OP_T, CUBLAS_OP_N, t.n, t.n, t.m, &one, t.v, t.ld, t.v,
                              t.ld, &zero, b, t.n),
               "cublasDgemm");
}
void syrk_gram(const Handles& h, const Tall& t, double* b) {
  const double one = 1;
  const double zero = 0;
  check_status(cublasDsyrk_64(h.blas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, t.n, t.m, &one, t.v,
                              t.ld, &zero, b, t.n),
               "cublasDsyrk");
}

/// What geqrf, orgqr or potrf need beside the matrix, made before the time begins.
struct Work {
  std::unique_ptr<double, DeviceFree> b, memory, tau;
  int count = 0;
  int* info = nullptr;
};
Work work_of(const Handles& h, const Tall& t) {
  Work w;
  w.b = doubles(t.n * t.n);
  int geqrf = 0;
  int orgqr = 0;
  int potrf = 0;
  const int m = static_cast<int>(t.m);
  const int n = static_cast<int>(t.n);
  const int ld = static_cast<int>(t.ld);
  check_status(cusolverDnDgeqrf_bufferSize(h.solver, m, n, t.v, ld, &geqrf), "geqrf_bufferSize");
  check_status(cusolverDnDorgqr_bufferSize(h.solver, m, n, n, t.v, ld, t.v, &orgqr),
               "orgqr_bufferSize");
  check_status(
      cusolverDnDpotrf_bufferSize(h.solver, CUBLAS_FILL_MODE_UPPER, n, w.b.get(), n, &potrf),
      "potrf_bufferSize");
  w.count = geqrf > orgqr ? geqrf : orgqr;
  w.count = potrf > w.count ? potrf : w.count;
  w.memory = doubles(w.count);
  w.tau = doubles(t.n + 1);
  w.info = reinterpret_cast<int*>(w.tau.get() + t.n);
  return w;
}

void householder(const Handles& h, const Tall& t, const Work& w) {
  const int m = static_cast<int>(t.m);
  const int n = static_cast<int>(t.n);
  const int ld = static_cast<int>(t.ld);
  check_status(
      cusolverDnDgeqrf(h.solver, m, n, t.v, ld, w.tau.get(), w.memory.get(), w.count, w.info),
      "geqrf");
  check_status(
      cusolverDnDorgqr(h.solver, m, n, n, t.v, ld, w.tau.get(), w.memory.get(), w.count, w.info),
      "orgqr");
}
void cholesky_qr(const Handles& h, const Tall& t, const Work& w) {
  const double one = 1;
  gemm_gram(h, t, w.b.get());
  const int n = static_cast<int>(t.n);
  check_status(cusolverDnDpotrf(h.solver, CUBLAS_FILL_MODE_UPPER, n, w.b.get(), n, w.memory.get(),
                                w.count, w.info),
               "potrf");
  check_status(cublasDtrsm_64(h.blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                              CUBLAS_DIAG_NON_UNIT, t.m, t.n, &one, w.b.get(), t.n, t.v, t.ld),
               "trsm");
}

double time_of(const Tall& t, TallWork what) {
  const Handles& h = handles_of(use_device_of(t.v));
  const Work w = work_of(h, t);
  check(cudaDeviceSynchronize(), "before");
  check(cudaEventRecord(h.begin), "event");
  switch (what) {
    case TallWork::read: start_read(t.v, t.ld * t.n, w.b.get()); break;
    case TallWork::gram_gemm: gemm_gram(h, t, w.b.get()); break;
    case TallWork::gram_syrk: syrk_gram(h, t, w.b.get()); break;
    case TallWork::cholesky_qr: cholesky_qr(h, t, w); break;
    case TallWork::householder: householder(h, t, w); break;
  }
  check(cudaEventRecord(h.end), "event");
  check(cudaDeviceSynchronize(), "after");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, h.begin, h.end), "time");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

extern "C" int strata_tall_time(double* v, std::int64_t m, std::int64_t n, std::int64_t ld,
                                TallWork what, double* seconds, char* message,
                                std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] { *seconds = time_of({v, m, n, ld}, what); });
}

static_assert(std::is_same_v<decltype(strata_tall_time), strata::bench::TallTime>);
