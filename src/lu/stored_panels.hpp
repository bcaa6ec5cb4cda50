#pragma once
// StoredPanels: the panels, pivots and statuses of an LU factorization in storage.
//
// Contract: what is durable of a factorization that did not end is found again: panels from the
// first on, each with its pivots, its status and its diagonal. Everything behind comes from the
// source again. A directory of another matrix is refused (FileStore).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dense/getrf.hpp"
#include "lu/lu_tasks.hpp"
#include "store/file_store.hpp"
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
  void set_source(BlockSource source) { files_->set_source(kPanelFamily, std::move(source)); }
  /// For the families of a factorization; panels that are written for the last time leave their
  /// diagonal behind.
  [[nodiscard]] BlockStore& store() noexcept { return *keeper_; }

  /// Waits until what was written for the last time is durable.
  void flush() { files_->flush(); }

  [[nodiscard]] bool is_last(int family, std::int64_t p) const {
    return files_->is_last({family, 0, p});
  }
  [[nodiscard]] PanelStatus status(std::int64_t p);
  /// Pivots of all panels, as getrf has them.
  [[nodiscard]] std::vector<std::int64_t> exchanges();
  /// Those of all panels, packed, in the precision of the factor.
  [[nodiscard]] std::vector<std::byte> diagonal();
  /// A panel, packed.
  [[nodiscard]] std::vector<std::byte> panel(std::int64_t p);
  /// As FileStore has it.
  [[nodiscard]] std::string how() const { return files_->how(); }

 private:
  class Keeper;
  template <class T>
  [[nodiscard]] std::vector<T> all_of(int family);

  std::unique_ptr<FileStore> files_;
  std::unique_ptr<BlockStore> keeper_;
  std::int64_t done_ = 0;
};

}  // namespace strata
