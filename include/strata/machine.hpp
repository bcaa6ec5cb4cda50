#pragma once
// Machine: what plan() and simulate() know of the hardware. Pure data.
//
// Contract: budgets bound what a plan may use; rates serve prediction only. Predictions decide
// which tile and how many queues are fastest, where a caller leaves that open, and whether GPUs,
// CPUs or both of them factor a sparse matrix, where both are named. A tile and a backend change
// the rounding of a result; nothing else here does. All sizes are bytes, all times seconds.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/element.hpp"

namespace strata {

enum class DeviceKind : std::uint8_t { cpu, gpu };

/// Time of a transfer of b bytes: latency_seconds + b / bytes_per_second.
struct LinkRate {
  double bytes_per_second = 0;
  double latency_seconds = 0;
};

/// One measured kernel: how long an isolated call on full tiles took, but no less than at the rate
/// that the device sustains.
struct KernelRate {
  std::string operation;          ///< "gemm", "potrf", …
  std::vector<Element> elements;  ///< of all its operands, in their order
  double flops = 0;               ///< of that call
  double seconds = 0;             ///< of that call
  /// The share of the device's rate that the call takes from kernels beside it, 0 to 1; 0: not
  /// measured.
  double share = 0;
};

/// A kernel that a device has.
struct KernelName {
  std::string operation;
  std::vector<Element> elements;  ///< of all its operands, in their order
};

struct DeviceModel {
  std::string name;  ///< "host:0", "cuda:1", "emulated:2"
  DeviceKind kind = DeviceKind::gpu;
  std::int64_t memory_bytes = 0;  ///< the budget
  int compute_queues = 2;
  LinkRate host_to_device;
  LinkRate device_to_host;
  /// How fast the threads of the host that serve the device fill and empty its bounce buffers, from
  /// and to pageable memory; the latency is each buffer's. They are page-locked, and blocks that do
  /// not rest in page-locked memory are staged through them. Without a rate (not measured, or a
  /// CPU) nothing is.
  LinkRate staging{};
  std::int64_t bounce_buffer_bytes = std::int64_t{8} << 20;
  int bounce_buffers = 12;  ///< in each direction
  /// The most that all compute queues together sustain, by the element that a kernel computes in
  /// (that of its first operand); prediction shares it.
  std::array<double, kElements> flops_per_second{};
  std::vector<KernelRate> kernels;
  /// The kernels that the device's backend has; absent: everything.
  std::optional<std::vector<KernelName>> available{};

  [[nodiscard]] double& rate(Element element) {
    return flops_per_second[static_cast<std::size_t>(element)];
  }
  [[nodiscard]] double rate(Element element) const {
    return flops_per_second[static_cast<std::size_t>(element)];
  }
};

/// Files in which blocks rest that host memory does not hold.
struct StorageModel {
  LinkRate read;   ///< of whole blocks, into host memory
  LinkRate write;  ///< likewise, out of it
  /// What a plan may use of host memory for blocks between storage and the devices. 0: devices read
  /// and write storage themselves, as CPUs do whose memory is the host's.
  std::int64_t host_bytes = 0;
};

struct Machine {
  std::vector<DeviceModel> devices;
  /// From any device to any other of its kind, as if each pair had a link of its own; without a
  /// rate there is none, and what devices have to tell each other goes through the host.
  LinkRate device_to_device;
  /// Rate of page-locking host memory during a run; without a rate it takes no time.
  double pinning_bytes_per_second = 0;
  std::int64_t host_memory_bytes = 0;
  /// Where families rest that say so (BlockFamily::in_storage); without it they rest in host
  /// memory.
  std::optional<StorageModel> storage{};
  /// `count` equal devices with `memory_bytes` each and round, made-up rates (50 GB/s links, 50
  /// TFLOP/s FP64), without links between the devices.
  [[nodiscard]] static Machine emulated(int count, std::int64_t memory_bytes);
};

/// How a plan manages device memory (the literature's policies, and ours).
enum class Policy : std::uint8_t {
  sync,   ///< nothing stays; one queue
  async,  ///< nothing stays; several queues
  v1,     ///< the accumulator stays
  v2,     ///< v1, and operands, least recently used evicted first
  v3,     ///< v2, and the diagonal tile retained until its column is solved
  opt,    ///< furthest-next-use eviction and an order of tasks that reuses more
  idle,   ///< the longest idle leaves, but for what tasks retain; of LU by stripes
};

}  // namespace strata
