#pragma once
// What a task on complex numbers takes beside the same one on real numbers.
//
// Contract: operations say their work in multiplications and additions of elements; a complex pair
// of them is eight operations on parts, where a real pair is two.

#include "strata/element.hpp"

namespace strata {

/// By the element that a task writes.
[[nodiscard]] constexpr double work_factor(Element written) noexcept {
  return is_complex(written) ? 4 : 1;
}

}  // namespace strata
