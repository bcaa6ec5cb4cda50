#pragma once
// TileFactor: a Cholesky factor in packed tiles in host memory, with the devices that made it.
//
// Contract: what CholeskyFactor and CovarianceSolver share. The plan is made once; `factor` may be
// called again with other values. Not thread-safe.

#include <memory>
#include <vector>

#include "cholesky/planning.hpp"
#include "run/host_pinner.hpp"
#include "run/run.hpp"
#include "store/memory_store.hpp"
#include "strata/cholesky.hpp"

namespace strata {

class TileFactor {
 public:
  /// `problem.tile` and `problem.devices` are filled in from the options. Throws Error{memory} when
  /// the host cannot hold the factor or a device budget does not suffice.
  TileFactor(CholeskyProblem problem, const Options& options);
  /// On these devices; options.devices is not read.
  TileFactor(CholeskyProblem problem, const Options& options, std::shared_ptr<DeviceSet> devices);
  TileFactor(TileFactor&&) = default;
  TileFactor& operator=(TileFactor&&) = delete;  // would let go of memory that is being pinned

  [[nodiscard]] const CholeskyProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const FactorInfo& info() const noexcept { return info_; }
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }

  /// Factors the stored matrix that `source` provides.
  const FactorInfo& factor_stored(BlockSource source);
  /// The same in two halves, for timing: evaluates the source into host memory with `threads`
  /// threads, and factors what is there.
  void load(BlockSource source, int threads);
  const FactorInfo& factor_loaded();
  /// Factors the covariance of `points` (n × d, column-major, alive during the call).
  const FactorInfo& factor_covariance(const double* points, const CovarianceParameters& parameters);

  /// B ← L⁻¹·B or L⁻ᵀ·B, n × nrhs. T is the factor's type.
  template <class T>
  RunReport sweep(Sweep direction, MatrixView<T> b);
  /// W ← L⁻¹·C(points, targets): points n × d, targets m × d, both with ld = their rows.
  RunReport whiten(const double* points, const double* targets,
                   const CovarianceParameters& parameters, MatrixView<double> w);

  /// L·(Lᵀ·v) in fp64, for checking a factor of any precision.
  [[nodiscard]] std::vector<double> multiply(const std::vector<double>& v) const;

  /// Copies L out of its tiles; zero above the diagonal.
  template <class T>
  void copy_lower(MatrixView<T> out) const;

 private:
  const FactorInfo& factor(MemoryStore& store, const RunOptions& options);
  RunReport run_solve(const SolveProblem& problem, Sweep direction, MemoryStore& store,
                      const RunOptions& options);
  void check_usable(Element element, std::int64_t rows) const;

  Options options_;
  std::shared_ptr<DeviceSet> devices_;
  CholeskyProblem problem_;
  PlannedRun planned_;
  std::shared_ptr<FamilyMemory> tiles_;
  std::unique_ptr<HostPinner> pinner_;  // of the memory of the tiles
  FactorInfo info_;
  RunReport report_;
  bool factored_ = false;
};

}  // namespace strata
