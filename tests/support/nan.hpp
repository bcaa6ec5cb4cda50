#pragma once
// A double that is not a number.

#include <limits>

namespace strata::test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace strata::test
