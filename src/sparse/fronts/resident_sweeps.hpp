#pragma once
// ResidentSweeps: triangular solves with factors on the devices that hold them.
//
// Contract: passes of resident_sweep_schedule(), each planned and compiled when it first comes, in
// memory that is taken once. Right-hand sides are taken one, or ResidentUnits::columns, at a time.
// What is planned is what is moved. One call at a time.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "run/device_set.hpp"
#include "run/resident_run.hpp"
#include "sparse/fronts/resident_sweep_schedule.hpp"
#include "store/memory_store.hpp"
#include "strata/matrix_view.hpp"
#include "strata/options.hpp"

namespace strata {

class ResidentSweeps {
 public:
  /// Where L is: on the devices of the run that made it, or, loaded by the first solve, at home.
  struct Factor {
    const ResidentRun* run = nullptr;
    std::shared_ptr<FamilyMemory> panels, structure;
  };

  /// `order` is that of elimination; at most `together` matrices are solved at once. All that is
  /// given by reference outlives it. Takes memory of the devices, which throws Error{memory}.
  ResidentSweeps(ResidentUnits units, std::span<const std::int32_t> order, Factor factor,
                 std::shared_ptr<ResidentDevices> on, DeviceSet& devices,
                 std::int64_t together = 1);

  /// B ← L⁻¹·B, L⁻ᵀ·B, or both: in host memory or in that of the first device. Rows are in the
  /// order of elimination where there is but one sweep, behind forward or before backward, else as
  /// in A.
  void solve(MatrixView<double> b, bool forward, bool backward);
  /// The same, both, for some of the matrices, of whose units there is one each: matrix k has the
  /// columns from k·nrhs on.
  void solve_each(MatrixView<double> b, std::int64_t nrhs, std::span<const std::int32_t> matrices);

  /// What was done since it was last asked for; `path` is empty if nothing was.
  [[nodiscard]] RunReport take_report();

 private:
  struct Ready {
    std::unique_ptr<ResidentRun> run;
    std::unique_ptr<MemoryStore> store;       ///< of what is loaded but right-hand sides
    std::vector<MatrixView<double>> columns;  ///< where they lay when it last ran
  };

  Ready& prepared(const ResidentPass& pass);
  void carry_out(const ResidentPass& pass, std::vector<MatrixView<double>> columns);
  [[nodiscard]] bool reaches(MatrixView<double> b) const;
  [[nodiscard]] CallersPlaces places_of(const ResidentPass& pass) const;

  std::shared_ptr<const ResidentUnits> units_;
  Factor factor_;
  std::shared_ptr<ResidentDevices> on_;
  DeviceSet& devices_;
  std::vector<std::int32_t> order_;
  std::vector<Buffer> x_, arenas_;  // of each device
  Residency constants_;             // what the arenas hold
  std::map<ResidentPass, Ready> passes_;
  std::vector<MatrixView<double>> columns_;  // of the pass that runs
  RunReport report_;
};

}  // namespace strata
