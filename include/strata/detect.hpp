#pragma once
// The machine at hand, for plan() and simulate().
//
// Contract: looks at the devices; nothing is measured or allocated.

#include <cstdint>
#include <string>

#include "strata/machine.hpp"

namespace strata {

/// The devices named by `devices` ("auto", "host:2" for two CPU devices, "cuda:0,1"), each with a
/// budget of `memory_bytes` (0: what is free), and nominal rates until they are calibrated. Throws
/// Error{misuse} for other text, Error{device} if there is no such device.
[[nodiscard]] Machine detect_machine(const std::string& devices = "auto",
                                     std::int64_t memory_bytes = 0);

}  // namespace strata
