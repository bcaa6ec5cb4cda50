#pragma once
// Counter-based random numbers: a value is a pure function of (seed, index).
//
// Contract: the same on every machine and in any order of evaluation, so that a matrix can be
// generated tile by tile on any device. The mixing function is SplitMix64 (Steele, Lea, Flood,
// "Fast splittable pseudorandom number generators", 2014).

#include <cmath>
#include <cstdint>

namespace strata {

[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed,
                                                  std::uint64_t index) noexcept {
  std::uint64_t z = seed * 0xd1342543de82ef95ULL + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Uniform in [0, 1).
[[nodiscard]] constexpr double random_uniform(std::uint64_t seed, std::uint64_t index) noexcept {
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}

/// Standard normal, by Box and Muller.
[[nodiscard]] inline double random_normal(std::uint64_t seed, std::uint64_t index) noexcept {
  const double u = 1.0 - random_uniform(seed, 2 * index);
  const double v = random_uniform(seed, 2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586476925286766559 * v);
}

}  // namespace strata
