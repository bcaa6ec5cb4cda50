#pragma once
// Sizes of fronts that tests share.

#include <cstdint>

#include "sparse/fronts/front_layout.hpp"

namespace strata::test {

inline constexpr std::int64_t kWhole = std::int64_t{1} << 60;

inline FrontSizes whole_tree() {
  return {.panel_order = 4096, .branch_entries = kWhole, .program = 1};
}
inline FrontSizes in_ranges(std::int64_t bytes) {
  FrontSizes sizes = whole_tree();
  sizes.range_bytes = bytes;
  return sizes;
}

}  // namespace strata::test
