#pragma once
// LayoutMaker: makes a FrontLayout, unit by unit. For front_layout.cpp and front_branches.cpp,
// which has what concerns branches.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_entries.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/front_program.hpp"
#include "sparse/fronts/subtree_dealing.hpp"
#include "sparse/fronts/work_places.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {

class LayoutMaker {
 public:
  LayoutMaker(const SparseAnalysis& analysis, const FrontSizes& sizes, Element element,
              std::span<const std::int32_t> parts, FrontLayout& out)
      : a_(analysis), sizes_(sizes), element_(element), parts_(parts), out_(out) {}

  void make_units();

  /// Blocks, with what is known without values; then the entries of each.
  void make_blocks(const PermutedEntries& entries, std::int64_t values);

 private:
  [[nodiscard]] std::int64_t order_of(std::int32_t s) const {
    return a_.width(s) + a_.row_count(s);
  }
  [[nodiscard]] bool is_small(std::int32_t s) const { return order_of(s) <= sizes_.panel_order; }

  /// Ranges of the postorder, as large as they may be, each for one device.
  void make_ranges();
  /// What a supernode takes of a range.
  [[nodiscard]] std::int64_t range_bytes_of(std::int32_t s) const {
    return (order_of(s) * a_.width(s) + packed_elements(a_.row_count(s))) * bytes_of(element_);
  }
  /// Finds the subtrees that a range can hold: they wait for no other range.
  void find_whole_subtrees();
  /// Whether s can be in one range, which holds so many bytes, with the supernode before it, so
  /// that whole subtrees do not wait for others: a range has such subtrees, or what is above them
  /// along one path.
  [[nodiscard]] bool stays_together(std::int32_t s, std::int64_t held) const;
  /// Whether s can be in one range with the supernode before it: they are of subtrees of one
  /// device, or of the top, where a range begins as soon as what it takes is there.
  [[nodiscard]] bool may_join(const SubtreeDealing& dealing, std::int32_t s) const;
  FrontUnit& add_range(std::int32_t first, std::int32_t last) {
    FrontUnit& unit = out_.units.emplace_back();
    unit.kind = UnitKind::branch;
    unit.first = first;
    unit.last = last;
    return unit;
  }
  /// The panel of a supernode, and columns of its update, as many as a range may hold.
  void cut_front(std::int32_t s);

  /// Subtrees that one branch can hold.
  void find_branches();

  /// The subtree of s, with the one before it if both are small and have one parent.
  void add_branch(std::int32_t s);

