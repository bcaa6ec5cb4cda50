// Branches of a layout: what is told of their fronts, and what they give to each other.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "sparse/fronts/front_layout_maker.hpp"

namespace strata {

void LayoutMaker::lay_out_branch(FrontUnit& unit, const PermutedEntries& entries) {
  if (unit.first_tile >= 0) return lay_out_part(unit, entries);
  const std::int64_t first_code = std::ssize(out_.entries);
  Branch branch{unit.first, unit.last, std::ssize(out_.structure), first_code};
  out_.structure.push_back(unit.last - unit.first + 1);
  out_.structure.push_back(0);
  if (sizes_.range_bytes > 0) find_places(branch);
  for (std::int32_t s = unit.first; s <= unit.last; ++s) add_to_branch(branch, s, entries);
  std::int64_t work = branch.work.peak();
  if (sizes_.range_bytes > 0) {
    give(unit, branch);
    take(unit, branch);
  }
  add_panels(unit, branch.panels, branch.inverses);
  if (sizes_.program != 0) {
    for (FrontRecord& record : branch.records) record.tile_entries += here(branch);
    out_.structure.insert(out_.structure.end(), branch.tile_entries.begin(),
                          branch.tile_entries.end());
    const bool whole = unit.first == 0 && unit.last + 1 == a_.supernodes();
    const bool solves = whole || sizes_.range_bytes == kRangesThatStay;
    const std::vector<std::int32_t> largest(largest_below_.begin() + unit.first,
                                            largest_below_.begin() + unit.last + 1);
    const ProgramCost cost = append_program(std::move(branch.records), branch.taken,
                                            {branch.inner, unit.inverses, a_.first[at(unit.first)],
                                             bytes_of(element_), solves, largest, unit.sharers},
                                            branch.first_int, out_.structure);
    work = cost.work;
    unit.seconds = cost.seconds;
    unit.share = cost.share;
    if (sizes_.range_bytes > 0 && sizes_.range_bytes < kRangesThatStay)
      unit.workers = static_cast<std::uint32_t>(std::max(cost.workers, 1.0));
  }
  unit.update = add_block(updates_, {0, 0, std::max<std::int64_t>(branch.outside, 1), 1});
  unit.values =
      sizes_.program != 0 ? range_values(first_code) : add_list(values_, out_.entries, first_code);
  unit.structure = add_list(structures_, out_.structure, branch.first_int);
  unit.work = add_block(works_, in_columns(std::max<std::int64_t>(work, 1)));
  add_places(unit, branch.roots);
  ++statuses_;
}

void LayoutMaker::find_places(Branch& branch) const {
  for (std::int32_t s = branch.first; s <= branch.last; ++s) {
    const std::int32_t p = a_.parent[at(s)];
    if (p <= branch.last || a_.row_count(s) == 0) continue;
    const auto next = static_cast<std::int32_t>(branch.place_for.size()) + 1;
    branch.place_for.emplace(out_.unit_of[at(p)], next);
  }
  branch.given.assign(branch.place_for.size(), {0, 0, 0, 1});
}

void LayoutMaker::give(FrontUnit& unit, const Branch& branch) {
  std::int64_t rows = 0;  // of updates that stay, then also of those for others
  std::vector<std::int64_t> of_place(branch.given.size(), 0);
  for (const FrontRecord& record : branch.records)
    (record.place > 0 ? of_place[at(record.place - 1)] : rows) += record.rows;
  for (std::size_t k = 0; k < branch.given.size(); ++k) {
    unit.given.push_back(add_block(updates_, in_columns(branch.given[k].rows)));
    unit.given_rows.push_back(std::exchange(rows, rows + of_place[k]));
  }
  for (std::int32_t s = unit.first; s <= unit.last; ++s) {
    const FrontRecord& record = branch.records[at(s - unit.first)];
    if (record.place > 0)
      give_to_parent(s, unit.given[at(record.place - 1)], record, 0, record.rows);
  }
}

void LayoutMaker::give_to_parent(std::int32_t s, std::int64_t block, const FrontRecord& record,
                                 std::int64_t first, std::int64_t last) {
  Gift gift{s, block, {}, {}};
  gift.record.update = record.update;
  gift.record.ld_update = record.ld_update;
  gift.record.rows = record.rows;
  gift.record.first_column = static_cast<std::int32_t>(first);
  gift.record.last_column = static_cast<std::int32_t>(last);
  append_places(a_, s, gift.places);
  gifts_[out_.unit_of[at(a_.parent[at(s)])]].push_back(std::move(gift));
}

bool LayoutMaker::falls_into(const Gift& gift, const FrontUnit& unit) const {
  if (unit.first_tile < 0) return true;
  const FrontTiles tiles = tiles_of(unit.first);
  const auto first = gift.places.begin() + gift.record.first_column;
  const auto last = gift.places.begin() + gift.record.last_column;
  const auto found = std::lower_bound(first, last, tiles.begin(unit.first_tile));
  return found != last && *found < tiles.begin(unit.last_tile);
}

void LayoutMaker::take(FrontUnit& unit, Branch& branch) {
  const auto own = static_cast<std::int32_t>(&unit - out_.units.data());
  const auto found = gifts_.find(out_.unit_of[at(unit.first)]);
  if (found == gifts_.end()) return;
  std::vector<Gift>& gifts = found->second;
  std::stable_sort(gifts.begin(), gifts.end(), [&](const Gift& x, const Gift& y) {
    return a_.parent[at(x.supernode)] < a_.parent[at(y.supernode)];
  });
  const auto is_of_front = [&](std::size_t u) {
    return unit.first_tile >= 0 && u < out_.units.size() && out_.units[u].first == unit.first;
  };
  const bool more_units = is_of_front(at(own) + 1);
  const auto place_of_block = [&](std::int64_t block) {
    const auto known = std::find_if(unit.taken.begin(), unit.taken.end(),
                                    [=](const auto& one) { return one.block == block; });
    const auto number = static_cast<std::int32_t>(known - unit.taken.begin());
    if (known == unit.taken.end()) {
      bool last = true;
      for (std::size_t u = at(own) + 1; is_of_front(u); ++u)
        last = last && std::none_of(gifts.begin(), gifts.end(), [&](const Gift& gift) {
                 return gift.block == block && falls_into(gift, out_.units[u]);
               });
      unit.taken.push_back({block, last});
    }
    return number;
  };
  const std::int32_t before =
      unit.first_tile > 0 ? 0 : static_cast<std::int32_t>(unit.given.size());
  // Rows of one giver lie side by side, in the order in which it has them.
  std::vector<std::size_t> by_supernode(gifts.size());
  std::iota(by_supernode.begin(), by_supernode.end(), std::size_t{0});
  std::stable_sort(by_supernode.begin(), by_supernode.end(), [&](std::size_t x, std::size_t y) {
    return gifts[x].supernode < gifts[y].supernode;
  });
  std::int64_t rows = a_.row_start[at(unit.last + 1)] - a_.row_start[at(unit.first)];
  for (const std::size_t k : by_supernode) {
    if (falls_into(gifts[k], unit)) (void)place_of_block(gifts[k].block);
    if (!gifts[k].record.gives_rows()) continue;
    gifts[k].record.rows_before = rows;
    const bool known = std::any_of(unit.rows_taken.begin(), unit.rows_taken.end(),
                                   [&](const auto& one) { return one.block == gifts[k].block; });
    if (!known) unit.rows_taken.push_back({gifts[k].block, rows});
    rows += gifts[k].record.rows;
  }
  for (const Gift& gift : gifts) {
    ChildRecord record = gift.record;
    if (falls_into(gift, unit)) {
      record.place = before + place_of_block(gift.block) + 1;
    } else if (unit.first_tile == 0 && record.gives_rows()) {
      record.last_column = 0;  // nothing of its update lies here; solves begin with the panel
    } else {
      continue;
    }
    record.places = here(branch);
    out_.structure.insert(out_.structure.end(), gift.places.begin(), gift.places.end());
    branch.taken.push_back({a_.parent[at(gift.supernode)] - unit.first, record});
  }
  if (!more_units) gifts_.erase(found);
  require(std::ssize(unit.given) + std::ssize(unit.taken) < kPlacesMax, ErrorKind::memory, "factor",
          "a part of the elimination tree shares updates with {} others: at most {}",
          unit.given.size() + unit.taken.size(), kPlacesMax - 1);
}

void LayoutMaker::lay_out_part(FrontUnit& unit, const PermutedEntries& entries) {
  const std::int32_t s = unit.first;
  const FrontTiles tiles = tiles_of(s);
  const bool has_panel = unit.first_tile == 0;
  Branch branch{s, s, std::ssize(out_.structure), std::ssize(out_.entries)};
  out_.structure.push_back(1);
  out_.structure.push_back(0);
  FrontRecord record{};
  record.width = tiles.width;
  record.rows = tiles.rows;
  record.ld = static_cast<std::int32_t>(even(order_of(s)));
  record.panel = tiles.width % 2;
  record.ld_update = static_cast<std::int32_t>(even(tiles.rows));
  record.step = kFrontTile;
  tell_chain(s, record);
  record.parent = record.places = -1;
  record.place = has_panel ? -1 : -2;
  record.first_tile = unit.first_tile;
  record.last_tile = unit.last_tile;
  record.entries = here(branch);
  std::vector<std::int32_t> tile_entries;
  const FrontUnit& panel = out_.units[at(out_.unit_of[at(s)])];
  put_program_entries(s, record, entries, branch.first_code, tile_entries);
  if (has_panel) {
    out_.panel_place[at(s)] = record.panel;
    out_.panel_ld[at(s)] = record.ld;
    add_panels(unit, record.panel + std::int64_t{record.ld} * tiles.width, tiles.across());
    record.places = put_rows(branch, s);
  } else {
    const std::int32_t first = tiles.begin(unit.first_tile) - tiles.width;
    const std::int32_t last = tiles.begin(unit.last_tile) - tiles.width;
    record.update = -(update_column(record.ld_update, kFrontTile, first) + first);
    unit.given.push_back(
        add_block(updates_, in_columns(update_column(record.ld_update, kFrontTile, last - 1) +
                                       record.ld_update + record.update)));
    give_to_parent(s, unit.given.front(), record, first, last);
    unit.source = panel.panel;
  }
  take(unit, branch);
  if (!has_panel) record.panel_place = static_cast<std::int32_t>(unit.taken.size()) + 1;
  record.tile_entries = here(branch) - tiles.before(unit.first_tile);
  out_.structure.insert(out_.structure.end(), tile_entries.begin(), tile_entries.end());
  const ProgramCost cost = append_program({record}, branch.taken,
                                          {0,
                                           unit.inverses,
                                           a_.first[at(s)],
                                           bytes_of(element_),
                                           false,
                                           {static_cast<std::int32_t>(order_of(s))}},
                                          branch.first_int, out_.structure);
  unit.update = add_block(updates_, {0, 0, 1, 1});
  unit.structure = add_list(structures_, out_.structure, branch.first_int);
  unit.values = range_values(branch.first_code);
  unit.work = add_block(works_, in_columns(cost.work));
  unit.seconds = cost.seconds;
  unit.share = cost.share;
  unit.workers = static_cast<std::uint32_t>(std::max(cost.workers, 1.0));
  ++statuses_;
}

LayoutMaker::Place LayoutMaker::place_in_branch(Branch& branch, std::int32_t s, bool inside,
                                                std::int32_t children) {
  const std::int64_t w = a_.width(s);
  const std::int64_t r = a_.row_count(s);
  Place place{branch.panels, order_of(s), 0, r, 0, inside ? 0 : -1};
  const bool packed = sizes_.program != 0 && (inside || sizes_.range_bytes > 0);
  if (packed) place.step = kFrontTile;
  if (is_cut(s)) {
    place.ld = even(order_of(s));
    branch.inverses += tiles_of(s).across();
    place.panel += (place.panel + w) % 2;
    if (packed) place.ld_update = even(r);
  }
  branch.panels = place.panel + place.ld * w;
  out_.panel_place[at(s)] = place.panel;
  out_.panel_ld[at(s)] = static_cast<std::int32_t>(place.ld);
  const std::int64_t elements = update_elements(r, place.ld_update, place.step);
  if (!inside && packed && r > 0) {
    place.place = branch.place_for.at(out_.unit_of[at(a_.parent[at(s)])]);
    BlockExtent& block = branch.given[at(place.place - 1)];
    place.update = even(block.rows);
    block.rows = place.update + elements;
  } else if (!inside) {
    place.update = branch.outside;
    branch.outside += r * r;
  } else if (sizes_.program != 0) {  // fronts are in work at once: each has a place of its own
    place.update = even(branch.inner);
    branch.inner = place.update + elements;
  } else {
    place.update = branch.work.take(s, r * r);
  }
  for (std::int32_t k = 0; k < children; ++k) {
    if (sizes_.program == 0) branch.work.give_back(branch.pending.back());
    branch.pending.pop_back();
  }
  return place;
}

void LayoutMaker::add_to_branch(Branch& branch, std::int32_t s, const PermutedEntries& entries) {
  const bool inside = a_.parent[at(s)] >= 0 && a_.parent[at(s)] <= branch.last;
  std::int32_t children = 0;
  while (children < std::ssize(branch.pending) &&
         a_.parent[at(branch.pending[branch.pending.size() - 1 - at(children)])] == s)
    ++children;
  const Place place = place_in_branch(branch, s, inside, children);
  if (sizes_.program != 0) {
    add_record(branch, s, place, inside, entries);
  } else {
    BranchStructure structure{};
    structure.width = static_cast<std::int32_t>(a_.width(s));
    structure.rows = static_cast<std::int32_t>(a_.row_count(s));
    structure.children = children;
    structure.inside = inside ? 1 : 0;
    structure.panel = place.panel;
    structure.offset = place.update;
    const std::size_t header = out_.structure.size();
    out_.structure.resize(header + at(kBranchRecord));
    structure.entries = static_cast<std::int32_t>(put_entries(s, entries));
    if (inside) append_places(a_, s, out_.structure);
    std::memcpy(out_.structure.data() + header, &structure, sizeof structure);
  }
  (void)here(branch);
  if (inside) {
    branch.pending.push_back(s);
  } else if (a_.row_count(s) > 0 && sizes_.range_bytes == 0) {
    branch.roots.push_back(s);
  }
}

void LayoutMaker::add_record(Branch& branch, std::int32_t s, const Place& place, bool inside,
                             const PermutedEntries& entries) {
  FrontRecord record{};
  record.panel = place.panel;
  record.update = place.update;
  record.width = static_cast<std::int32_t>(a_.width(s));
  record.rows = static_cast<std::int32_t>(a_.row_count(s));
  record.ld = static_cast<std::int32_t>(place.ld);
  record.ld_update = static_cast<std::int32_t>(place.ld_update);
  record.step = place.step;
  tell_chain(s, record);
  record.place = place.place;
  record.last_tile = tiles_of(s).count();
  record.entries = here(branch);
  record.tile_entries = static_cast<std::int32_t>(branch.tile_entries.size());
  put_program_entries(s, record, entries, branch.first_code, branch.tile_entries);
  record.places = -1;
  if (inside) {
    record.places = here(branch);
    append_places(a_, s, out_.structure);
  }
  if (!inside && record.rows > 0) record.places = put_rows(branch, s);
  record.parent = inside ? a_.parent[at(s)] - branch.first : -1;
  record.column = a_.first[at(s)] - a_.first[at(branch.first)];
  branch.records.push_back(record);
}

void LayoutMaker::tell_chain(std::int32_t s, FrontRecord& record) const {
  record.own = record.width;
  if (parts_.empty()) return;
  std::int32_t first = s;
  while (parts_[at(first)] < 0) --first;
  const std::int32_t end = a_.first[at(first + parts_[at(first)] + 1)];
  record.later = end - a_.first[at(s + 1)];
  record.own = s == first ? record.width + record.later : 0;
}

std::int32_t LayoutMaker::put_rows(const Branch& branch, std::int32_t s) {
  const std::int32_t place = here(branch);
  for (const std::int32_t row : a_.rows(s))
    out_.structure.push_back(row - a_.first[at(branch.first)]);
  return place;
}

void LayoutMaker::put_program_entries(std::int32_t s, FrontRecord& record,
                                      const PermutedEntries& entries, std::int64_t first_code,
                                      std::vector<std::int32_t>& tile_entries) {
  std::vector<PlacedEntry>& placed = placed_;
  placed.clear();
  const FrontTiles tiles = tiles_of(s);
  const bool cut = is_cut(s);
  const auto tile_at = [&](std::int64_t i) {
    return static_cast<std::int32_t>(
        i < tiles.width ? i / kFrontTile : tiles.across() + (i - tiles.width) / kFrontTile);
  };
  record.entry_tiles = record.first_tile;
  for_front(s, entries, [&](std::int64_t i, std::int64_t j, EntryCode code) {
    const std::int32_t column = cut ? tile_at(j) : 0;
    if (column < record.first_tile || column >= record.last_tile) return;
    record.entry_tiles = std::max(record.entry_tiles, column + 1);
    EntryCode source = code < 0 ? -1 : code >> 1;
    if (sizes_.range_values && code >= 0) {
      source = std::ssize(out_.entries) - first_code;
      out_.entries.push_back(code);
    }
    placed.push_back({cut ? tiles.before(column) + tile_at(i) - column : 0,
                      static_cast<std::int32_t>(i + j * record.ld),
                      static_cast<std::int32_t>(source)});
  });
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedEntry& x, const PlacedEntry& y) { return x.tile < y.tile; });
  for (const PlacedEntry& p : placed) out_.structure.push_back(p.place);
  for (const PlacedEntry& p : placed) out_.structure.push_back(p.source);
  record.entry_count = static_cast<std::int32_t>(placed.size());
  if (!cut) return;
  std::size_t k = 0;
  for (std::int32_t t = tiles.before(record.first_tile); t < tiles.before(record.entry_tiles);
       ++t) {
    tile_entries.push_back(static_cast<std::int32_t>(k));
    while (k < placed.size() && placed[k].tile == t) ++k;
  }
  tile_entries.push_back(static_cast<std::int32_t>(k));
}

}  // namespace strata
