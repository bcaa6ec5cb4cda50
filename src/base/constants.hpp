#pragma once
// Constants of mathematics and of the double.

#include <limits>

namespace strata {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kDegrees = 180 / kPi;  ///< of a radian
/// Unit roundoff u of fp64: |fl(x) − x| <= u·|x| where nothing overflows or underflows.
inline constexpr double kUnitRoundoff = 0x1p-53;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace strata
