#pragma once
// x·2^e by products, for loops over many numbers, on CPUs and GPUs alike.
//
// Contract: pure; the bits of std::scalbn, which is a call for each number and no part of a vector
// loop.

#include <bit>
#include <cstdint>

namespace strata {

/// Exponents whose power is a normal number, so that one product is rounded once.
inline constexpr int kPowerLeast = -1022;
inline constexpr int kPowerMost = 1023;

/// 2^e for kPowerLeast <= e <= kPowerMost.
[[nodiscard]] constexpr double power_of_two(std::int64_t e) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
}

/// Where a power is out of range, by three: if an intermediate product is rounded as a subnormal
/// number, the result is far below half of the smallest one, and zero either way.
[[nodiscard]] constexpr double scaled_by_power(double x, std::int64_t e) noexcept {
  constexpr std::int64_t kFar = 2200;  // beyond it every number is zero, or infinite
  if (kPowerLeast <= e && e <= kPowerMost) return x * power_of_two(e);
  e = e < -kFar ? -kFar : e;
  e = e > kFar ? kFar : e;
  const std::int64_t third = e / 3;
  return x * power_of_two(third) * power_of_two(third) * power_of_two(e - 2 * third);
}

}  // namespace strata
