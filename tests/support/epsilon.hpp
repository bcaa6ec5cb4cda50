#pragma once
// The distance from 1 to the next double.

#include <limits>

namespace strata::test {

inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

}  // namespace strata::test
