#pragma once
// Real and complex numbers under the same names, for code that is written once for both.
//
// Contract: for real types `conjugate` is the identity and costs nothing, so that a formula with
// conjugates is that of a real one bit by bit. Complex numbers are std::complex of float or double.

#include <cmath>
#include <complex>
#include <type_traits>

#include "strata/element.hpp"

namespace strata {

template <class T>
struct NumberTraits {
  using Real = T;
  using Wide = double;
  static constexpr bool is_complex = false;
};
template <class R>
struct NumberTraits<std::complex<R>> {
  using Real = R;
  using Wide = std::complex<double>;
  static constexpr bool is_complex = true;
};

template <class T>
inline constexpr bool is_complex_v = NumberTraits<T>::is_complex;
/// What its parts are: itself, if it is real.
template <class T>
using RealOf = typename NumberTraits<T>::Real;
/// double or std::complex<double>: what sums of T are added up in.
template <class T>
using WideOf = typename NumberTraits<T>::Wide;

template <class T>
[[nodiscard]] constexpr T conjugate(const T& x) noexcept {
  if constexpr (is_complex_v<T>) {
    return {x.real(), -x.imag()};
  } else {
    return x;
  }
}
template <class T>
[[nodiscard]] constexpr RealOf<T> real_part(const T& x) noexcept {
  if constexpr (is_complex_v<T>) {
    return x.real();
  } else {
    return x;
  }
}
template <class T>
[[nodiscard]] constexpr RealOf<T> imaginary_part(const T& x) noexcept {
  if constexpr (is_complex_v<T>) {
    return x.imag();
  } else {
    return RealOf<T>{0};
  }
}

/// |x|².
template <class T>
[[nodiscard]] constexpr RealOf<T> square_of(const T& x) noexcept {
  if constexpr (is_complex_v<T>) {
    return x.real() * x.real() + x.imag() * x.imag();
  } else {
    return x * x;
  }
}

/// Neither NaN nor infinite, in both parts.
template <class T>
[[nodiscard]] bool is_finite(const T& x) noexcept {
  return std::isfinite(real_part(x)) && std::isfinite(imaginary_part(x));
}

/// 2^exponent·x.
template <class T>
[[nodiscard]] T times_power(const T& x, int exponent) noexcept {
  if constexpr (is_complex_v<T>) {
    return {std::scalbn(x.real(), exponent), std::scalbn(x.imag(), exponent)};
  } else {
    return std::scalbn(x, exponent);
  }
}

}  // namespace strata
