#pragma once
// The Matérn correlation as its formula reads, by Boost.Math in long double.
//
// Contract: relative error of a few ulps of double; slow (microseconds). Independent of
// bessel_k.hpp, whose errors the comparison of backends is there to find.

#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

namespace strata {

/// 2^(1−ν)/Γ(ν) · x^ν · K_ν(x) for x >= 0, ν > 0; 1 at x = 0; NaN for NaN. The first factor is
/// computed once.
class MaternByBoost {
 public:
  explicit MaternByBoost(long double nu)
      : nu_(nu), factor_(std::exp2(1 - nu) / boost::math::tgamma(nu)) {}

  [[nodiscard]] long double operator()(long double x) const {
    if (x == 0) return 1;
    if (std::isnan(x)) return x;
    if (x > 11000) return 0;  // exp(−x) is below the least long double
    return factor_ * std::pow(x, nu_) * boost::math::cyl_bessel_k(nu_, x);
  }

 private:
  long double nu_;
  long double factor_;
};

/// The same for one x.
[[nodiscard]] inline long double matern_correlation_boost(long double nu, long double x) {
  return MaternByBoost(nu)(x);
}

}  // namespace strata
