#pragma once
// How much memory the host has left.
//
// Contract: a figure for messages and default budgets; another process may take it meanwhile.

#include <cstdint>

namespace strata {

/// Bytes that programs can still have without swapping: MemAvailable of /proc/meminfo, or what the
/// system calls free where there is no such file.
[[nodiscard]] std::int64_t available_host_memory();

}  // namespace strata
