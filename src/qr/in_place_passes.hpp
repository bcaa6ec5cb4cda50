#pragma once
// InPlacePasses: passes over a tall matrix that lies in the memory of devices, without a plan.
//
// Contract: as pass_executor.hpp. The tasks of row_pass() are put into queues of the sites in
// program order, on a GPU into one, on a CPU into one for each core, whose blocks are those of a
// device. A task waits for those of other queues that touch its blocks. V is where its caller has
// it, with its leading dimension, and is not copied; it may lie in parts, ranges of its rows, on
// several sites of one backend, of which each has a queue or two. The small blocks beside it are in
// memory that the sites keep; what a task of one site needs of another is copied there first. The
// report has the bytes that crossed the links, which are those of small blocks, and a span for each
// task. `progress` is asked while tasks run; Error{cancelled} if it says so.

#include <vector>

#include "qr/pass_executor.hpp"
#include "qr/small_blocks.hpp"
#include "run/device_site.hpp"

namespace strata {

/// Rows of V in memory of a site.
template <class T>
struct PlacedRows {
  DeviceSite* site = nullptr;
  MatrixView<T> v{};
  /// Columns of V that lie beside those; no block of a pass has columns of both.
  MatrixView<T> beside{};
};

template <class T>
class InPlacePasses final : public PassExecutor<T> {
 public:
  /// At least one part, at most kMemoriesMax; the mutex of each site is held as long as this lives.
  InPlacePasses(std::vector<PlacedRows<T>> parts, const Options& options);

  [[nodiscard]] std::int64_t rows() const override;
  [[nodiscard]] std::int64_t cols() const override {
    return parts_[0].v.cols + parts_[0].beside.cols;
  }
  [[nodiscard]] bool joins_solves() const override;
  [[nodiscard]] RunReport run(RowProblem problem, const PassData<T>& data) override;
  void read(std::int64_t first, std::int64_t count, T* packed) override;

 private:
  [[nodiscard]] static int queues_of(const DeviceSite& site, const Options& options);
  [[nodiscard]] RowProblem completed(RowProblem problem) const;
  [[nodiscard]] std::vector<Lane> lanes_of(const RowProblem& problem) const;
  [[nodiscard]] RunReport run_tasks(const RowProblem& problem, const PassData<T>& data);
  [[nodiscard]] RunReport run_count_gram(const RowProblem& problem, const PassData<T>& data);

  std::vector<PlacedRows<T>> parts_;
  std::vector<Lane> lanes_;
  ProgressCallback progress_;
  Options options_;
  std::vector<HeldBlock> kept_;  ///< of the blocks that a pass leaves to the next
};

}  // namespace strata
