#pragma once
// Tables of comma-separated values, apart from the file system.
//
// Contract: as read_csv and Table.

#include "io/file.hpp"
#include "strata/io.hpp"

namespace strata {

/// Throws Error{input, memory}.
[[nodiscard]] Table parse_csv(FileBytes file);

}  // namespace strata
