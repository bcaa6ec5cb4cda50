#include "sparse/fronts/front_layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/dense/potrf.hpp"
#include "sparse/fronts/front_layout_maker.hpp"

namespace strata {
namespace {

/// Flops that take as long as an element of a front, and as a supernode, beside its products: what
/// small fronts cost. (Zeroing, adding and BLAS calls; two cores of an AMD EPYC.)
constexpr double kElementCost = 20;
constexpr double kSupernodeCost = 20000;

/// [from, from + extent) in equal parts of at most `tile`.
void cut_evenly(std::int64_t from, std::int64_t extent, std::int64_t tile,
                std::vector<std::int64_t>& cuts) {
  const std::int64_t parts = extent == 0 ? 0 : (extent - 1) / tile + 1;
  for (std::int64_t k = 1; k <= parts; ++k) cuts.push_back(from + extent * k / parts);
}

/// Whether `parts` can be those of a SplitAnalysis: each part is given its columns and rows by the
/// one before.
void require_chains(const SparseAnalysis& a, std::span<const std::int32_t> parts) {
  const auto follows = [&](std::int32_t s) {
    return a.parent[at(s - 1)] == s && a.row_count(s - 1) == a.width(s) + a.row_count(s);
  };
  bool well_formed = parts.empty() || std::ssize(parts) == a.supernodes();
  std::int32_t more = 0;  // parts that belong to the chain
  for (std::int32_t s = 0; s < std::ssize(parts) && well_formed; ++s) {
    const std::int32_t part = parts[at(s)];
    well_formed = more > 0 ? part == -1 && follows(s) : part >= 0 && part < a.supernodes() - s;
    more = more > 0 ? more - 1 : part;
  }
  require(well_formed, ErrorKind::misuse, "factor", "parts of supernodes that are no chains");
}

}  // namespace

void LayoutMaker::make_units() {
  const std::int32_t count = a_.supernodes();
  out_.unit_of.resize(at(count));
  out_.panel_place.assign(at(count), 0);
  out_.panel_ld.assign(at(count), 0);
  largest_below_.assign(at(count), 0);
  for (std::int32_t s = 0; s < count; ++s) {
    largest_below_[at(s)] = std::max(largest_below_[at(s)], static_cast<std::int32_t>(order_of(s)));
    const std::int32_t p = a_.parent[at(s)];
    if (p >= 0) largest_below_[at(p)] = std::max(largest_below_[at(p)], largest_below_[at(s)]);
  }
  if (sizes_.range_bytes > 0) {
    make_ranges();
  } else {
    find_branches();
  }
  for (std::int32_t s = 0; s < count && sizes_.range_bytes == 0; ++s) {
    if (whole_[at(s)] != 0) {
      if (a_.parent[at(s)] < 0 || whole_[at(a_.parent[at(s)])] == 0) add_branch(s);
    } else {
      FrontUnit& unit = out_.units.emplace_back();
      unit.kind = is_small(s) ? UnitKind::panel : UnitKind::tiled;
      unit.first = unit.last = s;
    }
  }
  for (std::int32_t u = 0; u < std::ssize(out_.units); ++u) {
    const FrontUnit& unit = out_.units[at(u)];
    if (unit.first_tile > 0) continue;  // of an update alone
    for (std::int32_t s = unit.first; s <= unit.last; ++s) out_.unit_of[at(s)] = u;
  }
  for (std::int32_t u = 0; u < std::ssize(out_.units); ++u) {
    FrontUnit& unit = out_.units[at(u)];
    const std::int32_t parent = a_.parent[at(unit.last)];
    if (parent < 0 || sizes_.range_bytes > 0) continue;  // ranges give to any number of others
    unit.parent = out_.unit_of[at(parent)];
    out_.units[at(unit.parent)].children.push_back(u);
  }
}

void LayoutMaker::make_blocks(const PermutedEntries& entries, std::int64_t values) {
  if (sizes_.program != 0 && !sizes_.range_values) {
    require(values < std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "factor",
            "{} entries are beyond what 32 bits count", values);
    raw_values_ = add_block(values_, {0, kRawValues, values + 1, 1});
    (void)add_block(structures_, {0, 0, 0, 1});  // the same number in both families
  }
  for (FrontUnit& unit : out_.units) {
    for (std::int32_t s = unit.first; s <= unit.last; ++s) {
      const double order = static_cast<double>(a_.width(s) + a_.row_count(s));
      unit.flops += a_.flops(s) * share_of(unit);
      unit.cost += a_.flops(s) + kElementCost * order * order + kSupernodeCost;
    }
    unit.status = statuses_;
    switch (unit.kind) {
      case UnitKind::branch: lay_out_branch(unit, entries); break;
      case UnitKind::panel: lay_out_panel(unit, entries); break;
      case UnitKind::tiled: lay_out_tiles(unit, entries); break;
    }
  }
  add_families();
}

void LayoutMaker::make_ranges() {
  const auto devices = static_cast<int>(sizes_.devices);
  const SubtreeDealing dealing =
      deal_subtrees(a_, devices, sizes_.free_handover ? kFreeHandover : DealingTimes(),
                    sizes_.shares != 0 && devices <= kSharersMax);
  find_whole_subtrees();
  std::int64_t held = 0;
  bool joins = false;  // the next supernode may join the last range
  for (std::int32_t s = 0; s < a_.supernodes(); ++s) {
    const std::size_t before = out_.units.size();
    joins = joins && may_join(dealing, s) && stays_together(s, held);
    const std::int64_t bytes = range_bytes_of(s);
    if (bytes > sizes_.range_bytes && is_cut(s)) {
      cut_front(s);
      joins = false;
    } else {
      if (!joins || held + bytes > sizes_.range_bytes) {
        add_range(s, s);
        held = 0;
      }
      out_.units.back().last = s;
      held += bytes;
      joins = true;
    }
    for (std::size_t u = before; u < out_.units.size(); ++u) {
      out_.units[u].device = dealing.device[at(s)];
      out_.units[u].top = dealing.top[at(s)] != 0;
      if (dealing.shared[at(s)] != 0) out_.units[u].sharers = devices;
    }
  }
  if (sizes_.range_bytes != kRangesThatStay) return;
  out_.turns.resize(out_.units.size());
  std::iota(out_.turns.begin(), out_.turns.end(), 0);
  std::stable_partition(out_.turns.begin(), out_.turns.end(),
                        [&](std::int32_t u) { return !out_.units[at(u)].top; });
}

void LayoutMaker::find_whole_subtrees() {
  const std::int32_t count = a_.supernodes();
  size_.assign(at(count), 0);
  top_of_.assign(at(count), -1);
  for (std::int32_t s = 0; s < count; ++s) {
    size_[at(s)] += range_bytes_of(s);
    if (a_.parent[at(s)] >= 0) size_[at(a_.parent[at(s)])] += size_[at(s)];
  }
  for (std::int32_t s = count; s-- > 0;) {
    const std::int32_t p = a_.parent[at(s)];
    if (size_[at(s)] <= sizes_.range_bytes)
      top_of_[at(s)] = p >= 0 && top_of_[at(p)] >= 0 ? top_of_[at(p)] : s;
  }
}

bool LayoutMaker::stays_together(std::int32_t s, std::int64_t held) const {
  const std::int32_t top = top_of_[at(s)];
  if (top < 0) return top_of_[at(s - 1)] < 0 && a_.parent[at(s - 1)] == s;
  const bool begins = a_.branch[at(top)] == s;
  return !begins || (top_of_[at(s - 1)] >= 0 && held + size_[at(top)] <= sizes_.range_bytes);
}

bool LayoutMaker::may_join(const SubtreeDealing& dealing, std::int32_t s) const {
  if (dealing.device[at(s)] != dealing.device[at(s - 1)] ||
      dealing.top[at(s)] != dealing.top[at(s - 1)] || dealing.shared[at(s)] != 0 ||
      dealing.shared[at(s - 1)] != 0)
    return false;
  // The supernode before s in postorder is its last child; of an only one the subtree begins where
  // its own does.
  return dealing.top[at(s)] == 0 ||
         (a_.parent[at(s - 1)] == s && a_.branch[at(s - 1)] == a_.branch[at(s)]);
}

void LayoutMaker::cut_front(std::int32_t s) {
  const FrontTiles tiles = tiles_of(s);
  FrontUnit& panel = add_range(s, s);
  panel.first_tile = 0;
  panel.last_tile = tiles.across();
  const std::int64_t column = std::int64_t{tiles.rows} * kFrontTile * bytes_of(element_);
  const auto width = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(sizes_.range_bytes / std::max<std::int64_t>(column, 1), 1, 65536));
  for (std::int32_t j = tiles.across(); j < tiles.count(); j += width) {
    FrontUnit& unit = add_range(s, s);
    unit.first_tile = j;
    unit.last_tile = std::min(j + width, tiles.count());
  }
}

