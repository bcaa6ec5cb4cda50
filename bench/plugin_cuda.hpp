#pragma once
// What the sources of libstrata_peers_cuda.so share.
//
// Contract: inside the plugin errors are exceptions; `guarded` turns them into what cuda_peers.hpp
// promises. For CUDA sources only.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace strata::bench {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

struct DeviceFree {
  void operator()(void* p) const { cudaFree(p); }
};
/// Memory of the GPU that is used.
using DeviceMemory = std::unique_ptr<void, DeviceFree>;

inline DeviceMemory allocate(std::size_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, bytes > 0 ? bytes : 1), "cudaMalloc");
  return DeviceMemory(p);
}

/// The GPU of a pointer becomes the one that is used; returns its index.
inline int use_device_of(const void* data) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  if (attributes.type != cudaMemoryTypeDevice) throw std::runtime_error("not device memory");
  check(cudaSetDevice(attributes.device), "cudaSetDevice");
  return attributes.device;
}

template <class F>
int guarded(char* message, std::int64_t message_bytes, F&& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, static_cast<std::size_t>(message_bytes), "%s", error.what());
    return -1;
  }
}

}  // namespace strata::bench
