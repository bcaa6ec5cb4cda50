#pragma once
// The Matrix Market format, apart from the file system.
//
// Contract: as read_mtx; `name` stands for the path in messages. The number of entries that a
// header announces is compared with the bytes that follow before anything is allocated.

#include <string>
#include <string_view>

#include "strata/io.hpp"

namespace strata {

/// Throws Error{input, memory}.
[[nodiscard]] MatrixMarket parse_mtx(std::string_view text, const std::string& name);

}  // namespace strata
