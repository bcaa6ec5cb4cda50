#pragma once
// Times from a Machine: how long a kernel or a transfer is expected to take.
//
// Contract: prediction only. The time of a kernel comes from the measured call of the same
// operation and precision whose size is nearest (rates are interpolated over the cube root of the
// flops); without measurements it is flops over the device's rate. Never negative, never zero flops
// per second.

#include "schedule/task.hpp"
#include "strata/machine.hpp"

namespace strata {

/// The rate that all compute queues of a device reach together, in flop/s.
[[nodiscard]] double device_flops_per_second(const DeviceModel& device, Precision precision);

/// Seconds of one isolated call of `flops` floating-point operations.
[[nodiscard]] double kernel_seconds(const DeviceModel& device, Operation operation,
                                    Precision precision, double flops);

/// The share of the device's rate that a kernel takes from those beside it: as measured on the call
/// whose size is nearest, else its own rate over the device's. In (0, 1].
[[nodiscard]] double kernel_share(const DeviceModel& device, Operation operation,
                                  Precision precision, double flops);

/// What was measured of the device `name` ("cuda:1"), else of the first of its kind; null if
/// `rates` has none.
[[nodiscard]] const DeviceModel* measured_model(const Machine& rates, const std::string& name);

[[nodiscard]] inline double transfer_seconds(const LinkRate& link, std::int64_t bytes) {
  return link.latency_seconds + static_cast<double>(bytes) / link.bytes_per_second;
}

}  // namespace strata
