#pragma once
// Half: IEEE 754 binary16, a format of storage.
//
// Contract: 1 sign bit, 5 of exponent, 10 of fraction; the largest number is 65,504, the smallest
// normal one 2^-14, the smallest of all 2^-24. From float and double it rounds to nearest, ties to
// even, at once: a double is not rounded to float first. Magnitudes from 65,520 on become infinity.
// To float and double it is exact. A NaN stays a NaN with its sign; its payload is not kept. There
// is no arithmetic. The default rounding mode of the processor is assumed.
// Source: IEEE 754-2019, section 3.6 (the format) and 4.3.1 (the rounding).

#include <bit>
#include <cstdint>

#include "scalar/rounding.hpp"
#include "strata/element.hpp"

namespace strata {

struct Half {
  std::uint16_t bits = 0;

  static constexpr double kMax = 65504;         ///< largest finite number
  static constexpr double kMin = 0x1p-14;       ///< smallest normal number
  static constexpr double kSmallest = 0x1p-24;  ///< smallest number above 0, subnormal
  static constexpr double kRoundoff = 0x1p-11;  ///< u: |fl(x) − x| <= u·|x| for kMin <= |x| <= kMax
  static constexpr double kInfiniteFrom = 65520;  ///< the tie of 65,504 and 65,536, which is even

  // What rounding.hpp asks for. 65,536 has the code of infinity.
  static constexpr int kFraction = 10;
  static constexpr int kExponent = -14;
  static constexpr double kClampAt = 65536;
  static constexpr std::uint16_t kClampCode = 0x7c00;
  static constexpr std::uint16_t kNanBits = 0x7e00;

  constexpr Half() = default;
  explicit constexpr Half(double x) noexcept : bits(rounding::code_of<Half, std::uint16_t>(x)) {}
  explicit constexpr Half(float x) noexcept : bits(rounding::code_of<Half, std::uint16_t>(x)) {}
  [[nodiscard]] static constexpr Half from_bits(std::uint16_t bits) noexcept {
    Half half;
    half.bits = bits;
    return half;
  }

  /// Whether Half(x) is infinity or its negative.
  template <class Real>
  [[nodiscard]] static constexpr bool overflows(Real x) noexcept {
    return rounding::reaches(x, rounding::magnitude_bits(static_cast<Real>(kInfiniteFrom)));
  }

  /// The fraction moves to the left, and the exponent grows by 112, the difference of the biases;
  /// by as much again for infinity and NaN. A subnormal number's fraction f becomes 2^-14·(1 + f),
  /// with the exponent of the smallest normal number, from which 2^-14 is subtracted again.
  explicit constexpr operator float() const noexcept {
    constexpr std::int32_t kRebias = 112 << 23;
    constexpr std::int32_t kSmallestNormal = 113 << 23;
    const std::int32_t code = bits & 0x7fff;
    const std::int32_t moved = (code << 13) + kRebias + (code < 0x7c00 ? 0 : kRebias);
    const std::int32_t larger = moved + (code < 0x0400 ? 1 << 23 : 0);
    const std::int32_t excess = code < 0x0400 ? kSmallestNormal : 0;
    const float value = std::bit_cast<float>(larger) - std::bit_cast<float>(excess);
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  explicit constexpr operator double() const noexcept { return static_cast<float>(*this); }
};

template <>
inline constexpr Element element_of<Half> = Element::fp16;

}  // namespace strata
