#pragma once
// Memory for what a file announces.
//
// Contract: a size that comes from a file is checked for overflow and against this machine's memory
// before anything is allocated.

#include <cstdint>
#include <string>

namespace strata {

/// rows · cols, both >= 0, as the number of elements of `element_bytes` each. Throws Error{memory},
/// naming `name` and the sizes, if they exceed this machine's physical memory.
[[nodiscard]] std::int64_t checked_elements(std::int64_t rows, std::int64_t cols,
                                            std::int64_t element_bytes, const char* where,
                                            const std::string& name);

}  // namespace strata
