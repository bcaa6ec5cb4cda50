#pragma once
// Which blocks a sparse Cholesky factorization has, and which supernodes are factored together.
//
// Contract: follows from an analysis, FrontSizes, the element and where A has entries. Supernodes
// are dealt to *units*, in postorder: a *branch* is whole subtrees of small supernodes with one
// parent, factored by one call, or, with range_bytes, any range of the postorder. Above branches a
// supernode whose front is small is a unit with one *panel*; a large one is cut into *tiles*, as
// dense matrices are. How a front is factored, so every bit of L, depends on its own size alone and
// not on how branches are cut.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix/block_table.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {

struct FrontSizes {
  std::int64_t tile = 512;               ///< largest order of a tile
  std::int64_t panel_order = 512;        ///< largest order of a front that is not cut into tiles
  std::int64_t branch_entries = 262144;  ///< of the panels of a branch of several supernodes
  /// Whether branches have a program (kernels/fronts/front_program.hpp), with room to read by twos
  /// and a place for each update; their values are those of the whole matrix, as it was given,
  /// unless ranges have blocks of values of their own.
  std::int64_t program = 0;  ///< 1: they do
  bool range_values = false;
  /// Bytes of the panels and updates of a range at most, for branches with a program: all units are
  /// then ranges of the postorder. A front that takes more is cut: its panel is a unit, and so are
  /// ranges of the columns of its update. 0: units are no ranges.
  std::int64_t range_bytes = 0;
  /// How many devices ranges are dealt to, by subtrees (subtree_dealing.hpp).
  std::int64_t devices = 1;
  /// 1: where ranges stay on several devices, large fronts above subtrees are made by all of them
  /// together.
  std::int64_t shares = 0;
  /// They are dealt as if it cost nothing to hand over from one to another: for tests.
  bool free_handover = false;
  /// No branches: each supernode is a unit, and up to so many small ones of a level of the tree are
  /// factored by the same calls. 0: units come one by one.
  std::int64_t batch = 0;
};

/// The range_bytes of a factor that stays on devices: whatever a range takes. Its work memory then
/// has room for right-hand sides.
inline constexpr std::int64_t kRangesThatStay = std::int64_t{1} << 60;

/// The same tree, with supernodes whose panels take more than so many bytes cut into chains of such
/// that do not, of a width that is a multiple of kFrontTile. `parts` says how many follow the first
/// part of each chain, −1 of the others: the first one's front gets the entries of A, and the rows
/// of right-hand sides, of all, so that sums are made in the order in which they were before.
struct SplitAnalysis {
  SparseAnalysis analysis;
  std::vector<std::int32_t> parts;
};
[[nodiscard]] SplitAnalysis split_supernodes(const SparseAnalysis& analysis,
                                             std::int64_t panel_bytes, Element element);

/// The analysis that was split. `parts` are those of its chains, as lay_out_fronts() takes them.
[[nodiscard]] SparseAnalysis joined_supernodes(const SparseAnalysis& split,
                                               std::span<const std::int32_t> parts);

/// The column by which the block of family kValues is told that holds the whole matrix's, and the
/// shift behind them.
inline constexpr std::int64_t kRawValues = 1;
/// That of blocks with the values that a range needs of them, and the shift behind them.
inline constexpr std::int64_t kRangeValues = 2;

/// The largest order of a front as one panel without a program, whose update is a square: places
/// in a block are of 32 bits. For ranges see places_fit() (kernels/fronts/front_program.hpp).
inline constexpr std::int64_t kPanelOrderMax = 46340;

/// Families of the schedule, in this order.
namespace fronts {
inline constexpr int kPanels = 0;     ///< L
inline constexpr int kUpdates = 1;    ///< of units to their parents; temporary
inline constexpr int kValues = 2;     ///< of A, as units need them
inline constexpr int kStructure = 3;  ///< of branches; places of entries in panels and tiles
inline constexpr int kPlaces = 4;     ///< of the rows of updates in the parent's front
inline constexpr int kStatus = 5;     ///< of diagonal blocks
inline constexpr int kWork = 6;       ///< of branches; temporary
}  // namespace fronts

enum class UnitKind : std::uint8_t { branch, panel, tiled };

