// Ghost zones: level by level through the entries of A, from the rows of a slab outwards.

#include "krylov/ghost_zones.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/index.hpp"

namespace strata {
namespace {

/// What is kept while the zones of all slabs are made.
class ZoneMaker {
 public:
  ZoneMaker(const SparseMatrix& a, const RowSlabs& slabs, GhostZones& made)
      : a_(a), slabs_(slabs), made_(made), level_(at(a.rows), kUnseen), place_(at(a.rows), 0) {}

  void make(int s) {
    const RowSlab& slab = slabs_.slabs[at(s)];
    const std::vector<std::int32_t> ghosts = find(s);
    GhostZone zone;
    zone.rows = std::ssize(ghosts);
    zone.first_row = std::ssize(made_.start);
    zone.first_entry = std::ssize(made_.column);
    for (std::int64_t i = 0; i < zone.rows; ++i) place_[at(ghosts[at(i)])] = i;
    add_links(s, ghosts);
    for (const HaloLink& link : slabs_.links) {
      if (link.to != s) continue;
      const std::int64_t first = slabs_.slabs[at(link.from)].first;
      for (const std::int32_t row : link.index)
        zone.halo.push_back(static_cast<std::int32_t>(place_[at(first + row)]));
    }
    zone.border = border_of(slab, ghosts);
    add_rows(slab, ghosts, zone);
    for (const std::int32_t row : ghosts) level_[at(row)] = kUnseen;
    if (slab.rows > 0)
      made_.share =
          std::max(made_.share, static_cast<double>(zone.rows) / static_cast<double>(slab.rows));
    made_.zones.push_back(std::move(zone));
  }

 private:
  static constexpr std::int64_t kUnseen = -1;

  [[nodiscard]] static bool own(const RowSlab& slab, std::int64_t row) {
    return row >= slab.first && row < slab.first + slab.rows;
  }

  /// The ghost rows of a slab, ascending; their distances are in level_. Those at distance 1 are
  /// its halo.
  std::vector<std::int32_t> find(int s) {
    const RowSlab& slab = slabs_.slabs[at(s)];
    std::vector<std::int32_t> ghosts;
    for (const HaloLink& link : slabs_.links) {
      if (link.to != s) continue;
      for (const std::int32_t row : link.index)
        ghosts.push_back(static_cast<std::int32_t>(slabs_.slabs[at(link.from)].first + row));
    }
    for (const std::int32_t row : ghosts) level_[at(row)] = 1;
    const auto look_from = [&](std::int64_t row, std::int64_t level) {
      for (std::int64_t k = a_.start[at(row)]; k < a_.start[at(row + 1)]; ++k) {
        const std::int32_t j = a_.column[at(k)];
        if (own(slab, j) || level_[at(j)] != kUnseen) continue;
        level_[at(j)] = level;
        ghosts.push_back(j);
      }
    };
    std::size_t begin = 0;
    for (std::int64_t level = 2; level <= made_.depth; ++level) {
      const std::size_t end = ghosts.size();
      for (; begin < end; ++begin) look_from(ghosts[begin], level);
    }
    std::sort(ghosts.begin(), ghosts.end());
    return ghosts;
  }

  void add_links(int s, const std::vector<std::int32_t>& ghosts) {
    int from = 0;
    for (std::size_t i = 0; i < ghosts.size(); ++i) {
      while (!own(slabs_.slabs[at(from)], ghosts[i])) ++from;
      if (made_.links.empty() || made_.links.back().to != s || made_.links.back().from != from)
        made_.links.push_back({from, s, static_cast<std::int64_t>(i), {}});
      made_.links.back().index.push_back(
          static_cast<std::int32_t>(ghosts[i] - slabs_.slabs[at(from)].first));
    }
  }

  /// Whether a ghost row has its entries.
  [[nodiscard]] bool inner(std::int32_t row) const { return level_[at(row)] < made_.depth; }

  /// Rows of the slab in which ghost rows have entries, ascending, from 0.
  [[nodiscard]] std::vector<std::int32_t> border_of(const RowSlab& slab,
                                                    const std::vector<std::int32_t>& ghosts) const {
    std::vector<std::int32_t> border;
    for (const std::int32_t row : ghosts) {
      for (std::int64_t k = a_.start[at(row)]; inner(row) && k < a_.start[at(row + 1)]; ++k) {
        if (own(slab, a_.column[at(k)]))
          border.push_back(static_cast<std::int32_t>(a_.column[at(k)] - slab.first));
      }
    }
    std::sort(border.begin(), border.end());
    border.erase(std::unique(border.begin(), border.end()), border.end());
    return border;
  }

  void add_rows(const RowSlab& slab, const std::vector<std::int32_t>& ghosts, GhostZone& zone) {
    for (std::size_t i = 0; i < zone.border.size(); ++i)
      place_[at(slab.first + zone.border[i])] = zone.rows + static_cast<std::int64_t>(i);
    made_.start.push_back(0);
    for (const std::int32_t row : ghosts) {
      for (std::int64_t k = a_.start[at(row)]; inner(row) && k < a_.start[at(row + 1)]; ++k) {
        made_.column.push_back(static_cast<std::int32_t>(place_[at(a_.column[at(k)])]));
        made_.value.push_back(a_.value[at(k)]);
      }
      zone.entries = std::ssize(made_.column) - zone.first_entry;
      require(zone.entries < std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "krylov",
              "the ghost rows of rows {} to {} have {} entries, more than one device counts",
              slab.first, slab.first + slab.rows - 1, zone.entries);
      made_.start.push_back(static_cast<std::int32_t>(zone.entries));
    }
  }

  const SparseMatrix& a_;
  const RowSlabs& slabs_;
  GhostZones& made_;
  std::vector<std::int64_t> level_;  ///< of ghost rows of the slab at hand: distance from it
  std::vector<std::int64_t> place_;  ///< of a column in the numbering of the zone at hand
};

}  // namespace

GhostZones make_ghost_zones(const SparseMatrix& a, const RowSlabs& slabs, std::int64_t depth) {
  GhostZones made;
  made.depth = depth;
  ZoneMaker maker(a, slabs, made);
  for (int s = 0; s < static_cast<int>(slabs.slabs.size()); ++s) maker.make(s);
  return made;
}

}  // namespace strata
