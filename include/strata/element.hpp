#pragma once
// The closed set of element types in which a block may be stored.
//
// Contract: `Element` is the run-time name, the C++ type is the compile-time name; `dispatch()` in
// src/scalar joins the two where there is arithmetic. Every name exists everywhere; an operation
// that has no kernel for the elements of its operands is refused by plan(), never in the middle of
// a run. fp8 is e4m3; dd is double-double, the unevaluated sum of two fp64 numbers; complex numbers
// are pairs, real part first; the integers hold pivots, permutations and status. fp16x2 is two
// planes of binary16, hi then lo, each packed column-major; the value is their sum over the scale
// of the block. none is no element: the block is zero and has no bytes.

#include <complex>
#include <cstdint>
#include <string_view>

namespace strata {

enum class Element : std::uint8_t {
  fp64,
  fp32,
  fp16,
  bf16,
  fp8,
  dd,
  complex128,
  complex64,
  int32,
  int64,
  fp16x2,
  none,
};
inline constexpr int kElements = 12;

/// Bytes of one element, of both planes together where there are two.
[[nodiscard]] constexpr std::int64_t bytes_of(Element element) noexcept {
  switch (element) {
    case Element::none: return 0;
    case Element::fp8: return 1;
    case Element::fp16:
    case Element::bf16: return 2;
    case Element::fp32:
    case Element::int32:
    case Element::fp16x2: return 4;
    case Element::fp64:
    case Element::complex64:
    case Element::int64: return 8;
    case Element::dd:
    case Element::complex128: return 16;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_complex(Element element) noexcept {
  return element == Element::complex128 || element == Element::complex64;
}
/// What its parts are: of complex numbers fp64 or fp32, else the element itself.
[[nodiscard]] constexpr Element element_of_parts(Element element) noexcept {
  return element == Element::complex128  ? Element::fp64
         : element == Element::complex64 ? Element::fp32
                                         : element;
}

/// "fp64", "complex128", …
[[nodiscard]] constexpr std::string_view to_string(Element element) noexcept {
  switch (element) {
    case Element::fp64: return "fp64";
    case Element::fp32: return "fp32";
    case Element::fp16: return "fp16";
    case Element::bf16: return "bf16";
    case Element::fp8: return "fp8";
    case Element::dd: return "dd";
    case Element::complex128: return "complex128";
    case Element::complex64: return "complex64";
    case Element::int32: return "int32";
    case Element::int64: return "int64";
    case Element::fp16x2: return "fp16x2";
    case Element::none: return "none";
  }
  return "?";
}

/// The `Element` of a C++ type: `element_of<double> == Element::fp64`. Besides these, Half, Fp8 and
/// DoubleDouble (src/scalar) have one, and no other type.
template <class T>
extern const Element element_of;
template <>
inline constexpr Element element_of<double> = Element::fp64;
template <>
inline constexpr Element element_of<float> = Element::fp32;
template <>
inline constexpr Element element_of<std::complex<double>> = Element::complex128;
template <>
inline constexpr Element element_of<std::complex<float>> = Element::complex64;
template <>
inline constexpr Element element_of<std::int32_t> = Element::int32;
template <>
inline constexpr Element element_of<std::int64_t> = Element::int64;

}  // namespace strata
