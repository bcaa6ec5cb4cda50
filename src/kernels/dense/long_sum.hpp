#pragma once
// LongSum: sums of products with twice the digits, of real and of complex numbers.
//
// Contract: W is double or std::complex<double>, whose parts are summed up each for itself.

#include <complex>

#include "scalar/double_double.hpp"

namespace strata {

/// A sum with twice the digits of W, double or std::complex<double>.
template <class W>
struct LongSum {
  DoubleDouble total;

  LongSum() = default;
  explicit LongSum(double value) : total(value) {}
  void subtract_product(double a, double x) { total = total - two_product(a, x); }
  void add(const LongSum& other) { total = total + other.total; }
  [[nodiscard]] double rounded() const { return total.hi; }
};
template <>
struct LongSum<std::complex<double>> {
  DoubleDouble real;
  DoubleDouble imaginary;

  LongSum() = default;
  explicit LongSum(const std::complex<double>& value)
      : real(value.real()), imaginary(value.imag()) {}
  void subtract_product(const std::complex<double>& a, const std::complex<double>& x) {
    real = real - two_product(a.real(), x.real()) + two_product(a.imag(), x.imag());
    imaginary = imaginary - two_product(a.real(), x.imag()) - two_product(a.imag(), x.real());
  }
  void add(const LongSum& other) {
    real = real + other.real;
    imaginary = imaginary + other.imaginary;
  }
  [[nodiscard]] std::complex<double> rounded() const { return {real.hi, imaginary.hi}; }
};

}  // namespace strata
