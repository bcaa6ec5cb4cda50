#pragma once
// FrontBatch: the factors of many matrices of one pattern, with the devices that make them.
//
// Contract: as strata/sparse_batch.hpp has it; SparseCholeskyBatch is its public face.

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "run/resident_run.hpp"
#include "session/session.hpp"
#include "sparse/fronts/resident_sweeps.hpp"
#include "store/memory_store.hpp"
#include "strata/sparse_batch.hpp"

namespace strata {

struct OneMatrix;

class FrontBatch {
 public:
  /// `stays`: whether the factors stay on the only device if it holds them, as they do on a GPU.
  FrontBatch(SparseAnalysis analysis, const SparseMatrix& pattern, std::int64_t count,
             const SparseCholeskyOptions& options, std::optional<bool> stays = {});
  ~FrontBatch();

  void factor(MatrixView<const double> values, double shift);
  void solve(MatrixView<double> b);

  [[nodiscard]] bool resident() const noexcept { return resident_ != nullptr; }
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] const SparseAnalysis& analysis() const noexcept { return analysis_; }
  [[nodiscard]] std::span<const FactorInfo> infos() const noexcept { return infos_; }
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }
  /// What the device did since then for solves; `path` is empty if nothing.
  [[nodiscard]] const RunReport& solves() const noexcept { return solves_; }

 private:
  [[nodiscard]] bool take_resident();
  void plan();
  void check(MatrixView<const double> values);
  [[nodiscard]] bool reaches(const double* first, std::int64_t count) const;
  [[nodiscard]] MemoryStore store_of(std::shared_ptr<FamilyMemory> values,
                                     std::shared_ptr<FamilyMemory> status) const;
  void load_values(Queue& queue, std::span<const PlacedBlock> blocks,
                   MatrixView<const double> values, const double* shift);
  void run_resident(MatrixView<const double> values, double shift);
  void run_planned(MatrixView<const double> values, double shift);
  void read_statuses(const FamilyMemory& memory);
  [[nodiscard]] ResidentUnits units_for_solves() const;
  void solve_resident(MatrixView<double> b);
  void solve_at_home(std::int64_t k, MatrixView<double> b) const;

  SparseAnalysis analysis_;
  SparseMatrix pattern_;  // its values are not those of a matrix of the batch
  bool one_triangle_;
  std::int64_t count_;
  RunOptions options_;
  std::unique_ptr<OneMatrix> one_;  // null where there is nothing to factor
  std::unique_ptr<Session> session_;
  std::shared_ptr<const Schedule> schedule_;
  std::unique_ptr<ResidentRun> resident_;   // released before the devices
  std::optional<double> shift_there_;       // of all matrices, on the device
  std::mutex one_at_a_time_;                // solves there use one queue and one memory
  std::unique_ptr<ResidentSweeps> sweeps_;  // made when first needed
  std::int64_t sweep_group_ = 1;            // matrices at once
  std::shared_ptr<FamilyMemory> panels_;
  bool complete_ = false;
  std::vector<FactorInfo> infos_;
  RunReport report_;
  RunReport solves_;
  WorkCrew crew_;
};

}  // namespace strata
