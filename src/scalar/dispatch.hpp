#pragma once
// From the run-time name of a number format to its C++ type, in one place.
//
// Contract: `dispatch(precision, f)` calls f(std::type_identity<T>{}) with the type of that
// precision, double, float or DoubleDouble; `dispatch_native` knows the two that the processor
// computes in by itself, for what is built on BLAS. The other formats are of storage alone; asking
// for one is Error{misuse}.

#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "scalar/double_double.hpp"
#include "strata/element.hpp"

namespace strata {

/// fp64 and fp32.
[[nodiscard]] constexpr bool is_native(Element precision) noexcept {
  return precision == Element::fp64 || precision == Element::fp32;
}
/// The formats that one can compute in.
[[nodiscard]] constexpr bool has_arithmetic(Element precision) noexcept {
  return is_native(precision) || precision == Element::dd;
}

template <class F>
decltype(auto) dispatch_native(Element precision, F&& f) {
  if (precision == Element::fp64) return std::forward<F>(f)(std::type_identity<double>{});
  if (precision == Element::fp32) return std::forward<F>(f)(std::type_identity<float>{});
  fail(ErrorKind::misuse, "scalar", "precision {} is neither fp64 nor fp32", to_string(precision));
}

template <class F>
decltype(auto) dispatch(Element precision, F&& f) {
  if (precision == Element::fp64) return std::forward<F>(f)(std::type_identity<double>{});
  if (precision == Element::fp32) return std::forward<F>(f)(std::type_identity<float>{});
  if (precision == Element::dd) return std::forward<F>(f)(std::type_identity<DoubleDouble>{});
  fail(ErrorKind::misuse, "scalar", "precision {} has no arithmetic", to_string(precision));
}

}  // namespace strata
