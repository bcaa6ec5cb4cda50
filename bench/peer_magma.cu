// MAGMA in libstrata_peers_cuda.so. See magma.hpp, cuda_peers.hpp.

#include <chrono>
#include <cstdio>
#include <type_traits>

#include "bench/cuda_peers.hpp"
#include "bench/magma.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using strata::bench::check;
using strata::bench::guarded;
using strata::bench::MagmaLibrary;

const MagmaLibrary& magma() {
  static const MagmaLibrary& instance = *new MagmaLibrary;  // the driver may be gone at the end
  return instance;
}

/// By the clock of the host between two synchronizations of the GPU: MAGMA makes streams of its
/// own, which events of ours would not enclose.
template <class T>
double time_potrf(T* a, std::int64_t n, std::int64_t ld, int& info) {
  const int device = strata::bench::use_device_of(a);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto begin = std::chrono::steady_clock::now();
  info = magma().potrf(device, a, n, ld);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

extern "C" int strata_magma_start(char* version, std::int64_t version_bytes, char* message,
                                  std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    std::snprintf(version, static_cast<std::size_t>(version_bytes), "%s",
                  magma().version().c_str());
  });
}

extern "C" int strata_magma_potrf(void* a, std::int64_t n, std::int64_t ld, bool fp32,
                                  double* seconds, int* info, char* message,
                                  std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    *seconds = fp32 ? time_potrf(static_cast<float*>(a), n, ld, *info)
                    : time_potrf(static_cast<double*>(a), n, ld, *info);
  });
}

static_assert(std::is_same_v<decltype(strata_magma_start), strata::bench::MagmaStart>);
static_assert(std::is_same_v<decltype(strata_magma_potrf), strata::bench::MagmaPotrf>);
