#pragma once
// PlannedPasses: passes over a tall matrix in host memory, or in a mapped file, by the engine.
//
// Contract: as pass_executor.hpp. Each pass is planned, simulated and run (Session); V stays on the
// devices between passes where there is room. The reports are those of the runs.

#include <cstdint>
#include <vector>

#include "qr/pass_executor.hpp"
#include "qr/row_store.hpp"
#include "session/session.hpp"

namespace strata {

/// The least bytes of a pass: V where it is read for the first time, what is written, and what lies
/// beside it.
[[nodiscard]] std::int64_t floor_of(const RowProblem& problem, const BlockTable& blocks,
                                    bool first);
/// The memory of each device by which passes go on CPUs where none was asked for, in bytes; 0: that
/// of the machine. widest: as PlannedPasses has it, with the extents and elements of a matrix.
[[nodiscard]] std::int64_t cache_budget(const RunOptions& run, const Machine& machine,
                                        std::vector<RowProblem> widest);

template <class T>
class PlannedPasses final : public PassExecutor<T> {
 public:
  /// widest: of the passes to come those that may need most memory; their m, n and elements follow
  /// from the matrix. Throws Error{memory} if a device cannot hold what they need at least.
  PlannedPasses(TallColumns<T> matrix, const QrOptions& options,
                const std::vector<RowProblem>& widest = {{.pass = RowPass::solve_gram}});

  /// Whether V is more than the devices hold, and there is room for the pass that makes Q of it by
  /// up to `triangles` triangles, of which there may then be passes too. Before the first pass.
  [[nodiscard]] bool can_form_streamed(int triangles);

  [[nodiscard]] std::int64_t rows() const override { return matrix_.rows(); }
  [[nodiscard]] std::int64_t cols() const override { return matrix_.cols(); }
  [[nodiscard]] RunReport run(RowProblem problem, const PassData<T>& data) override;
  void read(std::int64_t first, std::int64_t count, T* packed) override {
    matrix_.read(first, count, 0, cols(), packed);
  }

 private:
  void begin(RowPass first);
  [[nodiscard]] RowProblem completed(RowProblem problem) const;
  void take_sums(const BlockTable& blocks, RowStore<T>& store, const PassData<T>& data, bool tsqr);

  TallColumns<T> matrix_;
  std::vector<RowProblem> widest_;
  QrOptions options_;
  Session session_;
  std::int64_t block_elements_ = 0;  ///< 0: no pass has been run
  std::uint64_t identity_;
  std::uint64_t tsqr_identity_;       ///< of V in other blocks, where those of TSQR are
  std::vector<std::byte> triangles_;  ///< of TSQR, node by node
};

}  // namespace strata
