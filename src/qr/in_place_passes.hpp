#pragma once
// InPlacePasses: passes over a tall matrix that lies in the memory of devices.
//
// Contract: as pass_executor.hpp. The tasks of row_pass() are a resident schedule, whose plan is
// compiled and issued (run/program.hpp), and kept for passes like it (compiled_passes.hpp). V is
// placed: it is where its caller has it, with its leading dimension, and is not copied; it may lie
// in parts, ranges of its rows, on several sites of one backend. On a GPU tasks have one queue, or
// two of each part, on a CPU one for each core. The small blocks beside V are in memory that the
// sites keep, and go to and from the host through their staging memory. The report has the bytes
// that crossed the links, which are those of small blocks, and a span for each task. `progress` is
// asked while tasks run; Error{cancelled} if it says so.

#include <memory>
#include <span>
#include <vector>

#include "qr/compiled_passes.hpp"
#include "qr/pass_executor.hpp"
#include "run/device_site.hpp"
#include "run/program.hpp"
#include "schedule/residency.hpp"

namespace strata {

/// Rows of V in memory of a site.
template <class T>
struct PlacedRows {
  DeviceSite* site = nullptr;
  MatrixView<T> v{};
  /// Columns of V that lie beside those; no block of a pass has columns of both.
  MatrixView<T> beside{};
  /// V is one block in host memory, packed, that passes load and do not write.
  bool on_host = false;
};

/// Parts that V may have.
inline constexpr std::size_t kPartsMax = 32;

template <class T>
class InPlacePasses final : public PassExecutor<T> {
 public:
  /// At least one part, at most kPartsMax; the mutex of each site is held as long as this lives.
  InPlacePasses(std::vector<PlacedRows<T>> parts, const QrOptions& options);

  [[nodiscard]] std::int64_t rows() const override;
  [[nodiscard]] std::int64_t cols() const override {
    return parts_[0].v.cols + parts_[0].beside.cols;
  }
  [[nodiscard]] bool joins_solves() const override;
  [[nodiscard]] RunReport run(RowProblem problem, const PassData<T>& data) override;
  void read(std::int64_t first, std::int64_t count, T* packed) override;

 private:
  [[nodiscard]] static int queues_of(const DeviceSite& site, const RunOptions& run);
  [[nodiscard]] RowProblem completed(RowProblem problem) const;
  [[nodiscard]] int queues_of(const RowProblem& problem) const;
  [[nodiscard]] std::shared_ptr<const Schedule> schedule_of(const RowProblem& problem) const;
  [[nodiscard]] CallersPlace place_of(const BlockTable& blocks, BlockId id, std::size_t part,
                                      std::span<std::byte* const> triangles) const;
  [[nodiscard]] std::vector<std::int64_t> places(const RowProblem& problem) const;
  [[nodiscard]] std::vector<DeviceSite*> sites() const;
  /// planned: whether it was not compiled before.
  [[nodiscard]] std::shared_ptr<const CompiledPass> compile(const RowProblem& problem,
                                                            bool& planned);
  [[nodiscard]] RunReport run_tasks(const RowProblem& problem, const PassData<T>& data);
  [[nodiscard]] RunReport run_count_gram(const RowProblem& problem, const PassData<T>& data);

  std::vector<PlacedRows<T>> parts_;
  ProgressCallback progress_;
  QrOptions options_;
  std::shared_ptr<const CompiledPass> triangles_;  ///< the pass whose triangles are there
};

}  // namespace strata
