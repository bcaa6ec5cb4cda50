#pragma once
// CovarianceSolver: factors a covariance matrix that is generated tile by tile, and solves with its
// factor.
//
// Contract: the points go in once, a factorization for new parameters reuses the devices, the plan
// and the host memory of the one before. The covariance matrix never exists as a whole: a tile is
// generated on the device that first needs it. Not thread-safe.

#include <memory>
#include <span>

#include "kernels/covariance/covariance.hpp"
#include "strata/cholesky.hpp"
#include "strata/covariance_options.hpp"

namespace strata {

class DeviceProbes;
struct ProbeOptions;
struct Scout;

class CovarianceSolver {
 public:
  /// `points`: n × d coordinates (d >= 1), copied. `scout`: as MixedFactor takes it. Throws
  /// Error{memory, device} if the problem cannot be planned.
  CovarianceSolver(MatrixView<const double> points, const CovarianceOptions& options,
                   std::shared_ptr<const Scout> scout = nullptr);
  ~CovarianceSolver();
  CovarianceSolver(const CovarianceSolver&) = delete;
  CovarianceSolver& operator=(const CovarianceSolver&) = delete;

  [[nodiscard]] std::int64_t n() const noexcept;

  /// Factors the covariance of the points among themselves (nugget on the diagonal).
  const FactorInfo& factor(const CovarianceParameters& parameters);
  /// What the last factorization did.
  [[nodiscard]] const RunReport& report() const noexcept;

  /// ‖Σ‖∞ of the last factorization, if it came by it; else 0.
  [[nodiscard]] double known_norm() const noexcept;

  /// B ← L⁻¹·B, B ← L⁻ᵀ·B and B ← A⁻¹·B, B n × nrhs. Throw Error{misuse} unless the last
  /// factorization succeeded.
  RunReport solve_lower(MatrixView<double> b);
  RunReport solve_lower_transposed(MatrixView<double> b);
  RunReport solve(MatrixView<double> b);
  /// B ← L·B and B ← Lᵀ·B. Throw as they do.
  RunReport multiply_lower(MatrixView<double> b);
  RunReport multiply_lower_transposed(MatrixView<double> b);
  /// Columns first … first + out.cols − 1 of L, n rows each, zeros above its diagonal. Throws as
  /// they do.
  void copy_lower(std::int64_t first, MatrixView<double> out);

  /// Y ← Σ·V, V and Y n × r, Σ the covariance of the last factorization, nugget included: generated
  /// anew in fp64 where it is used, n² elements, and never stored. It is Σ itself, whatever the
  /// accuracy of the factor, and needs none. The bits depend on no tile, and not on the budget, the
  /// policy or the number of devices; Y may be V. |error| <= γ·|Σ|·|V| element by
  /// element with γ = (n + 2)·u/(1 − (n + 2)·u), u = 2⁻⁵³, for Σ as its elements are evaluated
  /// (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.5). Throws
  /// Error{misuse} if the shapes do not fit or `factor` was never called.
  RunReport multiply(MatrixView<const double> v, MatrixView<double> y);
  /// The vectors by which estimate_log_determinant() says how far the log-determinant of the factor
  /// is from that of Σ; on the devices, and beside this solver, whose factor is not to be made
  /// again before they are gone. Throws Error{misuse} unless the last factorization succeeded.
  [[nodiscard]] std::unique_ptr<DeviceProbes> probes(const ProbeOptions& options);

  /// For W = L⁻¹·C, with C_ij = c(points_i, targets_j) without nugget, targets m × d and R n × q:
  /// products ← Wᵀ·R (m × q) and squares_j ← Σ_i W_ij² (m of them). Neither C nor W comes into host
  /// memory, unless W has to leave the devices. Targets are computed in chunks of at most `chunk`;
  /// 0: as many as fit. The result does not depend on that, the budget, the policy or the number of
  /// devices; only a chunk of less than both half a tile and 1024 may round otherwise.
  /// Progress::what is "predict", in targets. The report is of all chunks, without a trace. Throws
  /// also Error{cancelled}.
  RunReport whitened_sums(MatrixView<const double> targets, MatrixView<const double> r,
                          MatrixView<double> products, std::span<double> squares,
                          std::int64_t chunk = 0);
  /// How many targets whitened_sums() computes at a time if there are `targets`, with `columns` of
  /// R: a multiple of the block whose targets share their rounding, unless it is all of them.
  [[nodiscard]] std::int64_t targets_at_a_time(std::int64_t targets, std::int64_t columns,
                                               std::int64_t chunk = 0) const;
  /// The diagonal of A⁻¹, n values, from columns of L⁻¹ that stay on the devices if they have room.
  /// Progress::what is "inverse", in columns. The report is of all chunks, without a trace. Throws
  /// Error{misuse} unless the last factorization succeeded; Error{cancelled}.
  RunReport inverse_diagonal(std::span<double> diagonal);
  /// Room for targets on the devices, beside a factor that fits; before `factor`, which it may undo
  /// on the devices.
  void reserve_for_targets(std::int64_t targets, std::int64_t columns);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace strata
