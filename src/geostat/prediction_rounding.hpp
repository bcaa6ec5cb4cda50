#pragma once
// What rounding in FP64 does to kriging means and standard errors, estimated.
//
// Contract: estimates as those of likelihood_rounding.hpp, not bounds, for a factor in FP64. Equal
// inputs give equal bits.

#include <cstdint>
#include <span>
#include <vector>

#include "cholesky/covariance_solver.hpp"
#include "dense/dense_block.hpp"
#include "kernels/covariance/covariance.hpp"
#include "strata/geostat.hpp"

namespace strata {

/// A problem whose covariance was factored, as far as rounding goes.
struct FactoredProblem {
  double entry = 0;             ///< entry_rounding()
  double diagonal = 0;          ///< of Σ
  double solution_length = 0;   ///< ‖Σ⁻¹r‖₂
  double largest_residual = 0;  ///< of what the factor was solved with
  double largest_value = 0;     ///< of the data, and of a mean
  double column_rounding = 0;   ///< of elements of the mean's columns, which are about 1
  /// By how much orders above the first enlarge errors; infinite where Σ is singular to FP64.
  double amplification = 1;
};

/// Vectors of random signs and Σ⁻¹ times them.
struct InverseProbes {
  DenseBlock signs;
  DenseBlock solutions;
};
/// kInverseProbes of them.
[[nodiscard]] InverseProbes probe_inverse(CovarianceSolver& solver);
/// The amplification.
[[nodiscard]] double rounding_amplification(const InverseProbes& probes,
                                            const CovarianceParameters& parameters);

/// How far a prediction of these observations may be off.
struct PointErrors {
  double mean = 0;
  double variance = 0;
};
/// For a target with the weights λ of the observations, `length` √(1 + ‖λ‖²), and the multipliers μ
/// of the mean's columns, (XᵀΣ⁻¹X)⁻¹·(x − XᵀΣ⁻¹c).
[[nodiscard]] PointErrors rounding_at(const FactoredProblem& problem, double length,
                                      double multipliers);

/// Notes a prediction: the worst of all is what is stated. `judged`: whether errors count beside
/// the standard error, too, which none does where that is 0, at a data point.
void note_errors(PredictionRounding& worst, const PointErrors& errors, double standard_error,
                 double process_standard_error, bool judged);
/// The worst of both.
[[nodiscard]] PredictionRounding worst_of(const PredictionRounding& a, const PredictionRounding& b);

/// The rows of the largest errors, some for each kind. Ascending.
[[nodiscard]] std::vector<std::int64_t> worst_rows(std::span<const PredictionRounding> all);
/// Which of m predictions to look at: those with the largest means and standard errors, those with
/// the least standard errors, of which most are not `exact`, and some evenly. Ascending.
[[nodiscard]] std::vector<std::int64_t> telling_rows(std::span<const double> mean,
                                                     std::span<const double> standard_error,
                                                     std::span<const char> exact);

}  // namespace strata