void LayoutMaker::find_branches() {
  const std::int32_t count = a_.supernodes();
  whole_.assign(at(count), sizes_.batch > 0 ? 0 : 1);
  size_.assign(at(count), 0);
  for (std::int32_t s = 0; s < count; ++s) {
    size_[at(s)] += order_of(s) * a_.width(s);
    const bool leaf = a_.branch[at(s)] == s;
    if (!is_small(s) || (!leaf && size_[at(s)] > sizes_.branch_entries)) whole_[at(s)] = 0;
    const std::int32_t p = a_.parent[at(s)];
    if (p < 0) continue;
    size_[at(p)] += size_[at(s)];
    if (whole_[at(s)] == 0) whole_[at(p)] = 0;
  }
}

void LayoutMaker::add_branch(std::int32_t s) {
  FrontUnit* before = out_.units.empty() ? nullptr : &out_.units.back();
  const bool joins = before != nullptr && before->kind == UnitKind::branch &&
                     before->last + 1 == a_.branch[at(s)] &&
                     a_.parent[at(before->last)] == a_.parent[at(s)] &&
                     held_ + size_[at(s)] <= sizes_.branch_entries;
  if (joins) {
    before->last = s;
    held_ += size_[at(s)];
    return;
  }
  FrontUnit& unit = out_.units.emplace_back();
  unit.kind = UnitKind::branch;
  unit.first = a_.branch[at(s)];
  unit.last = s;
  held_ = size_[at(s)];
}

