#pragma once
// StoredTiles: the tiles of a Cholesky factor in storage.
//
// Contract: temporary ones are gone with the process, and may be written again and again. Others
// are durable tile by tile, with the statuses of those on the diagonal, and a factorization that
// did not end is gone on with: tiles that are durable stay, all others come from the source again.
// A directory of another matrix is refused (FileStore).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cholesky/tile_cholesky.hpp"
#include "store/file_store.hpp"
#include "strata/options.hpp"

namespace strata {

/// Which matrix tiles are of.
struct StoredMatrix {
  std::uint64_t hash = 0;  ///< tells it from others; 0: tiles are temporary
  int exponent = 0;        ///< what is factored is 2^(−exponent) times it
};

class StoredTiles {
 public:
  /// What directories hold: n, tile and precision of a factor, and its matrix; a tile of 0:
  /// nothing. Throws Error{storage} where they hold something else.
  struct Found {
    CholeskyProblem problem{};
    StoredMatrix matrix{};
  };
  [[nodiscard]] static Found at(const StorageChoice& storage);
  /// Whether a directory that says so of itself holds such tiles.
  [[nodiscard]] static bool tells_of(const std::string& about);

  /// The tiles of `problem`, as large as it says: temporary ones, new files or, to resume, those
  /// that are there.
  StoredTiles(const CholeskyProblem& problem, const StorageChoice& storage,
              const StoredMatrix& matrix);
  StoredTiles(const StoredTiles&) = delete;
  StoredTiles& operator=(const StoredTiles&) = delete;

  /// Which tiles are durable, by BlockTable::index; null: none.
  [[nodiscard]] const std::shared_ptr<const std::vector<bool>>& done() const noexcept {
    return done_;
  }
  [[nodiscard]] std::int64_t tiles_done() const noexcept;
  [[nodiscard]] std::int64_t tiles() const { return files_->blocks().count(kMatrixFamily); }
  void set_source(BlockSource source) { files_->set_source(kMatrixFamily, std::move(source)); }
  /// For kMatrixFamily.
  [[nodiscard]] BlockStore& store() noexcept { return *files_; }
  /// Waits until what was written for the last time is durable, unless it is temporary.
  void flush() { files_->flush(); }
  /// Those of diagonal tiles that are there already.
  void read_statuses(FamilyMemory& statuses);
  /// For kStatusFamily where they are durable: they go into memory, too, where they are watched.
  class Statuses final : public BlockStore {
   public:
    Statuses(StoredTiles& tiles, FamilyMemory& memory) : files_(*tiles.files_), memory_(memory) {}
    [[nodiscard]] const BlockTable& blocks() const override { return files_.blocks(); }
    void read(BlockId id, std::byte* to) override { files_.read(id, to); }
    void write(BlockId id, const std::byte* from) override { files_.write(id, from); }
    void write_last(BlockId id, const std::byte* from) override;

   private:
    FileStore& files_;
    FamilyMemory& memory_;
  };
  /// As FileStore has it.
  [[nodiscard]] std::string how() const { return files_->how(); }

 private:
  bool temporary_;
  std::unique_ptr<FileStore> files_;
  std::shared_ptr<const std::vector<bool>> done_;
};

}  // namespace strata