  /// Elements of a block that is copied column by column where its home is not page-locked.
  static BlockExtent in_columns(std::int64_t elements) {
    constexpr std::int64_t kColumn = 65536;
    if (elements <= kColumn) return {0, 0, elements, 1};
    return {0, 0, kColumn, (elements - 1) / kColumn + 1};
  }
  /// The block of `panels` elements of L, with the inverses of so many tiles behind them.
  void add_panels(FrontUnit& unit, std::int64_t panels, std::int64_t tiles) {
    constexpr std::int64_t kAlignment = 32;
    unit.inverses = tiles == 0 ? panels : (panels + kAlignment - 1) / kAlignment * kAlignment;
    unit.inverse_tiles = tiles;
    unit.panel = add_block(panels_, in_columns(unit.inverses + tiles * kDiagonalInverses));
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
    // The first of the parts of a supernode gets the entries of all of them.
    const std::int32_t more = parts_.empty() ? 0 : parts_[at(s)];
    const std::int32_t last = more < 0 ? begin : a_.first[at(s) + 1 + at(more)];
    for (std::int32_t c = begin; c < last; ++c) {
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
    std::vector<std::int32_t> places;
  };
  [[nodiscard]] bool is_cut(std::int32_t s) const {
    return sizes_.program != 0 && order_of(s) > kSmallFront;
  }
  [[nodiscard]] static std::int64_t even(std::int64_t n) { return n + n % 2; }
  [[nodiscard]] FrontTiles tiles_of(std::int32_t s) const {
    return {static_cast<std::int32_t>(a_.width(s)), static_cast<std::int32_t>(a_.row_count(s))};
  }
  /// The values of a range: those of the whole matrix, or what the last entries, from `first` on,
  /// are codes of.
  [[nodiscard]] std::int64_t range_values(std::int64_t first) {
    if (!sizes_.range_values) return raw_values_;
    const std::int64_t count = std::ssize(out_.entries) - first;
    return add_block(values_, {first, kRangeValues, count + 1, 1});
  }
  /// Tells a record of s where s stands in a chain of parts.
  void tell_chain(std::int32_t s, FrontRecord& record) const;
  /// Share of the unit in the work of a front that is cut, by the products of its tiles.
  [[nodiscard]] double share_of(const FrontUnit& unit) const {
    if (unit.first_tile < 0) return 1;
    const FrontTiles tiles = tiles_of(unit.first);
    // A tile of column j has j products and a half, up to as many as there are columns of L.
    double mine = 0;
    double all = 0;
    for (std::int32_t j = 0; j < tiles.count(); ++j) {
      const double products = std::min<double>(j + 0.5, tiles.across()) * (tiles.count() - j);
      all += products;
      if (j >= unit.first_tile && j < unit.last_tile) mine += products;
    }
    return mine / all;
  }

  /// A branch on its way.
  struct Branch {
    std::int32_t first, last;
    std::int64_t first_int;
    std::int64_t first_code;
    std::int64_t panels = 0;
    std::int64_t inverses = 0;  ///< tiles on diagonals
    std::int64_t outside = 0;   ///< of updates
    std::int64_t inner = 0;     ///< of updates in the branch, where there is a program
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
    require(place <= std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "factor",
            "a branch of {} supernodes is beyond what 32 bits count",
            branch.last - branch.first + 1);
    return static_cast<std::int32_t>(place);
  }

  void lay_out_branch(FrontUnit& unit, const PermutedEntries& entries);

  /// A place for each unit that gets updates of this range.
  void find_places(Branch& branch) const;

  /// Blocks for what others get of this range.
  void give(FrontUnit& unit, const Branch& branch);
  /// Columns of the update of s, in a block.
  void give_to_parent(std::int32_t s, std::int64_t block, const FrontRecord& record,
                      std::int64_t first, std::int64_t last);

  /// Whether a gift falls into the tile columns of a unit.
  [[nodiscard]] bool falls_into(const Gift& gift, const FrontUnit& unit) const;

  /// The updates that a unit gets, by parents and in postorder. All units of a front have one list.
  void take(FrontUnit& unit, Branch& branch);

  /// Tile columns of a front that is cut: its panel, or some of its update.
  void lay_out_part(FrontUnit& unit, const PermutedEntries& entries);

  /// Where supernode s lies; children of it that wait no longer give their memory back.
  Place place_in_branch(Branch& branch, std::int32_t s, bool inside, std::int32_t children);

  void add_to_branch(Branch& branch, std::int32_t s, const PermutedEntries& entries);

  /// The same in a branch with a program.
  void add_record(Branch& branch, std::int32_t s, const Place& place, bool inside,
                  const PermutedEntries& entries);

  /// The rows of s as columns of L, counted from the branch's first; returns where they stand.
  std::int32_t put_rows(const Branch& branch, std::int32_t s);

  /// Places in a panel without a leading dimension of its own, and what belongs there.
  std::int64_t put_entries(std::int32_t s, const PermutedEntries& entries) {
    const std::int64_t before = std::ssize(out_.entries);
    for_front(s, entries, [&](std::int64_t i, std::int64_t j, EntryCode code) {
      out_.structure.push_back(static_cast<std::int32_t>(i + j * order_of(s)));
      out_.entries.push_back(code);
    });
    return std::ssize(out_.entries) - before;
  }

  /// Places in the front, by tiles where it is cut into tiles, of those of its tile columns that
  /// are made here; then which values they are. Where those of each tile begin goes to
  /// `tile_entries`, as counted from the first of these columns on. The codes of the unit begin
  /// with `first_code` where ranges have values of their own.
  void put_program_entries(std::int32_t s, FrontRecord& record, const PermutedEntries& entries,
                           std::int64_t first_code, std::vector<std::int32_t>& tile_entries);

  void lay_out_panel(FrontUnit& unit, const PermutedEntries& entries);

  void lay_out_tiles(FrontUnit& unit, const PermutedEntries& entries);

  void add_places(FrontUnit& unit, std::span<const std::int32_t> roots);

  void add_families();

  struct PlacedEntry {
    std::int32_t tile, place, source;
  };

  const SparseAnalysis& a_;
  const FrontSizes& sizes_;
  Element element_;
  std::span<const std::int32_t> parts_;
  FrontLayout& out_;
  std::vector<std::int32_t> largest_below_;  // by supernode: order of a front, in its subtree
  std::vector<char> whole_;                  // by supernode: a branch holds all of its subtree
  std::vector<std::int64_t> size_;           // of its subtree's panels, or of all that it takes
  std::vector<std::int32_t> top_of_;  // the largest subtree with it that a range holds; −1: none
  std::int64_t held_ = 0;             // by the branch that was begun last
  std::vector<std::int32_t> place_of_;
  std::vector<PlacedEntry> placed_;
  std::int64_t raw_values_ = -1;
  std::map<std::int32_t, std::vector<Gift>> gifts_;  // by unit that gets them, in postorder
  std::vector<BlockExtent> panels_, updates_, values_, structures_, places_, works_;
  std::int64_t statuses_ = 0;
};

}  // namespace strata
