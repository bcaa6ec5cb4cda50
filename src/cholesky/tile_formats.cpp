#include "cholesky/tile_formats.hpp"

namespace strata {

Element TileFormats::element(TilePrecision precision) const {
  switch (precision) {
    case TilePrecision::fp64: return Element::fp64;
    case TilePrecision::fp32: return single;
    case TilePrecision::fp16: return Element::fp16;
    case TilePrecision::fp8: return Element::fp8;
    case TilePrecision::none: return Element::none;
  }
  return Element::none;
}

std::vector<Element> TileFormats::elements() const {
  std::vector<Element> all;
  if (map == nullptr) return all;
  for (std::int64_t j = 0; j < map->tiles(); ++j) {
    for (std::int64_t i = j; i < map->tiles(); ++i) all.push_back(element(map->stored(i, j)));
  }
  return all;
}

BlockFamily family_of_factor(std::int64_t n, std::int64_t tile, Element precision,
                             const TileFormats& formats, std::uint64_t identity) {
  return {.name = "L",
          .rows = n,
          .cols = n,
          .tile_rows = tile,
          .tile_cols = tile,
          .shape = Shape::lower,
          .element = precision,
          .identity = identity,
          .stays = formats.stay() && identity != 0,
          .in_storage = formats.in_storage,
          .elements = formats.elements()};
}

}  // namespace strata
