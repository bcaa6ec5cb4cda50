#include "cholesky/stored_tiles.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/index.hpp"
#include "kernels/dense/potrf.hpp"

namespace strata {
namespace {

constexpr const char* kWhat = "Cholesky of order ";
constexpr const char* kTilesOf = "tiles of order ";
constexpr const char* kDividedBy = "divided by 2 to the power of ";

BlockTable table_of(const CholeskyProblem& problem, bool temporary) {
  BlockTable table;
  table.add(family_of_factor(problem.n, problem.tile, problem.precision, problem.formats, 0));
  if (!temporary)
    table.add({.name = "S",
               .rows = kStatusRows,
               .cols = table.block_rows(kMatrixFamily),
               .tile_rows = kStatusRows,
               .tile_cols = 1,
               .in_storage = true});
  return table;
}

}  // namespace

bool StoredTiles::tells_of(const std::string& about) { return about.starts_with(kWhat); }

StoredTiles::Found StoredTiles::at(const StorageChoice& storage) {
  Found found;
  found.problem.tile = 0;
  if (!storage.used() || !FileStore::is_at(storage.directories[0], files_of(storage))) return found;
  const std::string& directory = storage.directories[0];
  const std::string about = FileStore::about(directory, files_of(storage));
  if (tells_of(about)) {
    found.problem.n = FileStore::number_behind(kWhat, about);
    found.problem.tile = FileStore::number_behind(kTilesOf, about);
  }
  for (const Element element :
       {Element::fp64, Element::fp32, Element::complex128, Element::complex64})
    if (about.find(fmt::format(" in {},", to_string(element))) != std::string::npos)
      found.problem.precision = element;
  found.matrix.hash = FileStore::matrix(directory, files_of(storage));
  found.matrix.exponent = static_cast<int>(FileStore::number_behind(kDividedBy, about));
  require(found.problem.tile > 0, ErrorKind::storage, "storage",
          "{}: the directory holds no tiles of Cholesky: {}", directory, about);
  return found;
}

StoredTiles::StoredTiles(const CholeskyProblem& problem, const StorageChoice& storage,
                         const StoredMatrix& matrix)
    : temporary_(matrix.hash == 0) {
  StorageOptions options;
  options.directories = storage.directories;
  options.matrix = matrix.hash;
  options.temporary = temporary_;
  options.to_read = storage.to_read;
  options.files = storage.files;
  options.journal_bytes = 64;  // statuses in the journal, tiles in the files
  options.about = fmt::format("{}{} in {}, {}{}", kWhat, problem.n, to_string(problem.precision),
                              kTilesOf, problem.tile);
  if (matrix.exponent != 0)
    options.about += fmt::format(", the matrix {}{}", kDividedBy, matrix.exponent);
  BlockTable table = table_of(problem, temporary_);
  const bool opens =
      !temporary_ && storage.resume && FileStore::is_at(storage.directories[0], files_of(storage));
  files_ = opens ? FileStore::open(std::move(table), options)
                 : FileStore::create(std::move(table), options);
  if (!opens) return;
  const BlockTable& blocks = files_->blocks();
  std::vector<bool> done(strata::at(tiles()));
  blocks.for_each(kMatrixFamily, [&](BlockId id) {
    const BlockId status(kStatusFamily, 0, id.col());
    const bool diagonal = id.row() == id.col();
    const bool whole = files_->is_last(id) && (!diagonal || files_->is_last(status));
    done[strata::at(blocks.index(id))] = whole;
    if (whole) return;
    files_->forget(id);
    if (diagonal) files_->forget(status);
  });
  done_ = std::make_shared<const std::vector<bool>>(std::move(done));
}

void StoredTiles::read_statuses(FamilyMemory& statuses) {
  if (done_ == nullptr) return;
  const BlockTable& blocks = files_->blocks();
  for (std::int64_t k = 0; k < blocks.block_rows(kMatrixFamily); ++k) {
    const BlockId id(kStatusFamily, 0, k);
    if (files_->is_last(id)) files_->read(id, statuses.data() + blocks.byte_offset(id));
  }
}

void StoredTiles::Statuses::write_last(BlockId id, const std::byte* from) {
  std::copy_n(from, blocks().bytes(id), memory_.data() + blocks().byte_offset(id));
  files_.write_last(id, from);
}

std::int64_t StoredTiles::tiles_done() const noexcept {
  return done_ == nullptr ? 0 : std::count(done_->begin(), done_->end(), true);
}

}  // namespace strata
