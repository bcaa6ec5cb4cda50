#pragma once
// OpenedSweeps: triangular solves, by GPUs, with a factor that was read from a file.
//
// Contract: the layout's units are branches with programs, as GPUs make them, in ranges or one that
// is the tree. If it is in fp64, stayed where it was made, and as many devices hold all blocks, L
// is brought to them once and stays, and the bits are those of ResidentSweeps; else it streams
// through the first one, solve by solve (StreamedSweeps). One call at a time.

#include <memory>
#include <string>

#include "base/work_crew.hpp"
#include "run/host_pinner.hpp"
#include "run/resident_devices.hpp"
#include "sparse/fronts/resident_sweeps.hpp"
#include "sparse/fronts/streamed_sweeps.hpp"

namespace strata {

class OpenedSweeps {
 public:
  /// L rests in `panels`, all of whose blocks are written; `layout` is of these sizes. What is
  /// given by reference outlives it. Takes memory of the devices that `options` name.
  OpenedSweeps(const SparseAnalysis& analysis, std::shared_ptr<const FrontLayout> layout,
               std::shared_ptr<FamilyMemory> panels, const FrontSizes& sizes,
               const RunOptions& options, WorkCrew& crew);

  /// Whether L stays on the devices.
  [[nodiscard]] bool resident() const noexcept { return sweeps_ != nullptr; }
  /// As StreamedSweeps::solve(); never false where L stays.
  [[nodiscard]] bool solve(MatrixView<double> b, bool forward, bool backward);
  /// What the last solve did; the first one where L stays also brought it there.
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }

 private:
  [[nodiscard]] bool take_resident(const SparseAnalysis& analysis, const FrontSizes& sizes,
                                   const RunOptions& options);

  std::shared_ptr<const FrontLayout> layout_;
  std::shared_ptr<FamilyMemory> panels_, structure_;
  Session session_;
  std::unique_ptr<ResidentSweeps> sweeps_;  // null where L streams
  std::unique_ptr<HostPinner> pinner_;
  std::unique_ptr<StreamedSweeps> streamed_;
  RunReport report_;
};

/// The GPUs among the devices of `options`, as `--devices` names them, if starting them pays for
/// solves with a factor that was read from a file, which the host would read for each solve. It
/// does if they were asked for, and not just found ("auto"), or if L has so many bytes that the
/// host takes more than some 40 ms for a right-hand side. Else empty.
[[nodiscard]] std::string gpus_worth_it(const RunOptions& options, std::int64_t factor_bytes);

}  // namespace strata
