#pragma once
// BlockStore: where blocks rest.
//
// Contract: a block, or columns of one, is read and written packed as in its BlockTable, into and
// from memory that the caller owns. Different blocks may be read and written by several threads at
// once; the same block may not be written while it is read or written. What is read is what was
// last written, else what the block's source provides; a block with neither is Error{storage}.
// Failures are Error{storage} and leave other blocks intact. Whether blocks rest in memory or in
// files is the store's affair: one that has a block in memory may lend it.

#include <cstddef>

#include "matrix/block_table.hpp"

namespace strata {

class BlockStore {
 public:
  BlockStore() = default;
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;
  virtual ~BlockStore() = default;

  [[nodiscard]] virtual const BlockTable& blocks() const = 0;
  virtual void read(BlockId id, std::byte* to) = 0;
  virtual void write(BlockId id, const std::byte* from) = 0;
  /// The same of a value that is the block's last: a store that survives the process makes it so.
  virtual void write_last(BlockId id, const std::byte* from) { write(id, from); }

  /// The fewest columns of a block that can be read or written by themselves: all of them, unless a
  /// store knows better.
  [[nodiscard]] virtual std::int64_t columns_min(BlockId id) const {
    return blocks().extent(id).cols;
  }
  /// As `read` and `write`, for columns first … first + count − 1. A block that is written in
  /// parts, or into memory that was lent, counts as written only when the caller calls `commit`.
  virtual void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to);
  virtual void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                             const std::byte* from);
  /// Whether rows of one column can be moved by themselves: for blocks of few long columns, which
  /// several threads are to move.
  [[nodiscard]] virtual bool divides_columns(BlockId) const { return false; }
  /// As `read_columns` and `write_columns`, for rows first … first + count − 1 of a column.
  virtual void read_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                         std::byte* to);
  virtual void write_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                          const std::byte* from);
  virtual void commit(BlockId) {}
  /// Whether a block is never written: it may then be read before its turn.
  [[nodiscard]] virtual bool is_constant(BlockId) const { return false; }

  /// Memory that holds the block as it was last written, for whoever copies by themselves; null if
  /// the store has no such memory or the block was never written.
  [[nodiscard]] virtual const std::byte* lend(BlockId) { return nullptr; }
  /// Memory into which the whole block may be written; null if there is none. Always the same, and
  /// what `lend` gives after `commit`.
  [[nodiscard]] virtual std::byte* lend_for_writing(BlockId) { return nullptr; }
};

}  // namespace strata
