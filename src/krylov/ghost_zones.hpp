#pragma once
// Ghost zones: what slabs of rows need of each other for several products one after the other.
//
// Contract: for products A·w, A²·w, … up to `depth` of them a slab needs w in all rows that it can
// reach in so many steps through the entries of A. Those of other slabs are its *ghost rows*, in
// the order of the matrix. With w in them it computes its own rows of every product alone, and
// those of the ghost rows a second time. Ghost rows nearer than `depth` have their entries, in the
// order of the matrix, so they get the bits that their owners compute; the outermost have none.
// After i products what is in ghost rows farther than `depth` − i means nothing, and nothing reads
// it. Columns of ghost rows are numbered as those of a slab are: below `rows` they are ghost rows
// of the zone, the others elements of `border`, rows of the slab itself.

#include <cstdint>
#include <vector>

#include "krylov/row_slabs.hpp"

namespace strata {

/// The ghost rows of one slab.
struct GhostZone {
  std::int64_t rows = 0;
  std::int64_t first_row = 0;    ///< of its row starts in GhostZones::start
  std::int64_t first_entry = 0;  ///< in GhostZones::column and value
  std::int64_t entries = 0;
  std::vector<std::int32_t> halo;    ///< the ghost row of each element of the slab's halo
  std::vector<std::int32_t> border;  ///< rows of the slab that ghost rows have entries for
};

struct GhostZones {
  std::int64_t depth = 0;
  std::vector<GhostZone> zones;  ///< of each slab
  std::vector<HaloLink> links;   ///< as of RowSlabs; offsets are ghost rows
  /// Row starts of zone s, from 0, rows + 1 of them, begin at its first_row.
  std::vector<std::int32_t> start;
  std::vector<std::int32_t> column;
  std::vector<double> value;
  double share = 0;  ///< the most ghost rows that a slab has, of its rows
};

/// Throws Error{misuse} where a zone has 2^31 entries or more.
[[nodiscard]] GhostZones make_ghost_zones(const SparseMatrix& a, const RowSlabs& slabs,
                                          std::int64_t depth);

}  // namespace strata
