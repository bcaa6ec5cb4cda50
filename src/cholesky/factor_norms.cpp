#include "cholesky/factor_norms.hpp"

#include "base/check.hpp"
#include "schedule/row_owners.hpp"

namespace strata {

Schedule norms_of_factor(const CholeskyProblem& factor, std::int64_t order) {
  const std::int64_t tile = std::min(factor.tile, std::max<std::int64_t>(factor.n, 1));
  require(factor.precision == Element::fp64 && factor.formats.map == nullptr, ErrorKind::misuse,
          "cholesky", "norms of blocks are told of a factor in fp64 alone");
  require(order >= 1 && order < kBlockNormsLower && factor.tile % order == 0, ErrorKind::misuse,
          "cholesky", "blocks of order {} do not divide tiles of order {}", order, factor.tile);
  Schedule schedule;
  schedule.devices = factor.devices;
  schedule.blocks.add(family_of_factor(factor.n, factor.tile, Element::fp64, factor.formats,
                                       factor.factor_identity));
  const std::int64_t tiles = schedule.blocks.block_rows(factor_norms::kFactor);
  const std::int64_t of_tile = norm_blocks(tile, order) * norm_blocks(tile, order);
  schedule.blocks.add({.name = "T",
                       .rows = kTileNormOrder * tiles,
                       .cols = kTileNormOrder * of_tile * tiles,
                       .tile_rows = kTileNormOrder,
                       .tile_cols = kTileNormOrder * of_tile,
                       .origin = Origin::generated});
  schedule.operands = {1, 1};
  schedule.steps = tiles;
  schedule.emit = [owners = RowOwners(tiles, factor.devices, factor.rates), tiles, order](
                      std::int64_t k, TaskList& tasks) {
    for (std::int64_t m = k; m < tiles; ++m) {
      tasks.add(block_norms, owners[m],
                {{BlockId(factor_norms::kNorms, m, k), Hint::last_write},
                 BlockId(factor_norms::kFactor, m, k)},
                static_cast<std::uint32_t>(order) | (m == k ? kBlockNormsLower : 0));
    }
  };
  return schedule;
}

}  // namespace strata
