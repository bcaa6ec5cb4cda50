#pragma once
// ResidentSweeps: triangular solves with a factor on the devices that hold it.
//
// Contract: the layout's units are branches with programs, all of whose blocks stay
// (ResidentRun). Right-hand sides are taken one, or kSweepColumns, at a time. The bits do not
// depend on how units are cut and dealt. One call at a time.
//
// Method: units in their order forward, and from the last to the first backward, each on its device
// by sweep_branch. Between them go rows of right-hand sides: forward those below the fronts at a
// unit's top, to the device of the unit that takes them in; backward the columns of units above.

#include <vector>

#include "run/device_set.hpp"
#include "run/resident_run.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

class ResidentSweeps {
 public:
  /// Bytes that each device needs beside the blocks.
  [[nodiscard]] static std::int64_t bytes_of(const SparseAnalysis& analysis);

  /// All of these outlive it. Takes memory of the devices.
  ResidentSweeps(const SparseAnalysis& analysis, const FrontLayout& layout, ResidentRun& run,
                 DeviceSet& devices);

  /// B ← L⁻¹·B, L⁻ᵀ·B, or both: in host memory or in that of the first device. Rows are in the
  /// order of elimination where there is but one sweep, behind forward or before backward, else as
  /// in A.
  void solve(MatrixView<double> b, bool forward, bool backward);

 private:
  /// A part of a unit's right-hand sides that comes from another unit.
  struct Incoming {
    std::int32_t unit;      ///< whose
    std::int64_t from, to;  ///< rows of updates, in its work memory and in this unit's
    std::int64_t rows;
  };
  struct Unit {
    int device;
    int queue;                            ///< of those of the device
    std::int64_t first, columns;          ///< of L
    std::vector<Incoming> incoming;       ///< forward
    std::vector<std::int32_t> ancestors;  ///< units whose columns are rows of this one's fronts
    BlockView panels, structure, work;
    Event done;  ///< its last sweep
  };

  void add_unit(const SparseAnalysis& analysis, const FrontLayout& layout, std::int32_t u);
  void connect(const FrontLayout& layout);
  void sweep_units(std::int64_t columns, bool forward, bool backward);
  void sweep_forward(Unit& unit, std::int64_t columns);
  void sweep_backward(Unit& unit, std::int64_t columns);
  void call(Unit& unit, std::int64_t columns, std::uint32_t variant);
  /// Copies columns of X of a unit from a device to another, on a queue of that.
  void copy_columns(const Unit& unit, std::int64_t columns, int from, int to, Queue& queue);
  [[nodiscard]] Queue& queue_of(const Unit& unit) const {
    return run_.queue(unit.device, unit.queue);
  }
  [[nodiscard]] double* x_of(int device) const {
    return reinterpret_cast<double*>(x_[static_cast<std::size_t>(device)].data());
  }

  ResidentRun& run_;
  DeviceSet& devices_;
  std::int64_t columns_ = 1;  ///< at once
  std::vector<Unit> units_;
  std::vector<Buffer> x_;  // of each device, all rows
  /// For each device and unit, when the unit's solved columns are there. Empty: not copied there
  /// yet.
  std::vector<std::vector<Event>> there_;
  Buffer b_, order_;  // of the first one
};

}  // namespace strata
