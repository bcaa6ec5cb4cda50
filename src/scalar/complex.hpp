#pragma once
// Real and complex numbers under the same names, for code that is written once for both.
//
// Contract: for real types `conjugate` is the identity and costs nothing, so that a formula with
// conjugates is that of a real one bit by bit. Complex numbers are std::complex of float or double.

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include "scalar/power_of_two.hpp"
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

/// The same of float: float or std::complex<float>.
template <class T>
using NarrowOf = std::conditional_t<is_complex_v<T>, std::complex<float>, float>;

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

/// max(|re|, |im|), which unlike |x| of finite parts is always finite.
template <class T>
[[nodiscard]] double largest_part(const T& x) noexcept {
  return std::max(std::abs(static_cast<double>(real_part(x))),
                  std::abs(static_cast<double>(imaginary_part(x))));
}

/// a·b by its parts. C++'s own looks after parts that are not finite, by a branch and a call each.
template <class T>
[[nodiscard]] constexpr T product_of(const T& a, const T& b) noexcept {
  if constexpr (is_complex_v<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}

/// Division by y: of complex numbers x·conj(y)/|y|², both first multiplied with the power of
/// two that brings y to about 1, so that nothing overflows or is lost before the quotient is. An
/// error is at most 3 units of rounding beside |x/y|.
template <class T>
class DivisionBy {
 public:
  explicit DivisionBy(const T& y) : y_(y) {
    if constexpr (is_complex_v<T>) {
      const double size = largest_part(y);
      const int exponent =  // its power of two may be no number
          size > 0 && std::isfinite(size) ? -std::ilogb(size) : 0;
      half_ = std::scalbn(Real{1}, exponent / 2);
      rest_ = std::scalbn(Real{1}, exponent - exponent / 2);
      y_ = {y.real() * half_ * rest_, -(y.imag() * half_ * rest_)};
      square_ = square_of(y_);
    }
  }
  [[nodiscard]] T operator()(const T& x) const noexcept {
    if constexpr (is_complex_v<T>) {
      const T product = product_of(T(x.real() * half_ * rest_, x.imag() * half_ * rest_), y_);
      return {product.real() / square_, product.imag() / square_};
    } else {
      return x / y_;
    }
  }

 private:
  using Real = RealOf<T>;
  T y_;  // scaled and conjugated
  Real half_ = 1;
  Real rest_ = 1;
  Real square_ = 1;
};

/// 2^exponent·x.
template <class T>
[[nodiscard]] T times_power(const T& x, int exponent) noexcept {
  const auto part = [exponent](auto value) {  // of float, rounded once, too
    return static_cast<decltype(value)>(scaled_by_power(static_cast<double>(value), exponent));
  };
  if constexpr (is_complex_v<T>) {
    return {part(x.real()), part(x.imag())};
  } else {
    return part(x);
  }
}

}  // namespace strata
