#pragma once
// From the run-time name of a number format to its C++ type, in one place.
//
// Contract: `dispatch(precision, f)` calls f(std::type_identity<T>{}) with the type of that
// precision: double, float, DoubleDouble, std::complex<double> or std::complex<float>. Others know
// some of them, for code that is not written for all: `dispatch_real` the three that are real,
// `dispatch_native` the two of these that the processor computes in by itself, `dispatch_blas` the
// four that BLAS has. The other formats are of storage alone; asking for one is Error{misuse}.

#include <complex>
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
  return is_native(precision) || is_complex(precision) || precision == Element::dd;
}

template <class F>
decltype(auto) dispatch_native(Element precision, F&& f) {
  if (precision == Element::fp64) return std::forward<F>(f)(std::type_identity<double>{});
  if (precision == Element::fp32) return std::forward<F>(f)(std::type_identity<float>{});
  fail(ErrorKind::misuse, "scalar", "precision {} is neither fp64 nor fp32", to_string(precision));
}

template <class F>
decltype(auto) dispatch_real(Element precision, F&& f) {
  if (precision == Element::fp64) return std::forward<F>(f)(std::type_identity<double>{});
  if (precision == Element::fp32) return std::forward<F>(f)(std::type_identity<float>{});
  if (precision == Element::dd) return std::forward<F>(f)(std::type_identity<DoubleDouble>{});
  fail(ErrorKind::misuse, "scalar", "precision {} has no arithmetic of real numbers",
       to_string(precision));
}

template <class F>
decltype(auto) dispatch_blas(Element precision, F&& f) {
  if (precision == Element::fp64) return std::forward<F>(f)(std::type_identity<double>{});
  if (precision == Element::fp32) return std::forward<F>(f)(std::type_identity<float>{});
  if (precision == Element::complex128)
    return std::forward<F>(f)(std::type_identity<std::complex<double>>{});
  if (precision == Element::complex64)
    return std::forward<F>(f)(std::type_identity<std::complex<float>>{});
  fail(ErrorKind::misuse, "scalar", "precision {} is none that BLAS has", to_string(precision));
}

template <class F>
decltype(auto) dispatch(Element precision, F&& f) {
  if (precision == Element::dd) return std::forward<F>(f)(std::type_identity<DoubleDouble>{});
  if (has_arithmetic(precision)) return dispatch_blas(precision, std::forward<F>(f));
  fail(ErrorKind::misuse, "scalar", "precision {} has no arithmetic", to_string(precision));
}

}  // namespace strata
