#pragma once
// StoredPanels: the panels, pivots and statuses of an LU factorization in storage.
//
// Contract: what is durable of a factorization that did not end is found again: panels from the
// first on, each with its rows of L and of U, its pivots, its status and its diagonal. Everything
// behind comes from the source again; what of A leaves host memory before it is factored rests in
// temporary files. A directory of another matrix is refused (FileStore).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dense/getrf.hpp"
#include "lu/lu_tasks.hpp"
#include "store/file_store.hpp"
#include "store/joined_store.hpp"
#include "strata/lu.hpp"
#include "strata/options.hpp"

namespace strata {

class StoredPanels {
 public:
  /// Columns of the panels that a directory has; 0: it has none.
  [[nodiscard]] static std::int64_t panel_at(const StorageChoice& storage);

  /// As general_factor_progress() has it.
  [[nodiscard]] static FactorProgress progress_at(const std::string& directory);

  /// The panels of `problem`, as wide as it says; `matrix` tells its matrix from others. New files,
  /// or, to resume, those that are there.
  StoredPanels(const LuProblem& problem, const StorageChoice& storage, std::uint64_t matrix);
  StoredPanels(const StoredPanels&) = delete;
  StoredPanels& operator=(const StoredPanels&) = delete;

  /// Panels, from the first on, that are durable with all that belongs to them.
  [[nodiscard]] std::int64_t done() const noexcept { return done_; }
  /// The families of `blocks`, those of a factorization, with panels that `source` provides.
  /// `room`: some of these are written before they are factored, so room for all is reserved.
  [[nodiscard]] JoinedStore factorization(const BlockTable& blocks, BlockSource source, bool room);
  /// Those of a solve, whose right-hand sides are in `right_sides`.
  [[nodiscard]] JoinedStore solve(const BlockTable& blocks, BlockStore& right_sides);
  /// Bytes that a factorization writes for the last time, from panel `done` on.
  [[nodiscard]] std::int64_t bytes_to_write() const;

  /// Waits until what was written for the last time is durable.
  void flush() { files_->flush(); }

  [[nodiscard]] bool has_status(std::int64_t p) const;
  [[nodiscard]] PanelStatus status(std::int64_t p);
  /// Pivots of all panels, as getrf has them.
  [[nodiscard]] std::vector<std::int64_t> exchanges();
  /// Those of all panels, packed, in the precision of the factor.
  [[nodiscard]] std::vector<std::byte> diagonal();
  /// A panel's rows of L, or of U, packed.
  [[nodiscard]] std::vector<std::byte> triangle(bool lower, std::int64_t p);
  /// As FileStore has it.
  [[nodiscard]] std::string how() const { return files_->how(); }

 private:
  class Keeper;
  template <class T>
  [[nodiscard]] std::vector<T> all_of(int family);

  StorageOptions options_;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<BlockStore> keeper_;
  std::int64_t done_ = 0;
};

}  // namespace strata
