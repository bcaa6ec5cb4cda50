#include "lu/stored_panels.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.hpp"
#include "base/index.hpp"

namespace strata {
namespace {

// Families in the files: docs/file_format.md.
constexpr int kFactor = 0;
constexpr int kPivots = 1;
constexpr int kStatuses = 2;
constexpr int kDiagonal = 3;
constexpr const char* kPanelsOf = "panels of ";

BlockTable table_of_run(const LuProblem& problem) {
  LuProblem in_storage = problem;
  in_storage.in_storage = true;
  in_storage.factor_identity = in_storage.pivots_identity = 0;
  return lu_factorization(in_storage).blocks;
}

BlockTable table_of(const LuProblem& problem) {
  const BlockTable of_run = table_of_run(problem);
  BlockTable table;
  for (const int family : {kFactorFamily, kPivotsFamily, kPanelStatusFamily})
    table.add(of_run.family(family));
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

/// What belongs to panel p.
std::vector<BlockId> blocks_of_panel(std::int64_t p) {
  return {lower_block(kFactor, p),
          upper_block(kFactor, p),
          {kPivots, 0, p},
          {kStatuses, 0, p},
          {kDiagonal, 0, p}};
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

/// U leaves its diagonal behind, before it is durable itself.
class StoredPanels::Keeper final : public BlockStore {
 public:
  explicit Keeper(FileStore& files) : files_(files) {}
  [[nodiscard]] const BlockTable& blocks() const override { return files_.blocks(); }
  void read(BlockId id, std::byte* to) override { files_.read(id, to); }
  void write(BlockId id, const std::byte* from) override { files_.write(id, from); }
  void write_last(BlockId id, const std::byte* from) override {
    if (id == upper_block(kFactor, id.row() / 2)) {
      const BlockExtent x = blocks().extent(id);
      const std::int64_t size = bytes_of(blocks().element(id));
      std::vector<std::byte> diagonal(at(x.cols * size));
      for (std::int64_t j = 0; j < x.cols; ++j)
        std::memcpy(diagonal.data() + j * size, from + (j * x.rows + x.col + j) * size, at(size));
      files_.write_last({kDiagonal, 0, id.row() / 2}, diagonal.data());
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
  // One whose pivots were lost is written, and recorded, again.
  const std::set<BlockId> blocks(recorded.last.begin(), recorded.last.end());
  for (std::int64_t p = 0; p < progress.count; ++p) {
    if (!blocks.contains(lower_block(kFactor, p)) || !blocks.contains(upper_block(kFactor, p)))
      continue;
    ++progress.done;
    const auto before = static_cast<double>(p * panel);
    const auto width = static_cast<double>(std::min(panel, n - p * panel));
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
                           std::uint64_t matrix)
    : options_(options_of(problem, storage, matrix)) {
  options_.io = make_file_io();
  const bool opens = storage.resume && FileStore::is_at(storage.directories[0], files_of(storage));
  files_ = opens ? FileStore::open(table_of(problem), options_)
                 : FileStore::create(table_of(problem), options_);
  keeper_ = std::make_unique<Keeper>(*files_);
  const std::int64_t panels = files_->blocks().block_cols(kPivots);
  const auto whole = [&](std::int64_t p) {
    const std::vector<BlockId> blocks = blocks_of_panel(p);
    return std::all_of(blocks.begin(), blocks.end(),
                       [&](BlockId id) { return files_->is_last(id); });
  };
  while (done_ < panels && whole(done_)) ++done_;
  for (std::int64_t p = done_; p < panels; ++p)
    for (const BlockId id : blocks_of_panel(p)) files_->forget(id);
}

JoinedStore StoredPanels::factorization(const BlockTable& blocks, BlockSource source, bool room) {
  BlockTable panels;
  panels.add(blocks.family(kPanelFamily));
  StorageOptions options = options_;
  options.temporary = true;
  options.reserves = room;
  options.journal_bytes = 0;
  std::unique_ptr<FileStore> changing = FileStore::create(std::move(panels), std::move(options));
  changing->set_source(0, std::move(source));
  FileStore* const of_a = changing.get();
  return {
      blocks,
      {{of_a, 0}, {keeper_.get(), kPivots}, {keeper_.get(), kStatuses}, {keeper_.get(), kFactor}},
      std::move(changing)};
}

JoinedStore StoredPanels::solve(const BlockTable& blocks, BlockStore& right_sides) {
  return {blocks,
          {{files_.get(), kFactor}, {files_.get(), kPivots}, {&right_sides, kRightSideFamily}}};
}

std::int64_t StoredPanels::bytes_to_write() const {
  std::int64_t bytes = 0;
  for (std::int64_t p = done_; p < files_->blocks().block_cols(kPivots); ++p)
    for (const BlockId id : blocks_of_panel(p))
      if (id.family() != kDiagonal) bytes += files_->blocks().bytes(id);
  return bytes;
}

bool StoredPanels::has_status(std::int64_t p) const { return files_->is_last({kStatuses, 0, p}); }

PanelStatus StoredPanels::status(std::int64_t p) {
  PanelStatus status;
  files_->read({kStatuses, 0, p}, reinterpret_cast<std::byte*>(&status));
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

std::vector<std::int64_t> StoredPanels::exchanges() { return all_of<std::int64_t>(kPivots); }

std::vector<std::byte> StoredPanels::diagonal() { return all_of<std::byte>(kDiagonal); }

std::vector<std::byte> StoredPanels::triangle(bool lower, std::int64_t p) {
  const BlockId id = lower ? lower_block(kFactor, p) : upper_block(kFactor, p);
  std::vector<std::byte> bytes(at(files_->blocks().bytes(id)));
  files_->read(id, bytes.data());
  return bytes;
}

}  // namespace strata
