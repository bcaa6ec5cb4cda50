#pragma once
// Powers of two that bring the numbers of a positive definite system where nothing can happen to
// them.
//
// Contract: pure; exact, as only exponents change.

#include <cmath>

#include "strata/element.hpp"

namespace strata {

/// The exponent of a power of two by which numbers are divided whose largest magnitude is
/// `largest`. It is 0 in the middle of the range of fp32 or fp64, where neither sums of products
/// overflow nor products of elements of L lose digits; else an even one that makes it about 1.
[[nodiscard]] inline int exponent_out_of_range(double largest, Element precision) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  const int exponent = std::ilogb(largest);
  return std::abs(exponent) <= (element_of_parts(precision) == Element::fp32 ? 90 : 900)
             ? 0
             : exponent / 2 * 2;
}

}  // namespace strata
