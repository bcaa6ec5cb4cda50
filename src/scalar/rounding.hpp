#pragma once
// Rounding to a format of few bits, without a branch and without a second rounding.
//
// Contract: `code_of<Format, Code>(x)` is the code, an unsigned integer, of x rounded to nearest,
// ties to the even code, for x of type float or double; `magnitude_code<Format>(x)` is that of |x|.
// It needs the processor's default rounding mode. A Format has
//   kFraction    bits of its fraction
//   kExponent    2^kExponent is its smallest normal number
//   kClampAt     magnitudes above, infinity among them, are taken for this one, a number of float
//   kClampCode   the code of that
//   kNanBits     the code that a NaN gets.
//
// Method: let 2^e be the largest power of two in max(|x|, 2^kExponent). Near x the format's numbers
// are the multiples of q = 2^(e − kFraction), subnormal ones included. With C = 2^(e + F −
// kFraction), F the fraction bits of the type of x, the numbers of that type in [C, 2C) are the
// multiples of q as well. So the processor's one addition |x| + C rounds |x| to a multiple k·q as
// the format asks, ties included, because C is an even multiple of q. (It is the addition of a
// large constant by which T. J. Dekker, "A floating-point technique for extending the available
// precision", Numer. Math. 18, 1971, splits numbers.) The sum's low bits are k, and the codes of a
// format count up by one from number to number, over the ends of binades too: the code is (e −
// kExponent)·2^kFraction + k.

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace strata::rounding {

/// How IEEE binary32 and binary64 are laid out.
template <class Real>
struct Layout {
  static_assert(std::is_same_v<Real, double>);
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52;
  static constexpr int kBias = 1023;
};
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23;
  static constexpr int kBias = 127;
};
template <class Real>
using BitsOf = typename Layout<Real>::Bits;
template <class Real>
using SignedBitsOf = std::make_signed_t<BitsOf<Real>>;

/// The bits of |x|, as a signed integer: they order as the magnitudes do, NaN after infinity.
template <class Real>
[[nodiscard]] constexpr SignedBitsOf<Real> magnitude_bits(Real x) noexcept {
  constexpr auto kAllButSign = std::numeric_limits<SignedBitsOf<Real>>::max();
  return std::bit_cast<SignedBitsOf<Real>>(x) & kAllButSign;
}

template <class Real>
inline constexpr SignedBitsOf<Real> kInfinityBits =
    magnitude_bits(std::numeric_limits<Real>::infinity());

/// Whether x is no NaN and the bits of |x| are at least these.
template <class Real>
[[nodiscard]] constexpr bool reaches(Real x, SignedBitsOf<Real> bits) noexcept {
  const SignedBitsOf<Real> a = magnitude_bits(x);
  return static_cast<int>(a >= bits) > static_cast<int>(a > kInfinityBits<Real>);
}

/// min(a, b) of two integers that are not negative, by a mask and not by a choice. Where one side
/// of a choice is known compilers make a branch around what follows, and a loop with a branch
/// around a floating-point operation, which may trap, gets no vectors.
template <class Bits>
[[nodiscard]] constexpr Bits smaller(Bits a, Bits b) noexcept {
  const Bits difference = a - b;
  return b + (difference & difference >> (8 * sizeof(Bits) - 1));
}

/// The code of |x|; see the contract.
template <class Format, class Real>
[[nodiscard]] constexpr SignedBitsOf<Real> magnitude_code(Real x) noexcept {
  using L = Layout<Real>;
  using Bits = SignedBitsOf<Real>;
  constexpr int kShift = L::kFraction - Format::kFraction;
  constexpr Bits kLargest = magnitude_bits(static_cast<Real>(Format::kClampAt));
  constexpr Bits kSmallest = Bits{L::kBias + Format::kExponent} << L::kFraction;
  constexpr Bits kNanAbove = Bits{Format::kNanBits} - Bits{Format::kClampCode};
  const Bits a = magnitude_bits(x);
  const Bits clamped = smaller(a, kLargest);
  const Bits normal = clamped > kSmallest ? clamped : kSmallest;
  const Bits exponent = normal >> L::kFraction << L::kFraction;
  const Bits c = exponent + (Bits{kShift} << L::kFraction);
  const Real sum = std::bit_cast<Real>(clamped) + std::bit_cast<Real>(c);
  const Bits code = std::bit_cast<Bits>(sum) - c + (exponent >> kShift) -
                    (Bits{L::kBias + Format::kExponent} << Format::kFraction);
  return code + (a > kInfinityBits<Real> ? kNanAbove : 0);
}

/// The code of x: that of |x| below the sign, which is the format's highest bit.
template <class Format, class Code, class Real>
[[nodiscard]] constexpr Code code_of(Real x) noexcept {
  constexpr int kSignShift = 8 * (sizeof(Real) - sizeof(Code));
  constexpr BitsOf<Real> kSign = BitsOf<Real>{1} << (8 * sizeof(Code) - 1);
  const BitsOf<Real> sign = std::bit_cast<BitsOf<Real>>(x) >> kSignShift & kSign;
  return static_cast<Code>(static_cast<BitsOf<Real>>(magnitude_code<Format>(x)) | sign);
}

}  // namespace strata::rounding
