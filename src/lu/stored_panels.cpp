#include "lu/stored_panels.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.hpp"
#include "base/index.hpp"

namespace strata {
namespace {

constexpr int kDiagonalFamily = 3;
constexpr const char* kPanelsOf = "panels of ";

BlockTable table_of(const LuProblem& problem) {
  LuProblem in_storage = problem;
  in_storage.in_storage = true;
  in_storage.factor_identity = in_storage.pivots_identity = 0;
  BlockTable table = lu_factorization(in_storage).blocks;
  table.add({.name = "d",
             .rows = 1,
             .cols = problem.n,
             .tile_rows = 1,
             .tile_cols = problem.panel,
             .element = problem.precision,
             .origin = Origin::generated,
             .in_storage = true});
  return table;
}

StorageOptions options_of(const LuProblem& problem, const StorageChoice& storage,
                          std::uint64_t matrix) {
  StorageOptions options;
  options.directories = storage.directories;
  options.matrix = matrix;
  // Pivots, diagonals and statuses in the journal; panels in the files.
  constexpr std::int64_t kLargest = 16;  // bytes of a pivot, or a number of the diagonal
  options.journal_bytes = std::clamp<std::int64_t>(kLargest * problem.panel, 64, 1 << 14);
  options.to_read = storage.to_read;
  options.files = storage.files;
  options.about = fmt::format("LU of order {} in {}, {}{} columns", problem.n,
                              to_string(problem.precision), kPanelsOf, problem.panel);
  return options;
}

}  // namespace

/// Panels leave their diagonals behind, before they are durable themselves.
class StoredPanels::Keeper final : public BlockStore {
 public:
  explicit Keeper(FileStore& files) : files_(files) {}
  [[nodiscard]] const BlockTable& blocks() const override { return files_.blocks(); }
  void read(BlockId id, std::byte* to) override { files_.read(id, to); }
  void write(BlockId id, const std::byte* from) override { files_.write(id, from); }
  void write_last(BlockId id, const std::byte* from) override {
    if (id.family() == kPanelFamily) {
      const BlockExtent x = blocks().extent(id);
      const std::int64_t size = bytes_of(blocks().element(id));
      std::vector<std::byte> diagonal(at(x.cols * size));
      for (std::int64_t j = 0; j < x.cols; ++j)
        std::memcpy(diagonal.data() + j * size, from + (j * x.rows + x.col + j) * size, at(size));
      files_.write_last({kDiagonalFamily, 0, id.col()}, diagonal.data());
    }
    files_.write_last(id, from);
  }

 private:
  FileStore& files_;
};

std::int64_t StoredPanels::panel_at(const StorageChoice& storage) {
  if (!storage.used() || !FileStore::is_at(storage.directories[0], files_of(storage))) return 0;
  const std::string about = FileStore::about(storage.directories[0], files_of(storage));
  const std::int64_t panel = FileStore::number_behind(kPanelsOf, about);
  require(panel > 0, ErrorKind::storage, "storage", "{}: the directory holds no panels of LU: {}",
          storage.directories[0], about);
  return panel;
}

FactorProgress StoredPanels::progress_at(const std::string& directory) {
  FactorProgress progress;
  StorageChoice storage;
  storage.directories = {directory};
  const std::int64_t panel = panel_at(storage);
  require(panel > 0, ErrorKind::storage, "storage", "{}: there are no blocks in it", directory);
  progress.about = FileStore::about(directory);
  const std::int64_t n = FileStore::number_behind("order ", progress.about);
  progress.count = (n + panel - 1) / panel;
  const FileStore::Recorded recorded = FileStore::recorded(directory);
  progress.seconds = recorded.seconds;
  std::set<std::int64_t> panels;  // one whose pivots were lost is written, and recorded, again
  for (const BlockId id : recorded.last) {
    if (id.family() != kPanelFamily || !panels.insert(id.col()).second) continue;
    ++progress.done;
    const auto before = static_cast<double>(id.col() * panel);
    const auto width = static_cast<double>(std::min(panel, n - id.col() * panel));
    // Updates by all before it, then elimination below.
    const auto order = static_cast<double>(n);
    progress.work_share += width * (before * (2 * order - before) + width * (order - before));
  }
  const double all =
      static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) * 2 / 3;
  progress.work_share =
      progress.done == progress.count ? 1 : std::min(progress.work_share / all, 1.0);
  return progress;
}

StoredPanels::StoredPanels(const LuProblem& problem, const StorageChoice& storage,
                           std::uint64_t matrix) {
  const StorageOptions options = options_of(problem, storage, matrix);
  const bool opens = storage.resume && FileStore::is_at(storage.directories[0], files_of(storage));
  files_ = opens ? FileStore::open(table_of(problem), options)
                 : FileStore::create(table_of(problem), options);
  keeper_ = std::make_unique<Keeper>(*files_);
  const std::int64_t panels = files_->blocks().block_cols(kPanelFamily);
  const auto whole = [&](std::int64_t p) {
    return is_last(kPanelFamily, p) && is_last(kPivotsFamily, p) &&
           is_last(kPanelStatusFamily, p) && is_last(kDiagonalFamily, p);
  };
  while (done_ < panels && whole(done_)) ++done_;
  for (std::int64_t p = done_; p < panels; ++p)
    for (int f = 0; f < files_->blocks().families(); ++f) files_->forget({f, 0, p});
}

PanelStatus StoredPanels::status(std::int64_t p) {
  PanelStatus status;
  files_->read({kPanelStatusFamily, 0, p}, reinterpret_cast<std::byte*>(&status));
  return status;
}

template <class T>
std::vector<T> StoredPanels::all_of(int family) {
  const BlockTable& blocks = files_->blocks();
  std::vector<T> all(at(blocks.total_bytes(family)) / sizeof(T));
  for (std::int64_t p = 0; p < blocks.block_cols(family); ++p) {
    const BlockId id{family, 0, p};
    files_->read(id, reinterpret_cast<std::byte*>(all.data()) + blocks.byte_offset(id));
  }
  return all;
}

std::vector<std::int64_t> StoredPanels::exchanges() { return all_of<std::int64_t>(kPivotsFamily); }

std::vector<std::byte> StoredPanels::diagonal() { return all_of<std::byte>(kDiagonalFamily); }

std::vector<std::byte> StoredPanels::panel(std::int64_t p) {
  const BlockId id{kPanelFamily, 0, p};
  std::vector<std::byte> bytes(at(files_->blocks().bytes(id)));
  files_->read(id, bytes.data());
  return bytes;
}

}  // namespace strata
