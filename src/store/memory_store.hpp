#pragma once
// MemoryStore: blocks in host memory.
//
// Contract: as block_store.hpp. The memory of a family is a FamilyMemory, which several stores may
// share: a factor stays where it is while it is used in problems with different right-hand sides. A
// block that has not been written comes from the family's source, if it has one.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "store/block_store.hpp"

namespace strata {

/// Fills a packed block, or some columns of one, e.g. from an array, a file or a formula. May be
/// called by several threads at once.
using BlockSource = std::function<void(const BlockExtent& extent, std::byte* to)>;

/// The packed blocks of one family, in the order of BlockTable::index.
class FamilyMemory {
 public:
  /// Whole pages, not touched yet. Throws Error{memory} if the allocation is refused. The memory
  /// of a family that is temporary or stays, of which few blocks come home if any, is not reserved:
  /// it takes what is written.
  FamilyMemory(const BlockTable& blocks, int family, BlockSource source = nullptr);
  /// Memory of the caller's, which outlives it and has the blocks already.
  FamilyMemory(const BlockTable& blocks, int family, std::byte* data);
  /// No memory: so many blocks come from the source each time, and none is written.
  FamilyMemory(std::int64_t blocks, BlockSource source)
      : source_(std::move(source)), written_(static_cast<std::size_t>(blocks)) {}
  [[nodiscard]] static std::shared_ptr<FamilyMemory> without_memory(const BlockTable& blocks,
                                                                    int family, BlockSource source);

  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] const BlockSource& source() const noexcept { return source_; }
  /// Blocks come from the source again until they are written.
  void reset(BlockSource source);
  [[nodiscard]] bool written(std::int64_t block) const {
    return written_[static_cast<std::size_t>(block)].load(std::memory_order_acquire);
  }
  void mark_written(std::int64_t block) {
    written_[static_cast<std::size_t>(block)].store(true, std::memory_order_release);
  }

 private:
  std::shared_ptr<std::byte> data_;
  BlockSource source_;
  std::vector<std::atomic<bool>> written_;
};

class MemoryStore final : public BlockStore {
 public:
  /// `families` in the order of the table; a null entry is a family that never comes here.
  MemoryStore(BlockTable blocks, std::vector<std::shared_ptr<FamilyMemory>> families);

  [[nodiscard]] const BlockTable& blocks() const override { return blocks_; }
  void read(BlockId id, std::byte* to) override;
  void write(BlockId id, const std::byte* from) override;
  [[nodiscard]] std::int64_t columns_min(BlockId) const override { return 1; }
  void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) override;
  void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                     const std::byte* from) override;
  void commit(BlockId id) override;
  [[nodiscard]] const std::byte* lend(BlockId id) override;
  [[nodiscard]] std::byte* lend_for_writing(BlockId id) override;

  /// Evaluates the sources of all blocks of a family into the memory, with `threads` threads.
  void materialize(int family, int threads);

 private:
  [[nodiscard]] FamilyMemory& memory(BlockId id) const;
  [[nodiscard]] std::int64_t index_in_family(BlockId id) const;

  BlockTable blocks_;
  std::vector<std::int64_t> first_index_;
  std::vector<std::shared_ptr<FamilyMemory>> families_;
};

/// A source that packs blocks of a column-major matrix, which must outlive it. For a block on the
/// diagonal of a `lower` family the part above the diagonal is not read, and is zero in the block.
template <class T>
[[nodiscard]] BlockSource source_of_view(const T* data, std::int64_t ld, bool lower);

}  // namespace strata
