// Scores of normal predictions. With z = (observed − mean) / σ, φ and Φ the standard normal density
// and distribution, the continuous ranked probability score ∫(F(t) − 1[t >= observed])² dt is
// σ·(z·(2Φ(z) − 1) + 2φ(z) − 1/√π) (Gneiting and Raftery 2007, equation 21); at σ = 0 it is the
// absolute error.

#include <cmath>
#include <vector>

#include "base/check.hpp"
#include "geostat/units.hpp"
#include "strata/geostat.hpp"

namespace strata {
namespace {

double continuous_ranked_probability_score(double error, double sigma) {
  if (sigma == 0) return std::fabs(error);
  constexpr double one_over_root_pi = 0.56418958354775628695;
  constexpr double root_half = 0.70710678118654752440;
  const double z = error / sigma;
  // 2Φ(z) − 1 = erf(z/√2), 2φ(z) = √(2/π)·exp(−z²/2)
  return sigma * (z * std::erf(z * root_half) +
                  2 * root_half * one_over_root_pi * std::exp(-0.5 * z * z) - one_over_root_pi);
}

}  // namespace

Scores scores(std::span<const double> observed, std::span<const double> mean,
              std::span<const double> standard_error) {
  const char* where = "scores";
  const std::size_t n = observed.size();
  require(n > 0, ErrorKind::misuse, where, "no observations");
  require(mean.size() == n && standard_error.size() == n, ErrorKind::misuse, where,
          "{} observations, {} means and {} standard errors", n, mean.size(),
          standard_error.size());
  constexpr double half_width95 = 1.9599639845400542355;  // Φ⁻¹(0.975)
  Scores out;
  std::vector<double> errors;
  for (std::size_t i = 0; i < n; ++i) {
    const double error = observed[i] - mean[i];
    const double sigma = standard_error[i];
    require(std::isfinite(error) && std::isfinite(sigma), ErrorKind::input, where,
            "row {} (counting from 0) holds what is not a finite number: {}, {}, {}", i,
            observed[i], mean[i], sigma);
    require(sigma >= 0, ErrorKind::misuse, where, "standard_error[{}] is {}, below 0", i, sigma);
    errors.push_back(error);
    out.mae += std::fabs(error);
    out.crps += continuous_ranked_probability_score(error, sigma);
    out.coverage95 += std::fabs(error) <= half_width95 * sigma ? 1 : 0;
  }
  const auto count = static_cast<double>(n);
  out.rmse = root_mean_square(errors);
  out.mae /= count;
  out.crps /= count;
  out.coverage95 /= count;
  return out;
}

}  // namespace strata
