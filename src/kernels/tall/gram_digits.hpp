#pragma once
// Numbers as digits of eight bits, by which gram.hpp's kDigitSums are formed.
//
// Contract: of a column whose magnitudes are below 2^e (digit_exponent) a number x becomes the
// integer nearest x·2^(102−e), ties to even, and that thirteen digits d₀ … d₁₂ from −128 to 127, d₀
// of most weight, 256^12. Only numbers below 2^-49 of 2^e lose anything by it, at most 2^-103 of
// 2^e. A product is Σ d_i·d'_j·256^(24−i−j) over i + j <= 12, in units of both columns; what is
// left out is at most 14·2^-102 of 2^e·2^e', and nothing where both have no more than seven digits.

namespace strata {

inline constexpr int kDigits = 13;
inline constexpr int kDigitRows = 32;   ///< for which exponents of columns are the same
inline constexpr int kNoNumber = 2047;  ///< the biased exponent of what is not finite

/// e of a column whose largest magnitude has this biased exponent. In columns below 2^-938 it is as
/// if one was.
[[nodiscard]] constexpr int digit_exponent(int field) noexcept {
  return field < 84 ? -938 : field - 1022;
}

}  // namespace strata
