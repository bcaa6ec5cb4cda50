#pragma once
// Numbers whose exponents are kept apart, for residuals below the least double.
//
// Contract: a number is value·2^exponent, and 0 where value is. What is rounded to a double is not
// rounded towards zero where that loses digits, so that no error is told smaller than it is.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace strata {

struct ScaledNumber {
  double value = 0;
  int exponent = 0;
};

/// The exponent of the leading digit; x is not 0.
[[nodiscard]] inline int leading_exponent(const ScaledNumber& x) {
  return std::ilogb(x.value) + x.exponent;
}

/// x as a double: exactly, or away from zero where it has more digits than such a double.
[[nodiscard]] inline double rounded_away(const ScaledNumber& x) {
  const double rounded = std::ldexp(x.value, x.exponent);
  if (x.value == 0 || !std::isfinite(rounded)) return rounded;
  const bool shorter = std::abs(std::ldexp(rounded, -x.exponent)) < std::abs(x.value);
  return shorter ? std::nextafter(rounded, std::copysign(HUGE_VAL, x.value)) : rounded;
}

/// ‖x‖₂ of numbers with one exponent; nothing where that is not so, or where powers of two leave
/// the range of doubles.
[[nodiscard]] inline std::optional<ScaledNumber> norm_of_one_exponent(
    std::span<const ScaledNumber> x) {
  constexpr int kFar = 500;
  double largest = 0;
  for (const ScaledNumber& number : x) {
    if (number.exponent != x.front().exponent) return {};
    largest = std::max(largest, std::abs(number.value));
  }
  if (!(largest > 0) || !std::isfinite(largest)) return {};
  const int leading = std::ilogb(largest);
  if (std::abs(leading) > kFar) return {};
  const double scale = std::ldexp(1.0, -leading);
  double square = 0;
  for (const ScaledNumber& number : x) square += number.value * scale * (number.value * scale);
  return ScaledNumber{std::sqrt(square), leading + x.front().exponent};
}

/// ‖x‖₂.
[[nodiscard]] inline ScaledNumber norm_of(std::span<const ScaledNumber> x) {
  if (const std::optional<ScaledNumber> norm = norm_of_one_exponent(x)) return *norm;
  int most = std::numeric_limits<int>::min();
  for (const ScaledNumber& number : x) {
    if (!std::isfinite(number.value)) return {std::abs(number.value), 0};
    if (number.value != 0) most = std::max(most, leading_exponent(number));
  }
  double square = 0;
  for (const ScaledNumber& number : x) {
    if (number.value == 0) continue;
    const double part = std::ldexp(number.value, number.exponent - most);
    square += part * part;
  }
  return {std::sqrt(square), square > 0 ? most : 0};
}

/// x/y as a double; y is not 0.
[[nodiscard]] inline double ratio_of(const ScaledNumber& x, const ScaledNumber& y) {
  return rounded_away({x.value / y.value, x.exponent - y.exponent});
}

}  // namespace strata
