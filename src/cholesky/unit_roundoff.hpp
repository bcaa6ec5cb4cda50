#pragma once
// The unit roundoff of fp64: |fl(x) − x| <= u·|x| where nothing overflows or underflows.

namespace strata {

inline constexpr double kUnitRoundoff = 0x1p-53;

}  // namespace strata
