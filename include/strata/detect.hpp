#pragma once
// The machine at hand, for plan() and simulate().
//
// Contract: looks at the devices; nothing is measured, and nothing stays allocated.

#include <cstdint>
#include <string>

#include "strata/machine.hpp"
#include "strata/options.hpp"

namespace strata {

/// The devices named by `devices` ("auto", "host:2" for two CPU devices, "cuda:0,1"), each with a
/// budget of `memory_bytes` (0: what is free), and nominal rates until they are calibrated. Throws
/// Error{misuse} for other text, Error{device} if there is no such device.
[[nodiscard]] Machine detect_machine(const std::string& devices = "auto",
                                     std::int64_t memory_bytes = 0);

/// Adds storage: nominal rates of a solid-state disk for each of options.storage.directories, or
/// those of options.rates. Host memory, options.host_memory_bytes or half of what there is, is then
/// a place between it and the devices; where all are CPUs, without a budget of their own, they
/// divide it and compute there.
void add_storage(Machine& machine, const RunOptions& options);

/// Has the driver and the libraries do for the GPUs named by `devices` what they do once in a
/// process, before the first run on each. It takes some tenths of a second: a thread of its own may
/// do it while data are read. Throws as detect_machine(), and Error{device, memory}.
void start_devices(const std::string& devices = "auto");

}  // namespace strata
