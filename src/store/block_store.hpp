#pragma once
// BlockStore: where blocks rest.
//
// Contract: a block, or columns of one, is read and written packed as in its BlockTable, into and
// from memory that the caller owns. Different blocks may be read and written by several threads at
// once; the same block may not be written while it is read or written. What is read is what was
// last written, else what the block's source provides; a block with neither is Error{storage}.
// Failures are Error{storage} and leave other blocks intact.

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

  /// Whether some columns of a block may be read or written without the others.
  [[nodiscard]] virtual bool divisible() const { return false; }
  /// As `read` and `write`, for columns first … first + count − 1: all of them, unless the store is
  /// divisible. There a block counts as written only when the caller calls `mark_written`.
  virtual void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to);
  virtual void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                             const std::byte* from);

  /// Whether the block rests here, as opposed to coming from a source.
  [[nodiscard]] virtual bool written(BlockId) const { return false; }
  virtual void mark_written(BlockId) {}
  /// Memory in which the block rests if it was written, and into which it may be written, for
  /// devices that copy by themselves; nullptr if the store is not memory. After writing there, the
  /// caller calls `mark_written`.
  [[nodiscard]] virtual std::byte* address(BlockId) { return nullptr; }
};

}  // namespace strata
