#pragma once
// The closed set of number formats in which a block may be stored.
//
// Contract: `Precision` is the run-time name, the C++ type is the compile-time name; `dispatch()`
// in src/scalar joins the two. All five names exist everywhere; an operation that has no kernel for
// one of them is refused by plan(), never in the middle of a run.

#include <cstdint>
#include <string_view>

namespace strata {

enum class Precision : std::uint8_t { fp64, fp32, fp16, fp8, dd };

/// Bytes of one element: 8, 4, 2, 1 and 16.
[[nodiscard]] constexpr std::int64_t bytes_of(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp64: return 8;
    case Precision::fp32: return 4;
    case Precision::fp16: return 2;
    case Precision::fp8: return 1;
    case Precision::dd: return 16;
  }
  return 0;
}

/// "fp64", "fp32", "fp16", "fp8" or "dd".
[[nodiscard]] constexpr std::string_view to_string(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp64: return "fp64";
    case Precision::fp32: return "fp32";
    case Precision::fp16: return "fp16";
    case Precision::fp8: return "fp8";
    case Precision::dd: return "dd";
  }
  return "?";
}

/// The `Precision` of a C++ type: `precision_of<double> == Precision::fp64`.
template <class T>
inline constexpr Precision precision_of = Precision::dd;
template <>
inline constexpr Precision precision_of<double> = Precision::fp64;
template <>
inline constexpr Precision precision_of<float> = Precision::fp32;

}  // namespace strata
