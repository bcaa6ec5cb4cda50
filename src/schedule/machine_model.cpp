#include "schedule/machine_model.hpp"

#include <algorithm>
#include <cmath>

namespace strata {

double device_flops_per_second(const DeviceModel& device, Precision precision) {
  const double rate =
      precision == Precision::fp32 ? device.flops_per_second_fp32 : device.flops_per_second_fp64;
  return std::max(rate, 1.0);
}

double kernel_seconds(const DeviceModel& device, Operation operation, Precision precision,
                      double flops) {
  const KernelRate* below = nullptr;
  const KernelRate* above = nullptr;
  for (const KernelRate& k : device.kernels) {
    if (k.precision != precision || k.operation != to_string(operation) || k.seconds <= 0) continue;
    if (k.flops <= flops && (below == nullptr || k.flops > below->flops)) below = &k;
    if (k.flops >= flops && (above == nullptr || k.flops < above->flops)) above = &k;
  }
  if (below == nullptr && above == nullptr) {
    constexpr double kCovarianceFlops =
        50;  // an element costs about as much as this many operations
    const double work = operation == Operation::covariance ? kCovarianceFlops * flops : flops;
    return work / (device_flops_per_second(device, precision) / device.compute_queues);
  }
  const auto rate = [](const KernelRate& k) { return k.flops / k.seconds; };
  if (above == nullptr) return flops / rate(*below);
  // A smaller call than any measured one is bound by latency, not by its flops.
  if (below == nullptr) return above->seconds * std::max(0.1, std::cbrt(flops / above->flops));
  if (below == above || below->flops == above->flops) return flops / rate(*below);
  const double t = (std::cbrt(flops) - std::cbrt(below->flops)) /
                   (std::cbrt(above->flops) - std::cbrt(below->flops));
  return flops / (rate(*below) + t * (rate(*above) - rate(*below)));
}

double kernel_share(const DeviceModel& device, Operation operation, Precision precision,
                    double flops) {
  double share = 0;
  double nearest = 0;
  for (const KernelRate& k : device.kernels) {
    if (k.precision != precision || k.operation != to_string(operation)) continue;
    if (k.share <= 0 || k.flops <= 0 || flops <= 0) continue;
    const double likeness = std::min(k.flops / flops, flops / k.flops);
    if (likeness <= nearest) continue;
    nearest = likeness;
    share = k.share;
  }
  if (share > 0) return std::min(share, 1.0);
  const double seconds = kernel_seconds(device, operation, precision, flops);
  return std::clamp(flops / seconds / device_flops_per_second(device, precision), 1e-6, 1.0);
}

const DeviceModel* measured_model(const Machine& rates, const std::string& name) {
  const auto kind = [](const std::string& of) { return of.substr(0, of.find(':')); };
  const DeviceModel* found = nullptr;
  for (const DeviceModel& device : rates.devices) {
    if (device.name == name) return &device;
    if (found == nullptr && kind(device.name) == kind(name)) found = &device;
  }
  return found;
}

Machine Machine::emulated(int count, std::int64_t memory_bytes) {
  Machine machine;
  machine.host_memory_bytes = std::int64_t{1} << 40;
  for (int d = 0; d < count; ++d) {
    DeviceModel device;
    device.name = "emulated:" + std::to_string(d);
    device.memory_bytes = memory_bytes;
    device.host_to_device = {50e9, 5e-6};
    device.device_to_host = {50e9, 5e-6};
    device.flops_per_second_fp64 = 50e12;
    device.flops_per_second_fp32 = 50e12;
    machine.devices.push_back(device);
  }
  return machine;
}

}  // namespace strata
