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

}  // namespace strata
