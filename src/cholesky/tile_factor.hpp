#pragma once
// TileFactor: a Cholesky factor in packed tiles in host memory, with the devices that made it.
//
// Contract: what CholeskyFactor and CovarianceSolver share. `factor` may be called again with other
// values. What a run leaves on the devices (tiles of the factor, coordinates) is where the next one
// starts; plans are kept as long as they start from the same. Not thread-safe.

#include <deque>
#include <memory>
#include <vector>

#include "cholesky/planning.hpp"
#include "kernels/covariance.hpp"
#include "run/host_pinner.hpp"
#include "run/run.hpp"
#include "session/planned_run.hpp"
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

  /// B ← L⁻¹·B, L⁻ᵀ·B or both, n × nrhs. T is the factor's type.
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
  /// A solve that was planned, and from what it starts.
  struct KeptPlan {
    SolveProblem problem;
    Sweep direction;
    PlannedRun planned;
  };

  const FactorInfo& factor(MemoryStore& store, std::vector<OperationValues> values);
  /// The memory of the tiles as it is now.
  [[nodiscard]] FamilyHome home_of_tiles() const;
  /// The plan of the factorization from what is on the devices now.
  const PlannedRun& plan_of_factor();
  const PlannedRun& plan_of_solve(const SolveProblem& problem, Sweep direction);
  [[nodiscard]] SolveProblem solve_problem(std::int64_t rhs) const;
  RunReport run_solve(const SolveProblem& problem, Sweep direction, MemoryStore& store,
                      RunOptions options);
  void reserve_arenas();
  void check_usable(Element element, std::int64_t rows) const;

  Options options_;
  std::shared_ptr<DeviceSet> devices_;
  CholeskyProblem problem_;
  PlannedRun planned_;    ///< from empty devices
  PlannedRun continued_;  ///< from what was there the last time; none yet: no plan
  std::deque<KeptPlan> solves_;
  std::shared_ptr<FamilyMemory> tiles_;
  std::shared_ptr<FamilyMemory> statuses_;
  std::unique_ptr<HostPinner> pinner_;  // of the memory of the tiles
  FactorInfo info_;
  RunReport report_;
  bool factored_ = false;
};

}  // namespace strata
