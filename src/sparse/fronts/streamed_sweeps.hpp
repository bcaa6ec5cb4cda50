#pragma once
// StreamedSweeps: triangular solves with a factor in ranges, or of one, that is at home, by a
// device.
//
// Contract: L comes through the first device, range by range, as a plan of sweep_schedule() has it:
// the device's memory is the budget, and what is planned is what is moved (Session). Right-hand
// sides are taken one, or kSweepColumns, at a time, as ResidentSweeps does; a pass over L serves as
// many such blocks as the budget holds. The bits are those of ResidentSweeps where no supernode was
// split. One call at a time.

#include <map>
#include <memory>
#include <vector>

#include "base/work_crew.hpp"
#include "session/session.hpp"
#include "sparse/fronts/sweep_schedule.hpp"
#include "store/memory_store.hpp"
#include "strata/matrix_view.hpp"
#include "strata/options.hpp"

namespace strata {

/// Whether L comes over a link in so many passes sooner than the host, which reads it once for each
/// sixteen columns, a core each, at about 8 GB/s, is done with it. So it does unless a budget is so
/// small that there are many passes.
[[nodiscard]] bool comes_sooner(std::int64_t passes, std::int64_t columns,
                                double link_bytes_per_second, int cores);
/// The same of passes like the first one, on this machine and this host.
[[nodiscard]] bool comes_sooner(const SweepPass& pass, std::int64_t columns,
                                const Machine& machine);

class StreamedSweeps {
 public:
  /// L and the structures of its ranges rest in `panels` and `structure`. All that is given by
  /// reference outlives it.
  StreamedSweeps(const SparseAnalysis& analysis, const FrontLayout& layout,
                 std::shared_ptr<FamilyMemory> panels, std::shared_ptr<FamilyMemory> structure,
                 Session& session, WorkCrew& crew);

  /// B ← L⁻¹·B, L⁻ᵀ·B, or both, in host memory. Rows are in the order of elimination where there is
  /// but one sweep, behind forward or before backward, else as in A. False, and B as it was, if the
  /// device does not hold the largest range beside one right-hand side, or a GPU so few of them
  /// that the host is faster.
  [[nodiscard]] bool solve(MatrixView<double> b, bool forward, bool backward);

  /// What the last solve that was made did, all of its passes together.
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }

 private:
  /// The tasks of a pass, and the homes of its blocks, of which those of right-hand sides are
  /// filled.
  struct Prepared {
    std::shared_ptr<const Schedule> schedule;
    std::vector<std::shared_ptr<FamilyMemory>> homes;
  };

  [[nodiscard]] Schedule schedule_of(const SweepPass& pass) const;
  Prepared& prepared(const SweepPass& pass);
  template <class T>
  void run(const SweepPass& pass, MatrixView<double> b);

  const SparseAnalysis& analysis_;
  const FrontLayout& layout_;
  std::shared_ptr<FamilyMemory> panels_, structure_;
  Session& session_;
  WorkCrew& crew_;
  Element element_;
  std::int64_t budget_;
  std::shared_ptr<const SweepRanges> ranges_;
  std::map<SweepPass, Prepared> passes_;
  RunReport report_;
};

}  // namespace strata