void LayoutMaker::lay_out_panel(FrontUnit& unit, const PermutedEntries& entries) {
  const std::int32_t s = unit.last;
  const std::int64_t order = order_of(s);
  const std::int64_t first_code = std::ssize(out_.entries);
  const std::int64_t first_int = std::ssize(out_.structure);
  for_front(s, entries, [&](std::int64_t i, std::int64_t j, EntryCode code) {
    out_.structure.push_back(static_cast<std::int32_t>(i + j * order));
    out_.entries.push_back(code);
  });
  const std::int64_t w = a_.width(s);
  const std::int64_t r = a_.row_count(s);
  unit.panel = add_block(panels_, {0, 0, order, w});
  out_.panel_ld[at(s)] = static_cast<std::int32_t>(order);
  if (r > 0) unit.update = add_block(updates_, {w, w, r, r});
  unit.values = add_list(values_, out_.entries, first_code);
  unit.structure = add_list(structures_, out_.structure, first_int);
  add_places(unit, std::array<std::int32_t, 1>{s});
  ++statuses_;
}

void LayoutMaker::lay_out_tiles(FrontUnit& unit, const PermutedEntries& entries) {
  const std::int32_t s = unit.last;
  unit.cuts.push_back(0);
  cut_evenly(0, a_.width(s), sizes_.tile, unit.cuts);
  unit.column_tiles = unit.tiles();
  cut_evenly(a_.width(s), a_.row_count(s), sizes_.tile, unit.cuts);
  const std::int64_t tiles = unit.tiles();
  const auto& cuts = unit.cuts;
  unit.panel = std::ssize(panels_);
  if (a_.row_count(s) > 0) unit.update = std::ssize(updates_);
  for (std::int64_t j = 0; j < tiles; ++j) {
    for (std::int64_t i = j; i < tiles; ++i)
      add_block(
          j < unit.column_tiles ? panels_ : updates_,
          {cuts[at(i)], cuts[at(j)], cuts[at(i + 1)] - cuts[at(i)], cuts[at(j + 1)] - cuts[at(j)]});
  }
  // Entries by tile.
  struct Placed {
    std::int64_t tile;
    std::int32_t place;
    EntryCode code;
  };
  std::vector<Placed> placed;
  const auto interval = [&](std::int64_t x) {
    return std::upper_bound(cuts.begin(), cuts.end(), x) - cuts.begin() - 1;
  };
  for_front(s, entries, [&](std::int64_t i, std::int64_t j, EntryCode code) {
    const std::int64_t ti = interval(i);
    const std::int64_t tj = interval(j);
    const std::int64_t rows = cuts[at(ti + 1)] - cuts[at(ti)];
    placed.push_back({unit.tile(ti, tj).row() - unit.panel,
                      static_cast<std::int32_t>(i - cuts[at(ti)] + (j - cuts[at(tj)]) * rows),
                      code});
  });
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& x, const Placed& y) { return x.tile < y.tile; });
  unit.tile_values.assign(at(std::ssize(panels_) - unit.panel), -1);
  for (std::size_t k = 0; k < placed.size();) {
    const std::int64_t tile = placed[k].tile;
    const std::int64_t first_code = std::ssize(out_.entries);
    const std::int64_t first_int = std::ssize(out_.structure);
    for (; k < placed.size() && placed[k].tile == tile; ++k) {
      out_.structure.push_back(placed[k].place);
      out_.entries.push_back(placed[k].code);
    }
    unit.tile_values[at(tile)] = add_list(values_, out_.entries, first_code);
    // The same number in both families, for all units.
    (void)add_list(structures_, out_.structure, first_int);
  }
  add_places(unit, std::array<std::int32_t, 1>{s});
  statuses_ += unit.column_tiles;
}

