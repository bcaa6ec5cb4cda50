#pragma once
// From the run-time name of a number format to its C++ type, in one place.
//
// Contract: `dispatch(precision, f)` calls f(std::type_identity<T>{}) with the type of that
// precision. The formats fp16, fp8 and dd are named but have no arithmetic yet; asking for one is
// Error{misuse}.

#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "strata/element.hpp"

namespace strata {

/// The formats that have kernels today, in the order of `Element`.
[[nodiscard]] constexpr bool has_arithmetic(Element precision) noexcept {
  return precision == Element::fp64 || precision == Element::fp32;
}

template <class F>
decltype(auto) dispatch(Element precision, F&& f) {
  if (precision == Element::fp64) return std::forward<F>(f)(std::type_identity<double>{});
  if (precision == Element::fp32) return std::forward<F>(f)(std::type_identity<float>{});
  fail(ErrorKind::misuse, "scalar", "precision {} has no arithmetic yet", to_string(precision));
}

}  // namespace strata
