#pragma once
// Fp8: eight bits, e4m3 in the variant without infinities ("FN"), a format of storage.
//
// Contract: 1 sign bit, 4 of exponent, 3 of fraction; the largest number is 448, the smallest
// normal one 2^-6, the smallest of all 2^-9; 0x7f and 0xff are NaN and there is no infinity. From
// float and double it rounds to nearest, ties to even, at once: a double is not rounded to float
// first. It saturates: magnitudes above 448, infinities too, become 448, and `overflows(x)` says
// whether that is because x lies past what rounds to 448, above 464. To float and double it is
// exact. A NaN stays a NaN with its sign. There is no arithmetic. The default rounding mode is
// assumed. Source: OCP 8-bit Floating Point Specification (OFP8), revision 1.0, 2023, sections 5.1
// and 5.2.

#include <array>
#include <bit>
#include <cstdint>

#include "scalar/rounding.hpp"
#include "strata/element.hpp"

namespace strata {

struct Fp8 {
  std::uint8_t bits = 0;

  static constexpr double kMax = 448;          ///< largest number
  static constexpr double kMin = 0x1p-6;       ///< smallest normal number
  static constexpr double kSmallest = 0x1p-9;  ///< smallest number above 0, subnormal
  static constexpr double kRoundoff = 0x1p-4;  ///< u: |fl(x) − x| <= u·|x| for kMin <= |x| <= kMax

  // What rounding.hpp asks for: the tie of 448 and 480, which goes to 448, whose code is even.
  static constexpr int kFraction = 3;
  static constexpr int kExponent = -6;
  static constexpr double kClampAt = 464;
  static constexpr std::uint8_t kClampCode = 0x7e;
  static constexpr std::uint8_t kNanBits = 0x7f;

  constexpr Fp8() = default;
  explicit constexpr Fp8(double x) noexcept : bits(rounding::code_of<Fp8, std::uint8_t>(x)) {}
  explicit constexpr Fp8(float x) noexcept : bits(rounding::code_of<Fp8, std::uint8_t>(x)) {}
  [[nodiscard]] static constexpr Fp8 from_bits(std::uint8_t bits) noexcept {
    Fp8 fp8;
    fp8.bits = bits;
    return fp8;
  }
  /// Whether Fp8(x) is 448 or -448 only because there is nothing larger.
  template <class Real>
  [[nodiscard]] static constexpr bool overflows(Real x) noexcept {
    return rounding::reaches(x, rounding::magnitude_bits(static_cast<Real>(kClampAt)) + 1);
  }

  explicit constexpr operator float() const noexcept;
  explicit constexpr operator double() const noexcept { return static_cast<float>(*this); }
};

template <>
inline constexpr Element element_of<Fp8> = Element::fp8;

/// The value of each code: (-1)^s · 2^(max(E, 1) − 7) · (f/8 + (E > 0)), and NaN at 0x7f and 0xff.
inline constexpr std::array<float, 256> kFp8Values = [] {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::uint32_t exponent = code >> 3 & 15U;
    const auto eighths = static_cast<float>((code & 7U) + (exponent > 0 ? 8U : 0U));
    const float value = eighths * static_cast<float>(2U << (exponent > 0 ? exponent - 1 : 0U));
    const auto bits = std::bit_cast<std::uint32_t>(value * 0x1p-10F);
    const bool nan = (code & 0x7fU) == 0x7fU;
    values[code] = std::bit_cast<float>((nan ? 0x7fc00000U : bits) | (code & 0x80U) << 24);
  }
  return values;
}();

constexpr Fp8::operator float() const noexcept { return kFp8Values[bits]; }

}  // namespace strata
