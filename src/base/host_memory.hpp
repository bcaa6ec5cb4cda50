#pragma once
// Memory of the host: how much is left, and its pages.
//
// Contract: what is left is a figure for messages and default budgets; another process may take it
// meanwhile.

#include <cstddef>
#include <cstdint>

namespace strata {

/// Bytes that programs can still have without swapping: MemAvailable of /proc/meminfo, or what the
/// system calls free where there is no such file.
[[nodiscard]] std::int64_t available_host_memory();

/// The whole pages in [data, data + bytes).
struct WholePages {
  WholePages(std::byte* data, std::int64_t bytes);

  std::byte* first = nullptr;
  std::size_t size = 0;  ///< bytes; 0 if there is none
};

}  // namespace strata
