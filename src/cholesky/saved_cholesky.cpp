// Cholesky factors in storage, found again: the file of a factor, what is in directories, and how
// far a run is that has not ended.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "base/check.hpp"
#include "base/checksum_file.hpp"
#include "base/pending_path.hpp"
#include "cholesky/dense_factor.hpp"
#include "store/stored_place.hpp"

namespace strata {
namespace {

constexpr FileFormat kCholeskyFormat{"Cholesky factor in storage", 1, "factor"};

std::string file_in(const std::string& directory) { return directory + "/factor"; }

}  // namespace

CholeskyFactor open_cholesky(const RunOptions& options) {
  require(options.storage.used(), ErrorKind::misuse, "cholesky",
          "a factor is opened in the directories of RunOptions::storage");
  const StoredTiles::Found found = StoredTiles::at(options.storage);
  require(found.problem.tile > 0, ErrorKind::storage, "cholesky", "{}: there is no factor in it",
          options.storage.directories[0]);
  RunOptions opened = options;
  opened.storage.resume = opened.storage.to_read = true;
  auto state = std::make_unique<CholeskyFactor::State>(
      CholeskyFactor::State{.tiles = TileFactor(found.problem, {.run = opened}, found.matrix),
                            .matrix = found.matrix,
                            .directories = options.storage.directories});
  state->tiles.adopt_stored();
  state->note_info();
  return CholeskyFactor(std::move(state));
}

bool CholeskyFactor::is_at(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file_in(directory), error)) return false;
  const std::string prefix = kCholeskyFormat.prefix();
  std::ifstream file(file_in(directory), std::ios::binary);
  std::string found(prefix.size(), '\0');
  file.read(found.data(), std::ssize(found));
  return file.good() && found == prefix;
}

void CholeskyFactor::save(const std::string& directory) const {
  require(info().ok, ErrorKind::misuse, "factor", "there is no factor: pivot {} is {}",
          info().first_bad_pivot, info().bad_pivot);
  require(state_->matrix.hash != 0, ErrorKind::misuse, "factor",
          "a factor in host memory is not saved: RunOptions::storage says where it rests");
  PendingDirectory place(directory, kCholeskyFormat.where);
  ChecksumWriter writer(file_in(directory), kCholeskyFormat);
  writer.add(state_->scaled_condition);
  writer.add(state_->log_determinant_error);
  save_place(StoredPlace::seen_from(directory, state_->matrix.hash, state_->directories), writer);
  writer.finish();
  place.keep();
}

CholeskyFactor CholeskyFactor::open(const std::string& directory, const RunOptions& options) {
  const std::string path = file_in(directory);
  ChecksumReader reader(path, kCholeskyFormat);
  double condition = 0;
  double error = 0;
  reader.read(condition);
  reader.read(error);
  const StoredPlace place = read_place(reader, path);
  reader.finish();
  RunOptions opened = options;
  if (!options.storage.used()) opened.storage.directories = place.directories_from(directory);
  CholeskyFactor factor = open_cholesky(opened);
  require(factor.state_->matrix.hash == place.matrix, ErrorKind::storage, "factor",
          "{}: the tiles are of another matrix than '{}' tells of", opened.storage.directories[0],
          path);
  factor.state_->scaled_condition = condition;
  factor.state_->log_determinant_error = error;
  return factor;
}

std::optional<FactorProgress> cholesky_progress(const std::string& directory) {
  StorageChoice storage;
  storage.directories = {directory};
  if (!FileStore::is_at(directory) || !StoredTiles::tells_of(FileStore::about(directory)))
    return std::nullopt;
  const CholeskyProblem problem = StoredTiles::at(storage).problem;
  FactorProgress progress;
  progress.about = FileStore::about(directory);
  const std::int64_t rows = (problem.n + problem.tile - 1) / problem.tile;
  progress.count = rows * (rows + 1) / 2;
  const FileStore::Recorded recorded = FileStore::recorded(directory);
  progress.seconds = recorded.seconds;
  const auto order_of = [&](std::int64_t k) {
    return static_cast<double>(std::min(problem.tile, problem.n - k * problem.tile));
  };
  std::set<std::pair<std::int64_t, std::int64_t>> tiles;  // one may be recorded again
  for (const BlockId id : recorded.last) {
    if (id.family() != kMatrixFamily || !tiles.insert({id.row(), id.col()}).second) continue;
    // Updates by all columns before it, then a triangular solve, or a factorization.
    const double before = static_cast<double>(id.col() * problem.tile);
    const double rows_of = order_of(id.row());
    const double cols_of = order_of(id.col());
    progress.work_share += id.row() == id.col() ? cols_of * cols_of * (before + cols_of / 3)
                                                : rows_of * cols_of * (2 * before + cols_of);
  }
  progress.done = std::ssize(tiles);
  const auto n = static_cast<double>(problem.n);
  progress.work_share =
      progress.done == progress.count ? 1 : std::min(progress.work_share / (n * n * n / 3), 1.0);
  return progress;
}

}  // namespace strata
