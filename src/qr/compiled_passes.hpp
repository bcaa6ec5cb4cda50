#pragma once
// CompiledPasses: passes that were planned and compiled, for passes like them.
//
// Contract: a pass over a V of the same shape at the same place, with small blocks in the same
// memory, is not planned again: on an H200 that took a quarter of a call for 1,000,000 × 20
// (bench/results/2026-11-28-h200-qr-in-place.md). A few of the last ones are kept, for all threads,
// without their data.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "qr/row_passes.hpp"
#include "run/program.hpp"
#include "schedule/plan.hpp"

namespace strata {

struct CompiledPass {
  RowProblem problem;
  std::vector<std::int64_t> where;             ///< sites, queues, addresses and extents of V
  std::shared_ptr<const CompiledPass> before;  ///< whose triangles of TSQR this pass uses
  std::shared_ptr<const Plan> plan{};
  std::vector<std::byte*> memory{};  ///< of the small blocks, that the program has
  std::optional<Program> program{};
  Residency left{};  ///< of TSQR: the triangles, by the names that the next pass has for them
};

class CompiledPasses {
 public:
  /// Those of the process.
  [[nodiscard]] static CompiledPasses& all();
  /// A pass of this problem, place and predecessor; null if none is kept.
  [[nodiscard]] std::shared_ptr<const CompiledPass> find(const CompiledPass& like);
  /// Keeps a pass in the place of one like it, or of the one that was used longest ago.
  void keep(std::shared_ptr<const CompiledPass> pass);

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<const CompiledPass>> passes_;  // the one that was used last is first
};

}  // namespace strata
