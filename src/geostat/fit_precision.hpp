#pragma once
// How coarse the likelihood of a search may be, in several precisions.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "strata/covariance_options.hpp"

namespace strata {

/// What lower precisions change in a log-likelihood whose quadratic form is refined and whose
/// log-determinant is not corrected, relative to n·ε. Seen were 0.02 with exponential covariances
/// of 300 to 1500 random points of the unit square, and 0.33 with 105,569 places of land surface
/// temperature, ε = 1e-5, by which a search ended 2.2 below the maximum.
inline constexpr double kRoundingOfLikelihood = 0.5;
/// A search bears so much of that: a few hundredths of a standard error.
inline constexpr double kSearchNoise = 0.02;
[[nodiscard]] inline CovarianceOptions in_fp64(CovarianceOptions options) {
  options.mixed = {};
  return options;
}

/// No coarser than a search of n points bears.
[[nodiscard]] inline CovarianceOptions fine_enough(CovarianceOptions options, std::int64_t n) {
  const double most =
      kSearchNoise / (kRoundingOfLikelihood * static_cast<double>(std::max<std::int64_t>(n, 1)));
  options.mixed.accuracy = std::min(options.mixed.accuracy, most);
  return options;
}

/// What lower precisions may change in an evaluation.
[[nodiscard]] inline double rounding_of_likelihood(const CovarianceOptions& options,
                                                   std::int64_t n) {
  return kRoundingOfLikelihood * options.mixed.accuracy * static_cast<double>(n);
}

/// Whether likelihoods of a search were off by far more than it took them to be, as those of
/// ill-conditioned covariances: it ended where it saw no gain, and FP64 decides. `exact`: what
/// FP64's own rounding does; NaN where it was not estimated.
[[nodiscard]] inline bool hides_the_maximum(double noise, double exact,
                                            const CovarianceOptions& options, std::int64_t n) {
  constexpr double kMuch = 4;
  constexpr double kNegligible = 1e-3;
  const double known = std::isnan(exact) ? 0 : exact;
  return noise > kMuch * rounding_of_likelihood(options, n) + 2 * known + kNegligible;
}

}  // namespace strata
