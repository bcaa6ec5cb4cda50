#pragma once
// HostDevice: the CPU as a device of bounded memory.
//
// Contract: as device.hpp. Device memory is host memory that is counted against a budget; each
// queue is one worker thread that runs functions in order. Several HostDevices with small budgets
// exist side by side in any test.

#include <memory>

#include "device/device.hpp"

namespace strata {

/// A CPU device called "host:`index`" with `budget_bytes` of memory.
[[nodiscard]] std::unique_ptr<Device> make_host_device(int index, std::int64_t budget_bytes);

/// What the CPU is: its model name, free memory, and one compute queue for each core this process
/// may use.
[[nodiscard]] DeviceDescription describe_host();

}  // namespace strata
