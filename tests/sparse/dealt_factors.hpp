#pragma once
// Factors that several devices hold between them, for tests: what is asked of them.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sparse/fronts/front_layout.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"

namespace strata::test {

inline std::vector<SparseMatrix> dealt_matrices() { return front_matrices(61); }

inline FrontSizes dealt_to(std::int64_t devices, std::int64_t range_bytes = kRangesThatStay) {
  FrontSizes sizes = whole_tree();
  sizes.range_bytes = range_bytes;
  sizes.devices = devices;
  sizes.free_handover = true;
  return sizes;
}
/// The same where devices make large fronts together.
inline FrontSizes shared_by(std::int64_t devices) {
  FrontSizes sizes = dealt_to(devices);
  sizes.shares = 1;
  return sizes;
}
inline std::int64_t shared_units(const FrontLayout& layout) {
  return std::count_if(layout.units.begin(), layout.units.end(),
                       [](const FrontUnit& unit) { return unit.sharers > 1; });
}

}  // namespace strata::test
