#include "sparse/front_layout.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "kernels/front.hpp"
#include "kernels/potrf.hpp"
#include "sparse/front_entries.hpp"
#include "sparse/front_program.hpp"
#include "sparse/pattern.hpp"
#include "sparse/work_places.hpp"

namespace strata {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

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

class LayoutMaker {
 public:
  LayoutMaker(const SparseAnalysis& analysis, const FrontSizes& sizes, Element element,
              FrontLayout& out)
      : a_(analysis), sizes_(sizes), element_(element), out_(out) {}

  void make_units() {
    const std::int32_t count = a_.supernodes();
    out_.unit_of.resize(at(count));
    out_.panel_place.assign(at(count), 0);
    out_.panel_ld.assign(at(count), 0);
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

  /// Blocks, with what is known without values; then the entries of each.
  void make_blocks(const PermutedEntries& entries, std::int64_t values) {
    if (sizes_.program != 0) {
      require(values < kInt32Max, ErrorKind::misuse, "factor",
              "{} entries are beyond what 32 bits count", values);
      raw_values_ = add_block(values_, {0, kRawValues, values + 1, 1});
      (void)add_block(structures_, {0, 0, 0, 1});  // the same number in both families
    }
    for (FrontUnit& unit : out_.units) {
      for (std::int32_t s = unit.first; s <= unit.last; ++s) {
        const double order = static_cast<double>(a_.width(s) + a_.row_count(s));
        unit.flops += a_.flops(s);
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

 private:
  [[nodiscard]] std::int64_t order_of(std::int32_t s) const {
    return a_.width(s) + a_.row_count(s);
  }
  [[nodiscard]] bool is_small(std::int32_t s) const { return order_of(s) <= sizes_.panel_order; }

  /// Ranges of the postorder, as large as they may be.
  void make_ranges() {
    const std::int64_t size = bytes_of(element_);
    std::int64_t held = 0;
    for (std::int32_t s = 0; s < a_.supernodes(); ++s) {
      const std::int64_t r = a_.row_count(s);
      const std::int64_t bytes = (order_of(s) * a_.width(s) +
                                  update_elements(static_cast<std::int32_t>(r),
                                                  static_cast<std::int32_t>(even(r)), kFrontTile)) *
                                 size;
      if (out_.units.empty() || held + bytes > sizes_.range_bytes) {
        FrontUnit& unit = out_.units.emplace_back();
        unit.kind = UnitKind::branch;
        unit.first = s;
        held = 0;
      }
      out_.units.back().last = s;
      held += bytes;
    }
  }

  /// Subtrees that one branch can hold.
  void find_branches() {
    const std::int32_t count = a_.supernodes();
    whole_.assign(at(count), 1);
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

  /// The subtree of s, with the one before it if both are small and have one parent.
  void add_branch(std::int32_t s) {
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

  /// Elements of a block that is copied column by column where its home is not page-locked.
  static BlockExtent in_columns(std::int64_t elements) {
    constexpr std::int64_t kColumn = 65536;
    if (elements <= kColumn) return {0, 0, elements, 1};
    return {0, 0, kColumn, (elements - 1) / kColumn + 1};
  }
  std::int64_t add_block(std::vector<BlockExtent>& family, BlockExtent extent) {
    family.push_back(extent);
    return std::ssize(family) - 1;
  }
  /// The last elements of `list`, from `begin` on, as a block.
  template <class T>
  std::int64_t add_list(std::vector<BlockExtent>& family, const std::vector<T>& list,
                        std::int64_t begin) {
    return add_block(family, {begin, 0, std::ssize(list) - begin, 1});
  }

  /// Calls put(row in the front, column in the front, code) for the entries of s.
  template <class Put>
  void for_front(std::int32_t s, const PermutedEntries& entries, const Put& put) {
    place_of_.resize(a_.order.size());
    const std::int32_t begin = a_.first[at(s)];
    const std::int32_t end = a_.first[at(s) + 1];
    const auto rows = a_.rows(s);
    for (std::size_t k = 0; k < rows.size(); ++k)
      place_of_[at(rows[k])] = end - begin + static_cast<std::int32_t>(k);
    for (std::int32_t c = begin; c < end; ++c) {
      for (std::int64_t k = entries.start[at(c)]; k < entries.start[at(c) + 1]; ++k) {
        const std::int32_t r = entries.row[at(k)];
        put(r < end ? r - begin : place_of_[at(r)], c - begin, entries.code[at(k)]);
      }
    }
  }

  /// Where a branch's panels and updates lie. Those of fronts that a program cuts into tiles begin
  /// so that their rows below the columns, and their updates, can be read two at a time.
  struct Place {
    std::int64_t panel, ld, update, ld_update;
    std::int32_t step, place;  ///< as FrontRecord has them
  };
  /// An update on its way to another unit.
  struct Gift {
    std::int32_t supernode;
    std::int64_t block;
    ChildRecord record;
  };
  [[nodiscard]] bool is_cut(std::int32_t s) const {
    return sizes_.program != 0 && order_of(s) > kSmallFront;
  }
  [[nodiscard]] static std::int64_t even(std::int64_t n) { return n + n % 2; }

  /// A branch on its way.
  struct Branch {
    std::int32_t first, last;
    std::int64_t first_int;
    std::int64_t panels = 0;
    std::int64_t outside = 0;  ///< of updates
    std::int64_t inner = 0;    ///< of updates in the branch, where there is a program
    WorkPlaces work{};
    std::vector<std::int32_t> pending{};  ///< without a parent so far
    std::vector<std::int32_t> roots{};
    std::vector<FrontRecord> records{};
    std::vector<std::int32_t> tile_entries{};
    std::map<std::int32_t, std::int32_t> place_for{};  ///< by unit that gets updates
    std::vector<BlockExtent> given{};                  ///< as many
    std::vector<GivenChild> taken{};
  };
  [[nodiscard]] std::int32_t here(const Branch& branch) const {
    const std::int64_t place = std::ssize(out_.structure) - branch.first_int;
    require(place <= kInt32Max, ErrorKind::misuse, "factor",
            "a branch of {} supernodes is beyond what 32 bits count",
            branch.last - branch.first + 1);
    return static_cast<std::int32_t>(place);
  }

  void lay_out_branch(FrontUnit& unit, const PermutedEntries& entries) {
    const std::int64_t first_code = std::ssize(out_.entries);
    Branch branch{unit.first, unit.last, std::ssize(out_.structure)};
    out_.structure.push_back(unit.last - unit.first + 1);
    out_.structure.push_back(0);
    if (sizes_.range_bytes > 0) find_places(branch);
    for (std::int32_t s = unit.first; s <= unit.last; ++s) add_to_branch(branch, s, entries);
    std::int64_t work = branch.work.peak();
    if (sizes_.range_bytes > 0) take_gifts(unit, branch);
    if (sizes_.program != 0) {
      for (FrontRecord& record : branch.records) record.tile_entries += here(branch);
      out_.structure.insert(out_.structure.end(), branch.tile_entries.begin(),
                            branch.tile_entries.end());
      work = append_program(std::move(branch.records), branch.taken, branch.inner,
                            bytes_of(element_), branch.first_int, out_.structure);
    }
    unit.panel = add_block(panels_, in_columns(branch.panels));
    unit.update = add_block(updates_, {0, 0, std::max<std::int64_t>(branch.outside, 1), 1});
    unit.values = add_list(values_, out_.entries, first_code);
    unit.structure = add_list(structures_, out_.structure, branch.first_int);
    if (sizes_.program != 0) unit.values = raw_values_;
    unit.work = add_block(works_, in_columns(std::max<std::int64_t>(work, 1)));
    add_places(unit, branch.roots);
    ++statuses_;
  }

  /// A place for each unit that gets updates of this range.
  void find_places(Branch& branch) const {
    for (std::int32_t s = branch.first; s <= branch.last; ++s) {
      const std::int32_t p = a_.parent[at(s)];
      if (p <= branch.last || a_.row_count(s) == 0) continue;
      const auto next = static_cast<std::int32_t>(branch.place_for.size()) + 1;
      branch.place_for.emplace(out_.unit_of[at(p)], next);
    }
    branch.given.assign(branch.place_for.size(), {0, 0, 0, 1});
  }

  /// Blocks for what others get of this range, and the updates that it gets.
  void take_gifts(FrontUnit& unit, Branch& branch) {
    for (const BlockExtent& x : branch.given)
      unit.given.push_back(add_block(updates_, in_columns(x.rows)));
    const auto own = static_cast<std::int32_t>(&unit - out_.units.data());
    for (std::int32_t s = unit.first; s <= unit.last; ++s) {
      const FrontRecord& record = branch.records[at(s - unit.first)];
      if (record.place <= 0 || record.rows == 0) continue;
      const ChildRecord child{record.update, record.ld_update, 0, record.rows, -1, -1, 0, -1};
      gifts_[out_.unit_of[at(a_.parent[at(s)])]].push_back(
          {s, unit.given[at(record.place - 1)], child});
    }
    const auto found = gifts_.find(own);
    if (found == gifts_.end()) return;
    std::stable_sort(found->second.begin(), found->second.end(), [&](const Gift& x, const Gift& y) {
      return a_.parent[at(x.supernode)] < a_.parent[at(y.supernode)];
    });
    for (Gift& gift : found->second) {
      const auto known = std::find(unit.taken.begin(), unit.taken.end(), gift.block);
      const auto number = static_cast<std::int32_t>(known - unit.taken.begin());
      if (known == unit.taken.end()) unit.taken.push_back(gift.block);
      gift.record.place = static_cast<std::int32_t>(unit.given.size()) + number + 1;
      gift.record.places = here(branch);
      append_places(a_, gift.supernode, out_.structure);
      branch.taken.push_back({a_.parent[at(gift.supernode)] - unit.first, gift.record});
    }
    gifts_.erase(found);
    require(std::ssize(unit.given) + std::ssize(unit.taken) <= kPlacesMax, ErrorKind::memory,
            "factor", "a part of the elimination tree has updates of {} others, at most {}",
            unit.taken.size(), kPlacesMax);
  }

  /// Where supernode s lies; children of it that wait no longer give their memory back.
  Place place_in_branch(Branch& branch, std::int32_t s, bool inside, std::int32_t children) {
    const std::int64_t w = a_.width(s);
    const std::int64_t r = a_.row_count(s);
    Place place{branch.panels, order_of(s), 0, r, 0, inside ? 0 : -1};
    const bool packed = sizes_.program != 0 && (inside || sizes_.range_bytes > 0);
    if (packed) place.step = kFrontTile;
    if (is_cut(s)) {
      place.ld = even(order_of(s));
      place.panel += (place.panel + w) % 2;
      if (packed) place.ld_update = even(r);
    }
    branch.panels = place.panel + place.ld * w;
    out_.panel_place[at(s)] = place.panel;
    out_.panel_ld[at(s)] = static_cast<std::int32_t>(place.ld);
    const std::int64_t packed_elements = update_elements(
        static_cast<std::int32_t>(r), static_cast<std::int32_t>(place.ld_update), place.step);
    if (!inside && packed && r > 0) {
      place.place = branch.place_for.at(out_.unit_of[at(a_.parent[at(s)])]);
      BlockExtent& block = branch.given[at(place.place - 1)];
      place.update = even(block.rows);
      block.rows = place.update + packed_elements;
    } else if (!inside) {
      place.update = branch.outside;
      branch.outside += r * r;
    } else if (sizes_.program != 0) {  // fronts are in work at once: each has a place of its own
      place.update = even(branch.inner);
      branch.inner = place.update + packed_elements;
    } else {
      place.update = branch.work.take(s, r * r);
    }
    for (std::int32_t k = 0; k < children; ++k) {
      if (sizes_.program == 0) branch.work.give_back(branch.pending.back());
      branch.pending.pop_back();
    }
    return place;
  }

  void add_to_branch(Branch& branch, std::int32_t s, const PermutedEntries& entries) {
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

  /// The same in a branch with a program.
  void add_record(Branch& branch, std::int32_t s, const Place& place, bool inside,
                  const PermutedEntries& entries) {
    FrontRecord record{};
    record.entries = here(branch);
    record.tile_entries = static_cast<std::int32_t>(branch.tile_entries.size());
    record.entry_count =
        static_cast<std::int32_t>(put_program_entries(s, place.ld, entries, branch.tile_entries));
    record.places = -1;
    if (inside) {
      record.places = here(branch);
      append_places(a_, s, out_.structure);
    }
    record.panel = place.panel;
    record.update = place.update;
    record.width = static_cast<std::int32_t>(a_.width(s));
    record.rows = static_cast<std::int32_t>(a_.row_count(s));
    record.ld = static_cast<std::int32_t>(place.ld);
    record.ld_update = static_cast<std::int32_t>(place.ld_update);
    record.step = place.step;
    record.place = place.place;
    record.parent = inside ? a_.parent[at(s)] - branch.first : -1;
    record.column = a_.first[at(s)] - a_.first[at(branch.first)];
    branch.records.push_back(record);
  }

  /// Places in a panel without a leading dimension of its own, and what belongs there.
  std::int64_t put_entries(std::int32_t s, const PermutedEntries& entries) {
    const std::int64_t before = std::ssize(out_.entries);
    for_front(s, entries, [&](std::int64_t i, std::int64_t j, EntryCode code) {
      out_.structure.push_back(static_cast<std::int32_t>(i + j * order_of(s)));
      out_.entries.push_back(code);
    });
    return std::ssize(out_.entries) - before;
  }

  /// Places in the panel, by tiles where it is cut into tiles; then which values they are. Where
  /// those of each tile begin goes to `tile_entries`.
  std::int64_t put_program_entries(std::int32_t s, std::int64_t ld, const PermutedEntries& entries,
                                   std::vector<std::int32_t>& tile_entries) {
    std::vector<PlacedEntry>& placed = placed_;
    placed.clear();
    const FrontTiles tiles{static_cast<std::int32_t>(a_.width(s)),
                           static_cast<std::int32_t>(a_.row_count(s))};
    const bool cut = is_cut(s);
    const auto tile_of = [&](std::int64_t i, std::int64_t j) {
      const auto column = static_cast<std::int32_t>(j / kFrontTile);
      const auto row = static_cast<std::int32_t>(
          i < tiles.width ? i / kFrontTile : tiles.across() + (i - tiles.width) / kFrontTile);
      return tiles.before(column) + row - column;
    };
    for_front(s, entries, [&](std::int64_t i, std::int64_t j, EntryCode code) {
      placed.push_back({cut ? tile_of(i, j) : 0, static_cast<std::int32_t>(i + j * ld),
                        static_cast<std::int32_t>(code < 0 ? -1 : code >> 1)});
    });
    std::stable_sort(placed.begin(), placed.end(),
                     [](const PlacedEntry& x, const PlacedEntry& y) { return x.tile < y.tile; });
    for (const PlacedEntry& p : placed) out_.structure.push_back(p.place);
    for (const PlacedEntry& p : placed) out_.structure.push_back(p.source);
    if (!cut) return std::ssize(placed);
    std::size_t k = 0;
    for (std::int32_t t = 0; t < tiles.before(tiles.across()); ++t) {
      tile_entries.push_back(static_cast<std::int32_t>(k));
      while (k < placed.size() && placed[k].tile == t) ++k;
    }
    tile_entries.push_back(static_cast<std::int32_t>(k));
    return std::ssize(placed);
  }

  void lay_out_panel(FrontUnit& unit, const PermutedEntries& entries) {
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

  void lay_out_tiles(FrontUnit& unit, const PermutedEntries& entries) {
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
        add_block(j < unit.column_tiles ? panels_ : updates_,
                  {cuts[at(i)], cuts[at(j)], cuts[at(i + 1)] - cuts[at(i)],
                   cuts[at(j + 1)] - cuts[at(j)]});
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

  void add_places(FrontUnit& unit, std::span<const std::int32_t> roots) {
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

  void add_families() {
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

  struct PlacedEntry {
    std::int32_t tile, place, source;
  };

  const SparseAnalysis& a_;
  const FrontSizes& sizes_;
  Element element_;
  FrontLayout& out_;
  std::vector<char> whole_;         // by supernode: a branch holds all of its subtree
  std::vector<std::int64_t> size_;  // of its subtree's panels
  std::int64_t held_ = 0;           // by the branch that was begun last
  std::vector<std::int32_t> place_of_;
  std::vector<PlacedEntry> placed_;
  std::int64_t raw_values_ = -1;
  std::map<std::int32_t, std::vector<Gift>> gifts_;  // by unit that gets them, in postorder
  std::vector<BlockExtent> panels_, updates_, values_, structures_, places_, works_;
  std::int64_t statuses_ = 0;
};

}  // namespace

BlockId FrontUnit::tile(std::int64_t i, std::int64_t j) const {
  const bool in_panel = j < column_tiles;
  const std::int64_t columns = in_panel ? j : j - column_tiles;
  const std::int64_t height = in_panel ? tiles() : tiles() - column_tiles;
  const std::int64_t before = columns * height - columns * (columns - 1) / 2;
  return {in_panel ? fronts::kPanels : fronts::kUpdates,
          (in_panel ? panel : update) + before + (i - j), 0};
}

FrontLayout lay_out_fronts(const SparseAnalysis& analysis, const SparseMatrix& a,
                           const FrontSizes& sizes, Element element) {
  require(sizes.tile >= 1 && sizes.panel_order >= 1 && sizes.branch_entries >= 1, ErrorKind::misuse,
          "factor", "tiles of {}, panels of {}, branches of {} entries", sizes.tile,
          sizes.panel_order, sizes.branch_entries);
  require(std::max(sizes.tile, sizes.panel_order) <= kPanelOrderMax, ErrorKind::misuse, "factor",
          "tiles of {} and panels of fronts of order {}: at most {}", sizes.tile, sizes.panel_order,
          kPanelOrderMax);
  require(element == Element::fp64 || element == Element::fp32, ErrorKind::misuse, "factor",
          "there is no sparse factorization in {}: fp64 or fp32", to_string(element));
  require_well_formed(analysis);
  FrontLayout layout;
  layout.ranges = sizes.range_bytes > 0;
  LayoutMaker maker(analysis, sizes, element, layout);
  maker.make_units();
  maker.make_blocks(permuted_entries(analysis, a), a.entries());
  return layout;
}

}  // namespace strata
