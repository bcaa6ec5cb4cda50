#pragma once
// JoinedStore: families of one table that rest in several stores.
//
// Contract: as block_store.hpp; each family is one of another store's, of the same geometry. The
// stores outlive it.

#include <memory>
#include <utility>
#include <vector>

#include "store/block_store.hpp"

namespace strata {

class JoinedStore final : public BlockStore {
 public:
  struct Part {
    BlockStore* store = nullptr;
    int family = 0;  ///< of that store
  };

  /// `parts` in the order of the families. `kept` lives as long.
  JoinedStore(BlockTable blocks, std::vector<Part> parts,
              std::unique_ptr<BlockStore> kept = nullptr)
      : blocks_(std::move(blocks)), parts_(std::move(parts)), kept_(std::move(kept)) {}

  [[nodiscard]] const BlockTable& blocks() const override { return blocks_; }
  void read(BlockId id, std::byte* to) override { store(id).read(there(id), to); }
  void write(BlockId id, const std::byte* from) override { store(id).write(there(id), from); }
  void write_last(BlockId id, const std::byte* from) override {
    store(id).write_last(there(id), from);
  }
  [[nodiscard]] std::int64_t columns_min(BlockId id) const override {
    return store(id).columns_min(there(id));
  }
  void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) override {
    store(id).read_columns(there(id), first, count, to);
  }
  void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                     const std::byte* from) override {
    store(id).write_columns(there(id), first, count, from);
  }
  [[nodiscard]] bool divides_columns(BlockId id) const override {
    return store(id).divides_columns(there(id));
  }
  void read_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                 std::byte* to) override {
    store(id).read_rows(there(id), column, first, count, to);
  }
  void write_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                  const std::byte* from) override {
    store(id).write_rows(there(id), column, first, count, from);
  }
  void commit(BlockId id) override { store(id).commit(there(id)); }
  [[nodiscard]] bool is_constant(BlockId id) const override {
    return store(id).is_constant(there(id));
  }
  [[nodiscard]] const std::byte* lend(BlockId id) override { return store(id).lend(there(id)); }
  [[nodiscard]] std::byte* lend_for_writing(BlockId id) override {
    return store(id).lend_for_writing(there(id));
  }

 private:
  [[nodiscard]] const Part& part(BlockId id) const {
    return parts_[static_cast<std::size_t>(id.family())];
  }
  [[nodiscard]] BlockStore& store(BlockId id) const { return *part(id).store; }
  [[nodiscard]] BlockId there(BlockId id) const { return {part(id).family, id.row(), id.col()}; }

  BlockTable blocks_;
  std::vector<Part> parts_;
  std::unique_ptr<BlockStore> kept_;
};

}  // namespace strata
