#include "store/block_store.hpp"

#include "base/check.hpp"

namespace strata {
namespace {

void require_whole(const BlockTable& blocks, BlockId id, std::int64_t first, std::int64_t count) {
  require(first == 0 && count == blocks.extent(id).cols, ErrorKind::misuse, "store",
          "columns {} to {} of block {} were asked of a store that moves blocks whole", first,
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

}  // namespace strata