void LayoutMaker::add_places(FrontUnit& unit, std::span<const std::int32_t> roots) {
  if (roots.empty() || a_.row_count(roots.front()) == 0) return;
  const std::int64_t first = std::ssize(out_.places);
  out_.places.push_back(static_cast<std::int32_t>(roots.size()));
  out_.places.push_back(
      unit.kind == UnitKind::branch ? 0 : static_cast<std::int32_t>(a_.width(roots.front())));
  for (const std::int32_t s : roots)
    out_.places.push_back(static_cast<std::int32_t>(a_.row_count(s)));
  for (const std::int32_t s : roots) append_places(a_, s, out_.places);
  unit.places = add_list(places_, out_.places, first);
}

void LayoutMaker::add_families() {
  const auto listed = [&](const char* name, Element element, Origin origin,
                          std::vector<BlockExtent>& extents) {
    BlockFamily family{.name = name};
    family.element = element;
    family.origin = origin;
    family.listed = std::move(extents);
    (void)out_.blocks.add(std::move(family));
  };
  listed("L", element_, Origin::generated, panels_);
  listed("U", element_, Origin::temporary, updates_);
  listed("values", element_, Origin::stored, values_);
  listed("structure", Element::int32, Origin::stored, structures_);
  listed("places", Element::int32, Origin::stored, places_);
  BlockFamily status{.name = "status", .rows = kStatusRows, .cols = statuses_};
  status.tile_rows = kStatusRows;
  status.origin = Origin::generated;
  (void)out_.blocks.add(std::move(status));
  listed("work", element_, Origin::temporary, works_);
}

BlockId FrontUnit::tile(std::int64_t i, std::int64_t j) const {
  const bool in_panel = j < column_tiles;
  const std::int64_t columns = in_panel ? j : j - column_tiles;
  const std::int64_t height = in_panel ? tiles() : tiles() - column_tiles;
  const std::int64_t before = columns * height - columns * (columns - 1) / 2;
  return {in_panel ? fronts::kPanels : fronts::kUpdates,
          (in_panel ? panel : update) + before + (i - j), 0};
}

