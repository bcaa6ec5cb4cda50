#pragma once
// The list of jobs of a branch (kernels/front_program.hpp).
//
// Contract: jobs are listed as a machine with kWorkers equal workers would begin them if it always
// took, of what can be done, what the longest way to the end waits for (list scheduling by critical
// path; Graham 1969). The list changes the order in time only, and no bit.

#include <cstdint>
#include <vector>

#include "kernels/front_program.hpp"

namespace strata {

/// Completes the records of a branch's fronts, which are in postorder (their children, cuts and
/// flags), and appends the program to the structure, which begins at `begin` of the list: width,
/// rows, parent, places and all else is there already. `updates`: elements of work memory that
/// updates take. Returns how many it needs, in all, of `element_bytes` each.
[[nodiscard]] std::int64_t append_program(std::vector<FrontRecord> fronts, std::int64_t updates,
                                          std::int64_t element_bytes, std::int64_t begin,
                                          std::vector<std::int32_t>& structure);

}  // namespace strata
