#pragma once
// K_ν(x), the modified Bessel function of the second kind, and the Matérn correlation; for host and
// device code.
//
// Contract: everything that depends on ν alone is computed once on the host (`bessel_order`) and
// passed by value; evaluating calls no gamma function, allocates nothing and always terminates. For
// 0 < ν <= 50 the relative error is below 1e-13 (in the tests: ν in (0, 10], x in [1e-10, 700]); a
// result that underflows is 0, a NaN stays a NaN.
//
// Method: with ν = μ + n, |μ| <= 1/2, the pair G_μ, G_{μ+1} of the scaled function
// G_ν = x^ν·K_ν(x) comes from Temme's series where x <= 2 (N. M. Temme, "On the numerical
// evaluation of the modified Bessel function of the third kind", J. Comput. Phys. 19, 1975), and
// from Steed's evaluation of a continued fraction together with the sum that normalizes it where
// x > 2 (I. J. Thompson and A. R. Barnett, Comput. Phys. Commun. 47, 1987). Both converge fastest
// away from 2. Then G_{ν+1} = x²·G_{ν−1} + 2ν·G_ν, whose terms are positive, leads up to ν. Working
// with G and not with K, nothing overflows as x → 0, and the Matérn correlation
// 2^(1−ν)/Γ(ν)·G_ν(x) tends to 1 without cancellation. For x > 2 the factor exp(−x) is left out
// until the end and applied as two factors exp(−x/2), so that a large x^ν cannot meet an
// exponential that has already underflowed.

#include <cmath>

#if defined(__CUDACC__)
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

namespace strata {

/// What K_ν and the Matérn correlation need of ν; made by `bessel_order`.
struct BesselOrder {
  /// Smoothness whose correlation is an elementary function.
  enum class Form { general, half, three_halves, five_halves };