/// Blocks are numbered within their families; −1: there is none.
struct FrontUnit {
  UnitKind kind = UnitKind::panel;
  std::int32_t first = 0;  ///< supernodes first … last
  std::int32_t last = 0;
  std::int32_t parent = -1;  ///< unit
  std::vector<std::int32_t> children;
  std::int64_t panel = 0;     ///< of tiles the first, column by column
  std::int64_t inverses = 0;  ///< of a branch: their first element in that block (BranchProgram)
  std::int64_t inverse_tiles = 0;  ///< for how many tiles there are some
  std::int64_t update = -1;        ///< likewise
  std::int64_t values = 0;         ///< of a branch or panel; of tiles see `tile_values`
  std::int64_t structure = 0;      ///< likewise
  std::int64_t places = -1;
  std::int64_t status = 0;  ///< of tiles the first of `column_tiles`
  std::int64_t work = -1;
  // For ranges: updates for others, those of others, and the panel that it reads.
  std::vector<std::int64_t> given;
  struct Taken {
    std::int64_t block;
    bool last;  ///< no unit needs it afterwards
  };
  std::vector<Taken> taken;
  std::int64_t source = -1;
  // For ranges: which device makes it, and whether it takes what several make
  // (subtree_dealing.hpp).
  int device = 0;
  bool top = false;
  int sharers = 1;  ///< devices that make it together, from the first one on: of one front
  /// For solves with ranges: where the rows of right-hand sides that go with each of `given` begin
  /// among the rows of updates in the work memory, and where those begin that come with a block.
  std::vector<std::int64_t> given_rows;
  struct RowsTaken {
    std::int64_t block;
    std::int64_t first;
  };
  std::vector<RowsTaken> rows_taken;
  /// Tile columns of the only front, as front_program.hpp has them, where that is cut; else −1.
  std::int32_t first_tile = -1;
  std::int32_t last_tile = -1;
  double flops = 0;
  double seconds = 0;  ///< that its program takes on a GPU by itself; 0: there is none
  double share = 0;    ///< of the GPU's products, by itself
  /// Thread blocks that are of use to the tiles of a range that does not stay; 0: any number.
  std::uint32_t workers = 0;
  double cost = 0;  ///< in flops at the rate of large products
  // For tiles: their borders in the front; the first `column_tiles` intervals are its columns.
  std::vector<std::int64_t> cuts;
  std::int64_t column_tiles = 0;
  std::vector<std::int64_t> tile_values;  ///< of each tile of the panel

  [[nodiscard]] std::int64_t tiles() const noexcept { return std::ssize(cuts) - 1; }
  /// Tile (i, j), i >= j, of the panel if j < column_tiles, else of the update.
  [[nodiscard]] BlockId tile(std::int64_t i, std::int64_t j) const;
};

/// An entry of A: its place among the values times two, plus one on the diagonal. Negative: A has
/// none there, and it is on the diagonal.
using EntryCode = std::int64_t;

struct FrontLayout {
  std::vector<FrontUnit> units;
  /// For ranges that stay: units in the order in which they are begun, whole subtrees first, then
  /// what waits for them. Else empty: units are begun in their own order.
  std::vector<std::int32_t> turns;
  /// Where there are batches, the units of each; all children are in batches before.
  std::vector<std::vector<std::int32_t>> batches;
  std::vector<std::int32_t> unit_of;  ///< of each supernode
  /// For each supernode that is not cut into tiles: the first element of its panel in its block,
  /// and the panel's leading dimension.
  std::vector<std::int64_t> panel_place;
  std::vector<std::int32_t> panel_ld;
  BlockTable blocks;
  bool ranges = false;              ///< units are ranges of the postorder
  bool own_places = false;          ///< blocks have places of their own size on a device, not slots
  std::vector<std::int32_t> parts;  ///< as it was laid out by: of a SplitAnalysis, or none
  /// What family kStructure, and kPlaces, hold; a block's extent begins at row `row`.
  std::vector<std::int32_t> structure;
  std::vector<std::int32_t> places;
  /// What family kValues holds, likewise.
  std::vector<EntryCode> entries;

  /// Whether the tree is one branch, or ranges, which solves can go through unit by unit.
  [[nodiscard]] bool has_programs() const noexcept {
    return ranges || (units.size() == 1 && units.front().kind == UnitKind::branch);
  }
};

/// `a` has the pattern that was analyzed; L and its updates are in `element`; `parts` are those of
/// a SplitAnalysis. Throws Error{misuse} for sizes that make no sense, an element that is neither
/// fp64 nor fp32, where a block is beyond what 32 bits count, and for what is no analysis;
/// Error{memory} where a range shares updates with more others than a call has operands.
[[nodiscard]] FrontLayout lay_out_fronts(const SparseAnalysis& analysis, const SparseMatrix& a,
                                         const FrontSizes& sizes, Element element = Element::fp64,
                                         std::span<const std::int32_t> parts = {});

/// The units of a layout by levels, those without children first; of a level up to `batch` panels
/// of fronts of order up to kSmallFront together, of orders that are near each other, and others
/// alone.
[[nodiscard]] std::vector<std::vector<std::int32_t>> level_batches(const FrontLayout& layout,
                                                                   std::int64_t batch);

}  // namespace strata
