#pragma once
// CovarianceSolver: factors a covariance matrix that is generated tile by tile, and solves with its
// factor.
//
// Contract: the points go in once, a factorization for new parameters reuses the devices, the plan
// and the host memory of the one before. The covariance matrix never exists as a whole: a tile is
// generated on the device that first needs it. Not thread-safe.

#include <memory>

#include "kernels/covariance.hpp"
#include "strata/cholesky.hpp"

namespace strata {

class CovarianceSolver {
 public:
  /// `points`: n × d coordinates (d >= 1), copied. Throws Error{memory, device} if the problem
  /// cannot be planned.
  CovarianceSolver(MatrixView<const double> points, const Options& options);
  ~CovarianceSolver();
  CovarianceSolver(const CovarianceSolver&) = delete;
  CovarianceSolver& operator=(const CovarianceSolver&) = delete;

  [[nodiscard]] std::int64_t n() const noexcept;

  /// Factors the covariance of the points among themselves (nugget on the diagonal).
  const FactorInfo& factor(const CovarianceParameters& parameters);
  /// Of the last factorization.
  [[nodiscard]] const RunReport& report() const noexcept;

  /// B ← L⁻¹·B and B ← A⁻¹·B, B n × nrhs. Throw Error{misuse} unless the last factorization
  /// succeeded.
  RunReport solve_lower(MatrixView<double> b);
  RunReport solve(MatrixView<double> b);

  /// W ← L⁻¹·C, with C_ij = c(points_i, targets_j) without nugget; targets m × d, W n × m. C is
  /// generated on the devices.
  RunReport whitened_cross_covariance(MatrixView<const double> targets, MatrixView<double> w);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace strata