  double nu = 0.5;
  double mu = -0.5;              ///< ν − steps, in [−1/2, 1/2]
  int steps = 1;                 ///< n
  Form form = Form::half;        ///< of the Matérn correlation
  double temme_gamma1 = 0;       ///< (1/Γ(1−μ) − 1/Γ(1+μ)) / (2μ)
  double temme_gamma2 = 0;       ///< (1/Γ(1−μ) + 1/Γ(1+μ)) / 2
  double reflection = 0;         ///< πμ/sin(πμ) = Γ(1+μ)·Γ(1−μ)
  double gamma_plus = 0;         ///< Γ(1+μ)
  double gamma_minus = 0;        ///< Γ(1−μ)
  double two_to_mu = 0;          ///< 2^μ
  double correlation_scale = 0;  ///< 2^(1−ν)/Γ(ν)
};

/// The constants of order ν, 0 < ν <= 50. Host only.
[[nodiscard]] inline BesselOrder bessel_order(double nu) {
  // 1/Γ(1+z) = Σ c_k z^k (Abramowitz and Stegun 6.1.34); Γ1 takes the odd c_k, Γ2 the even ones, so
  // that neither suffers from cancellation as μ → 0.
  constexpr double odd[] = {0.57721566490153286061,     -0.042002635034095235529,
                            -0.042197734555544336748,   0.0072189432466630995424,
                            -0.00021524167411495097282, -2.0134854780788238656e-05,
                            1.1330272319816958824e-06,  6.1160951044814158179e-09,
                            -1.1812745704870201446e-09, 7.782263439905071254e-12};
  constexpr double even[] = {1.0,
                             -0.65587807152025388108,
                             0.1665386113822914895,
                             -0.0096219715278769735621,
                             -0.0011651675918590651121,
                             0.00012805028238811618615,
                             -1.2504934821426706573e-06,
                             -2.0563384169776071035e-07,
                             5.0020076444692229301e-09,
                             1.0434267116911005105e-10};
  BesselOrder order;
  order.nu = nu;
  order.steps = static_cast<int>(std::floor(nu + 0.5));
  const double mu = order.mu = nu - order.steps;
  double odd_sum = 0;
  double even_sum = 0;
  for (int k = 9; k >= 0; --k) {
    odd_sum = odd_sum * mu * mu + odd[k];
    even_sum = even_sum * mu * mu + even[k];
  }
  order.temme_gamma1 = -odd_sum;
  order.temme_gamma2 = even_sum;
  order.gamma_plus = 1 / (even_sum + mu * odd_sum);
  order.gamma_minus = 1 / (even_sum - mu * odd_sum);
  order.reflection = order.gamma_plus * order.gamma_minus;
  order.two_to_mu = std::exp2(mu);
  // Γ(ν) = Γ(1+μ)·(μ+1)⋯(μ+n−1); for n = 0 it is Γ(1+μ)/μ.
  double scale = 2 / (order.two_to_mu * order.gamma_plus);
  if (order.steps == 0) scale *= mu;
  for (int j = 1; j <= order.steps; ++j) scale *= j < order.steps ? 0.5 / (mu + j) : 0.5;
  order.correlation_scale = scale;
  order.form = nu == 0.5   ? BesselOrder::Form::half
               : nu == 1.5 ? BesselOrder::Form::three_halves
               : nu == 2.5 ? BesselOrder::Form::five_halves
                           : BesselOrder::Form::general;
  return order;
}

/// G_μ(x) and G_{μ+1}(x).
struct BesselPair {
  double low = 0;
  double high = 0;
};

/// Temme's series, 0 < x <= 2.
[[nodiscard]] STRATA_HOST_DEVICE inline BesselPair bessel_pair_series(const BesselOrder& order,
                                                                      double x) {
  const double mu = order.mu;
  const double log_2_over_x = std::log(2 / x);
  const double sigma = mu * log_2_over_x;
  const double grown = std::exp(sigma);  // (x/2)^(−μ)
  const double shrunk = 1 / grown;
  double sinh_ratio = (grown - shrunk) / (2 * sigma);  // sinh σ / σ
  if (std::fabs(sigma) < 0.5) {
    sinh_ratio = 1;
    for (int k = 7; k >= 1; --k)
      sinh_ratio = 1 + sinh_ratio * sigma * sigma / (2 * k * (2 * k + 1));
  }
  double f = order.reflection * (0.5 * (grown + shrunk) * order.temme_gamma1 +
                                 sinh_ratio * log_2_over_x * order.temme_gamma2);
  double p = 0.5 * grown * order.gamma_plus;
  double q = 0.5 * shrunk * order.gamma_minus;
  double c = 1;  // (x²/4)^k / k!
  double low = f;
  double high = p;
  for (int k = 1; k < 64; ++k) {
    const double inverse = 1 / (k * static_cast<double>(k) - mu * mu);
    f = (k * f + p + q) * inverse;
    p *= (k + mu) * inverse;
    q *= (k - mu) * inverse;
    c *= 0.25 * x * x / k;
    const double low_term = c * f;
    low += low_term;
    high += c * (p - k * f);
    // The terms of `high` are at most k times those of `low`; two more digits cover that.
    if (!(std::fabs(low_term) > 1e-18 * std::fabs(low))) break;
  }
  const double x_to_mu = order.two_to_mu * shrunk;
  return {x_to_mu * low, 2 * x_to_mu * high};  // K_{μ+1} = (2/x)·high
}

/// Steed's algorithm, x > 2: the pair times exp(x).
///
/// z_n solves z_{n−1} = b_n·z_n + a_{n+1}·z_{n+1} with b_n = 2(x + n), a_{n+1} = μ² − (n + ½)²; the
/// minimal solution has z_1/z_0 = h, the continued fraction, and Σ C_n·z_n/z_0 = 1 + sum
/// normalizes.
[[nodiscard]] STRATA_HOST_DEVICE inline BesselPair bessel_pair_fraction(const BesselOrder& order,
                                                                        double x) {
  const double mu = order.mu;
  const double c_first = 0.25 - mu * mu;
  double a = -c_first;
  double b = 2 * (1 + x);
  double d = 1 / b;
  double delta = d;
  double h = d;
  double q_before = 0;
  double q_now = 1;
  double c = c_first;
  double weight = c_first;  // Σ C_k q_k
  double sum = weight * delta;
  for (int n = 2; n < 500; ++n) {
    a -= 2 * (n - 1);
    c *= -a / n;
    const double q_next = (q_before - b * q_now) / a;
    q_before = q_now;
    q_now = q_next;
    weight += c * q_next;
    b += 2;
    d = 1 / (b + a * d);
    delta *= b * d - 1;
    h += delta;
    const double term = weight * delta;
    sum += term;
    if (!(std::fabs(term) > 1e-17 * (1 + std::fabs(sum)))) break;
  }
  constexpr double root_half_pi = 1.2533141373155002512;
  const double low = root_half_pi * std::exp((mu - 0.5) * std::log(x)) / (1 + sum);
  return {low, low * (mu + 0.5 + x - c_first * h)};
}

/// G_ν(x) = x^ν·K_ν(x) for 0 < x <= 2, and that times exp(x) for x > 2.
[[nodiscard]] STRATA_HOST_DEVICE inline double scaled_power_bessel_k(const BesselOrder& order,
                                                                     double x) {
  const BesselPair pair = x <= 2 ? bessel_pair_series(order, x) : bessel_pair_fraction(order, x);
  if (order.steps == 0) return pair.low;
  double below = pair.low;
  double value = pair.high;
  for (int j = 1; j < order.steps; ++j) {
    const double above = x * x * below + 2 * (order.mu + j) * value;
    below = value;
    value = above;
  }
  return value;
}

/// value·exp(−x), without underflow on the way if value is large.
[[nodiscard]] STRATA_HOST_DEVICE inline double damped(double value, double x) {
  if (x < 700) return value * std::exp(-x);
  const double half = std::exp(-0.5 * x);
  return value * half * half;
}

/// K_ν(x) for x > 0.
[[nodiscard]] STRATA_HOST_DEVICE inline double bessel_k(const BesselOrder& order, double x) {
  if (x > 1500) return 0;
  const double value = scaled_power_bessel_k(order, x) * std::pow(x, -order.nu);
  return x <= 2 ? value : damped(value, x);
}

/// The Matérn correlation 2^(1−ν)/Γ(ν)·x^ν·K_ν(x) at x = distance / range >= 0; 1 at x = 0.
[[nodiscard]] STRATA_HOST_DEVICE inline double matern_correlation(const BesselOrder& order,
                                                                  double x) {
  if (x == 0) return 1;
  if (x > 1500) return 0;  // below the least double for every ν <= 50; infinity comes here, too
  switch (order.form) {
    case BesselOrder::Form::half: return damped(1, x);
    case BesselOrder::Form::three_halves: return damped(1 + x, x);
    case BesselOrder::Form::five_halves: return damped(1 + x + x * x / 3, x);
    case BesselOrder::Form::general: break;
  }
  const double value = order.correlation_scale * scaled_power_bessel_k(order, x);
  return x <= 2 ? value : damped(value, x);
}

}  // namespace strata