FrontLayout lay_out_fronts(const SparseAnalysis& analysis, const SparseMatrix& a,
                           const FrontSizes& sizes, Element element,
                           std::span<const std::int32_t> parts) {
  require(sizes.tile >= 1 && sizes.panel_order >= 1 && sizes.branch_entries >= 1, ErrorKind::misuse,
          "factor", "tiles of {}, panels of {}, branches of {} entries", sizes.tile,
          sizes.panel_order, sizes.branch_entries);
  require(std::max(sizes.tile, sizes.panel_order) <= kPanelOrderMax, ErrorKind::misuse, "factor",
          "tiles of {} and panels of fronts of order {}: at most {}", sizes.tile, sizes.panel_order,
          kPanelOrderMax);
  require(sizes.batch >= 0 && (sizes.batch == 0 || sizes.program == 0), ErrorKind::misuse, "factor",
          "batches of {} fronts, of branches {} a program", sizes.batch,
          sizes.program != 0 ? "with" : "without");
  require(sizes.range_bytes == 0 || (sizes.range_bytes > 0 && sizes.program != 0),
          ErrorKind::misuse, "factor", "ranges of {} bytes, of branches {} a program",
          sizes.range_bytes, sizes.program != 0 ? "with" : "without");
  require(element == Element::fp64 || element == Element::fp32, ErrorKind::misuse, "factor",
          "there is no sparse factorization in {}: fp64 or fp32", to_string(element));
  require(sizes.devices >= 1 && (sizes.devices == 1 || sizes.range_bytes > 0), ErrorKind::misuse,
          "factor", "units that are no ranges, dealt to {} devices", sizes.devices);
  require(sizes.shares == 0 || sizes.range_bytes == kRangesThatStay, ErrorKind::misuse, "factor",
          "fronts that several devices make together, of units that do not stay on them");
  require_well_formed(analysis);
  for (std::int32_t s = 0; s < analysis.supernodes() && sizes.range_bytes > 0; ++s)
    require(
        places_fit(analysis.width(s), analysis.row_count(s)), ErrorKind::misuse, "factor",
        "a front of {} columns and {} rows below them in a range: 32 bits do not count its places",
        analysis.width(s), analysis.row_count(s));
  require(parts.empty() || sizes.range_bytes > 0, ErrorKind::misuse, "factor",
          "parts of supernodes, of units that are no ranges");
  require_chains(analysis, parts);
  FrontLayout layout;
  layout.ranges = layout.own_places = sizes.range_bytes > 0;
  layout.parts.assign(parts.begin(), parts.end());
  LayoutMaker maker(analysis, sizes, element, parts, layout);
  maker.make_units();
  maker.make_blocks(permuted_entries(analysis, a), a.entries());
  if (sizes.batch > 0) layout.batches = level_batches(layout, sizes.batch);
  return layout;
}

std::vector<std::vector<std::int32_t>> level_batches(const FrontLayout& layout,
                                                     std::int64_t batch) {
  const std::vector<FrontUnit>& units = layout.units;
  std::vector<std::int32_t> level(units.size(), 0);
  std::vector<std::int64_t> order(units.size(), 0);  // of small fronts; 0: it comes alone
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const std::int32_t c : units[u].children) level[u] = std::max(level[u], level[at(c)] + 1);
    if (units[u].kind != UnitKind::panel) continue;
    const std::int64_t rows = layout.blocks.extent({fronts::kPanels, units[u].panel, 0}).rows;
    if (rows <= kSmallFront) order[u] = rows;
  }
  std::vector<std::int32_t> sorted(units.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int32_t x, std::int32_t y) {
    return std::pair(level[at(x)], order[at(x)]) < std::pair(level[at(y)], order[at(y)]);
  });
  std::vector<std::vector<std::int32_t>> batches;
  for (const std::int32_t u : sorted) {
    const bool joins = !batches.empty() && std::ssize(batches.back()) < batch && order[at(u)] > 0 &&
                       order[at(batches.back().front())] > 0 &&
                       level[at(u)] == level[at(batches.back().front())];
    if (!joins) batches.emplace_back();
    batches.back().push_back(u);
  }
  return batches;
}

}  // namespace strata
