#pragma once
// DoubleDouble: a number as the unevaluated sum of two doubles, with its arithmetic.
//
// Contract: x = hi + lo with |lo| <= ulp(hi)/2, about 106 bits; the exponents are those of double,
// so the low part loses bits below 2^-970. Every operation is a fixed sequence of additions,
// multiplications and fused multiply-adds, each rounded to nearest, so that all backends give the
// same bits. Sources that include this file are compiled without contraction of a product and a sum
// (-ffp-contract=off; on a GPU the intrinsics below say so). The parts are `Real`: double, or a
// vector of doubles that are computed side by side.
//
// Relative errors, u = 2^-53: add 3u² (Joldes, Muller, Popescu 2017, algorithm 6), add_cray 2u² of
// |a| + |b| (not of the sum), multiply 5u², divide 15u², square root 4u² or so. An operand that is
// not finite gives a high part that is not finite.
// Sources: Dekker, "A floating-point technique for extending the available precision", 1971; Knuth,
// The Art of Computer Programming 2, 4.2.2 (two_sum); Hida, Li, Bailey, "Library for double-double
// and quad-double arithmetic", 2007 (which calls the additions Cray's and IEEE's).

#include <cmath>

#include "strata/element.hpp"

namespace strata {

// ---- one rounding each

[[nodiscard]] constexpr double rounded_sum(double a, double b) noexcept {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
[[nodiscard]] constexpr double rounded_product(double a, double b) noexcept {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
/// a·b + c, rounded once. Not every compiler has it at compile time, so there c is 0.
[[nodiscard]] constexpr double fused(double a, double b, double c) noexcept {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  if (__builtin_is_constant_evaluated() && c == 0) return a * b;
  return __builtin_fma(a, b, c);
#endif
}
[[nodiscard]] constexpr float fused(float a, float b, float c) noexcept {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  if (__builtin_is_constant_evaluated() && c == 0) return a * b;
  return __builtin_fmaf(a, b, c);
#endif
}
[[nodiscard]] constexpr double rounded_quotient(double a, double b) noexcept {
#if defined(__CUDA_ARCH__)
  return __ddiv_rn(a, b);
#else
  return a / b;
#endif
}
[[nodiscard]] constexpr float rounded_sum(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
[[nodiscard]] constexpr float rounded_quotient(float a, float b) noexcept {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

// ---- sums and products without error

template <class Real>
struct DoubleDoubleOf {
  Real hi{};
  Real lo{};

  constexpr DoubleDoubleOf() = default;
  constexpr DoubleDoubleOf(Real high, Real low) : hi(high), lo(low) {}
  constexpr explicit DoubleDoubleOf(Real high) : hi(high) {}
  constexpr bool operator==(const DoubleDoubleOf&) const = default;
};
using DoubleDouble = DoubleDoubleOf<double>;

template <>
inline constexpr Element element_of<DoubleDouble> = Element::dd;

/// a + b = hi + lo exactly.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> two_sum(const Real& a,
                                                              const Real& b) noexcept {
  const Real s = rounded_sum(a, b);
  const Real t = rounded_sum(s, -a);
  return {s, rounded_sum(rounded_sum(a, -rounded_sum(s, -t)), rounded_sum(b, -t))};
}
/// The same where |a| >= |b| or a is 0.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> fast_two_sum(const Real& a,
                                                                   const Real& b) noexcept {
  const Real s = rounded_sum(a, b);
  return {s, rounded_sum(b, -rounded_sum(s, -a))};
}
/// a·b = hi + lo exactly, as long as lo does not underflow.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> two_product(const Real& a,
                                                                  const Real& b) noexcept {
  const Real p = rounded_product(a, b);
  return {p, fused(a, b, -p)};
}

// ---- arithmetic

template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> operator-(
    const DoubleDoubleOf<Real>& a) noexcept {
  return {-a.hi, -a.lo};
}

/// Cray's addition, 11 operations: accurate beside |a| + |b|.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> add_cray(
    const DoubleDoubleOf<Real>& a, const DoubleDoubleOf<Real>& b) noexcept {
  const DoubleDoubleOf<Real> s = two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, rounded_sum(s.lo, rounded_sum(a.lo, b.lo)));
}

/// The addition of IEEE's kind, 20 operations: accurate beside |a + b|.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> operator+(
    const DoubleDoubleOf<Real>& a, const DoubleDoubleOf<Real>& b) noexcept {
  const DoubleDoubleOf<Real> s = two_sum(a.hi, b.hi);
  const DoubleDoubleOf<Real> t = two_sum(a.lo, b.lo);
  const DoubleDoubleOf<Real> v = fast_two_sum(s.hi, rounded_sum(s.lo, t.hi));
  return fast_two_sum(v.hi, rounded_sum(t.lo, v.lo));
}
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> operator-(
    const DoubleDoubleOf<Real>& a, const DoubleDoubleOf<Real>& b) noexcept {
  return a + (-b);
}

template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> operator*(
    const DoubleDoubleOf<Real>& a, const DoubleDoubleOf<Real>& b) noexcept {
  const DoubleDoubleOf<Real> p = two_product(a.hi, b.hi);
  const Real cross = fused(a.hi, b.lo, fused(a.lo, b.hi, p.lo));
  return fast_two_sum(p.hi, cross);
}

/// a − b·c, the product not normalized and added as by Cray: the step of a substitution.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> subtract_product(
    const DoubleDoubleOf<Real>& a, const DoubleDoubleOf<Real>& b,
    const DoubleDoubleOf<Real>& c) noexcept {
  const DoubleDoubleOf<Real> p = two_product(b.hi, c.hi);
  const Real cross = fused(b.hi, c.lo, fused(b.lo, c.hi, p.lo));
  const DoubleDoubleOf<Real> s = two_sum(a.hi, -p.hi);
  return fast_two_sum(s.hi, rounded_sum(s.lo, rounded_sum(a.lo, -cross)));
}

/// Two quotients of doubles, the second of the remainder that the first leaves.
template <class Real>
[[gnu::always_inline]] constexpr DoubleDoubleOf<Real> operator/(
    const DoubleDoubleOf<Real>& a, const DoubleDoubleOf<Real>& b) noexcept {
  const Real first = rounded_quotient(a.hi, b.hi);
  const DoubleDoubleOf<Real> rest = subtract_product(a, DoubleDoubleOf<Real>(first), b);
  return fast_two_sum(first, rounded_quotient(rest.hi, b.hi));
}

/// For a >= 0. One step of Newton's from the square root of the high part; 0 for 0.
[[nodiscard]] constexpr DoubleDouble square_root(const DoubleDouble& a) noexcept {
  if (a.hi == 0) return {};
#if defined(__CUDA_ARCH__)
  const double root = __dsqrt_rn(a.hi);
#else
  const double root = __builtin_sqrt(a.hi);
#endif
  const DoubleDouble rest = subtract_product(a, DoubleDouble(root), DoubleDouble(root));
  return fast_two_sum(root, rounded_quotient(rest.hi, rounded_product(2.0, root)));
}

/// a·2^k for a power of two that neither overflows nor underflows.
[[nodiscard]] constexpr DoubleDouble scaled(const DoubleDouble& a, double power) noexcept {
  return {rounded_product(a.hi, power), rounded_product(a.lo, power)};
}

[[nodiscard]] constexpr bool operator<(const DoubleDouble& a, const DoubleDouble& b) noexcept {
  return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

}  // namespace strata
