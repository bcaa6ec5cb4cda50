#pragma once
// TileFormats: the element of each tile of a factor.
//
// Contract: pure data, cheap to copy. Without a map all tiles have the precision of the problem.

#include <cstdint>
#include <memory>
#include <vector>

#include "cholesky/precision_map.hpp"
#include "matrix/block_table.hpp"

namespace strata {

struct TileFormats {
  /// Tile by tile; null: one precision for all.
  std::shared_ptr<const PrecisionMap> map{};
  /// What a tile of precision fp32 is kept in: fp32 on a CPU, fp16x2 on a GPU.
  Element single = Element::fp32;
  /// Tiles stay on the devices although they have one precision; those of a map do anyway.
  bool kept = false;
  bool in_storage = false;  ///< tiles rest in files

  /// Tiles go home only if they have to leave.
  [[nodiscard]] bool stay() const { return map != nullptr || kept; }
  [[nodiscard]] Element element(TilePrecision precision) const;
  /// False for a tile that is left out.
  [[nodiscard]] bool exists(std::int64_t i, std::int64_t j) const {
    return map == nullptr || map->stored(i, j) != TilePrecision::none;
  }
  /// Elements of the tiles of the lower triangle, in the order of BlockTable::index; empty without
  /// a map.
  [[nodiscard]] std::vector<Element> elements() const;
  bool operator==(const TileFormats&) const = default;
};

/// The tiles of a factor of order n, as all schedules that use them have them.
[[nodiscard]] BlockFamily family_of_factor(std::int64_t n, std::int64_t tile, Element precision,
                                           const TileFormats& formats, std::uint64_t identity);

}  // namespace strata
