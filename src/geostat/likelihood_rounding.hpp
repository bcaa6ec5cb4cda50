#pragma once
// What rounding in FP64 does to a log-likelihood, estimated.
//
// Contract: estimates to first order, with what the second order adds, for rounding errors that are
// as random as they look; not bounds. They hold for a factor in FP64 and for refined solves with Σ
// in FP64 alike. Equal inputs give equal bits.

#include <cstdint>
#include <span>

#include "kernels/covariance/covariance.hpp"
#include "strata/geostat.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// How many random vectors measure an inverse.
inline constexpr std::int64_t kInverseProbes = 8;

/// Norms of Σ⁻¹.
struct InverseNorms {
  double frobenius = 0;
  double trace = 0;
};

/// Fills V with random signs.
void fill_with_signs(MatrixView<double> v);
/// From columns v of random signs and Σ⁻¹·v: E ‖Σ⁻¹v‖² = ‖Σ⁻¹‖_F² and E vᵀΣ⁻¹v = tr Σ⁻¹ (Hutchinson
/// 1990). A solver of few digits is good enough.
[[nodiscard]] InverseNorms inverse_norms(MatrixView<const double> v,
                                         MatrixView<const double> solutions);

/// Rounding of one entry of Σ, of its factor's product or of a residual: the standard deviation,
/// for order n.
[[nodiscard]] double entry_rounding(std::int64_t n, const CovarianceParameters& parameters);

/// How many standard deviations an error is said to have at most.
inline constexpr double kRoundingDeviations = 4;

/// A likelihood that was evaluated.
struct EvaluatedLikelihood {
  MatrixView<const double> points;  ///< n × d, in the order of the matrix
  const CovarianceParameters& parameters;
  std::span<const double> solution;     ///< Σ⁻¹r, r the values less their mean
  std::span<const double> data_square;  ///< n: sums of squares of the terms that make each r_i
  double mean_rounding = 0;             ///< of a mean that was subtracted: its magnitude
  double quadratic_form = 0;
  double log_determinant = 0;
  InverseNorms inverse;
};

/// How far quadratic form and log-determinant may be off, kRoundingDeviations of them; infinite
/// where Σ is too near a singular matrix for rounding to be small beside it.
[[nodiscard]] LikelihoodError likelihood_rounding(const EvaluatedLikelihood& likelihood);

}  // namespace strata
