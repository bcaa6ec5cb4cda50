#include "store/block_store.hpp"

#include "base/check.hpp"

namespace strata {
namespace {

void require_whole(const BlockTable& blocks, BlockId id, std::int64_t first, std::int64_t count) {
  require(first == 0 && count == blocks.extent(id).cols, ErrorKind::misuse, "store",
          "columns {} to {} of block {} were asked of a store that moves blocks whole", first,
          first + count, blocks.name(id));
}

void require_all_rows(const BlockTable& blocks, BlockId id, std::int64_t first,
                      std::int64_t count) {
  require(first == 0 && count == blocks.extent(id).rows, ErrorKind::misuse, "store",
          "rows {} to {} of block {} were asked of a store that moves columns whole", first,
          first + count, blocks.name(id));
}

}  // namespace

void BlockStore::read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) {
  require_whole(blocks(), id, first, count);
  read(id, to);
}

void BlockStore::write_columns(BlockId id, std::int64_t first, std::int64_t count,
                               const std::byte* from) {
  require_whole(blocks(), id, first, count);
  write(id, from);
}

void BlockStore::read_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                           std::byte* to) {
  require_all_rows(blocks(), id, first, count);
  read_columns(id, column, 1, to);
}

void BlockStore::write_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                            const std::byte* from) {
  require_all_rows(blocks(), id, first, count);
  write_columns(id, column, 1, from);
}

}  // namespace strata
