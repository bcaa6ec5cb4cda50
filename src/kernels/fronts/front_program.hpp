#pragma once
// A branch as a static list of jobs, for a GPU: front_branch_cuda.cu carries it out, a launch for
// each part of the list, and front_sweep_cuda.cu solves by it.
//
// Contract: plain C++, made by sparse/fronts/front_program.cpp, part of the `structure` of
// factor_branch (front.hpp), in which all places below count int32 numbers from its beginning.
// Thread blocks draw jobs in the order of the list; a job needs only what jobs before it make, so
// that one block gets to the end, and waits for that by flags that only grow. Sums are made in one
// order whatever runs beside.
//
// A front of order up to kSmallFront is factored by one block, up to kTinyFront by one warp. A
// larger one is cut into tiles: its w columns, from the first on, every kFrontTile; its r rows
// below, from row w on, every kFrontTile again. Tile (i, j), i >= j, of both together, is one job:
// entries of A, what the children give, less the products of the tiles to the left of (i, 0 …) and
// (j, 0 …), solved or factored if it is in the panel.
//
// The list has three parts, each of which needs only what is in it and before it: subtrees of tiny
// fronts; fronts above them whose subtrees have none but small ones; all others. What counts is the
// whole subtree, also where it begins before the branch.

#include <cstdint>

namespace strata {

inline constexpr std::int32_t kFrontTile = 64;
inline constexpr std::int32_t kSmallFront = 64;
inline constexpr std::int32_t kTinyFront = 32;

/// Updates have no room above their diagonal tiles: column b of one, of the columns of tiles of
/// which each has `step` rows less than the one before, `ld` being those of the first. Element
/// (a, b), a >= b, is at update_column(…) + a. Steps are kFrontTile, or 0: a square. Right for any
/// update whose elements 32 bits count (places_fit()): intermediate numbers that do not fit cancel,
/// so all are taken modulo 2³².
[[nodiscard]] constexpr std::int32_t update_column(std::int32_t ld, std::int32_t step,
                                                   std::int32_t b) {
  using Modular = std::uint32_t;
  const auto j = static_cast<Modular>(b / kFrontTile);
  const auto ld_there = static_cast<Modular>(ld);
  const auto shorter = static_cast<Modular>(step);
  const Modular first =
      kFrontTile * j * ld_there - shorter * (kFrontTile / 2) * j * (j - Modular{1});
  return static_cast<std::int32_t>(
      first + (static_cast<Modular>(b) - kFrontTile * j) * (ld_there - shorter * j) - shorter * j);
}
/// How many elements one has; of any order.
[[nodiscard]] constexpr std::int64_t update_elements(std::int64_t rows, std::int64_t ld,
                                                     std::int64_t step) {
  if (rows == 0) return 0;
  const std::int64_t j = (rows - 1) / kFrontTile;
  const std::int64_t first = kFrontTile * j * ld - step * (kFrontTile / 2) * j * (j - 1);
  return first + (rows - kFrontTile * j) * (ld - step * j);
}
/// That of an update of a branch with a program: its first column is of even length, for reads by
/// twos.
[[nodiscard]] constexpr std::int64_t packed_elements(std::int64_t rows) {
  return update_elements(rows, rows + rows % 2, kFrontTile);
}

/// Whether 32 bits count the places in the panel of a front with a program and in its update,
/// however its w columns are dealt to several panels (a part has what is behind it in its update).
[[nodiscard]] constexpr bool places_fit(std::int64_t w, std::int64_t r) {
  constexpr std::int64_t kPlaces = std::int64_t{1} << 31;
  return (w + r + 1) * w < kPlaces && packed_elements(w + r) < kPlaces;
}

/// At the place in a structure that BranchHeader::program says; a multiple of 2.
struct BranchProgram {
  std::int32_t fronts;      ///< how many
  std::int32_t columns;     ///< of all
  std::int32_t records;     ///< place of a FrontRecord each; a multiple of 2
  std::int32_t jobs;        ///< place of the FrontJobs
  std::int32_t job_count;   ///< of all
  std::int32_t tiny_jobs;   ///< the first ones
  std::int32_t small_jobs;  ///< the next ones
  std::int32_t flags;       ///< how many they use
  std::int32_t inverses;    ///< tiles on diagonals
  // For solves: small fronts as above; of the others these, in either direction.
  std::int32_t forward_jobs;  ///< place of FrontJobs: tile row i; i < 0: a small front
  std::int32_t forward_count;
  std::int32_t backward_jobs;  ///< column j of tiles; i < 0: a small front
  std::int32_t backward_count;
  std::int64_t rows;  ///< of all updates, and of those of others that come in
  /// First element of the work memory behind all updates; a multiple of 32. There lie kProgramBytes
  /// of bookkeeping, a double for each column, places of as many for messages of solves, the flags,
  /// and kSolveFlags of each front.
  std::int64_t bookkeeping;
  /// First element of P behind all panels; a multiple of 32 if there are inverses. There lie
  /// kDiagonalInverses numbers for each tile on a diagonal, so that they go where L goes. Solves on
  /// GPUs need them.
  std::int64_t first_inverse;
  std::int32_t first_column;  ///< of L, the branch's first
  /// Where a front that several devices make together has its job counts: for each device how many
  /// jobs those before it have, then all; jobs are listed device by device. 0: there is no such
  /// front.
  std::int32_t shares;
};
/// Which of the devices makes the tiles of column j: in turn, so that all have work to the end.
[[nodiscard]] constexpr std::int32_t owner_of(std::int32_t j, std::int32_t sharers) {
  return j % sharers;
}
inline constexpr std::int64_t kProgramBytes = 4096;
inline constexpr std::int64_t kDiagonalInverses = 8 * kFrontTile;  ///< of 8 × 8 blocks
/// All zero at the launch of a sweep: signals of children; tiles of columns solved forward; one
/// when its rows below are there, and one for each tile of columns solved backward.
inline constexpr std::int64_t kSolveFlags = 3;

/// Bytes from there on.
[[nodiscard]] constexpr std::int64_t bookkeeping_bytes(const BranchProgram& program) {
  return kProgramBytes + 2 * std::int64_t{program.columns} * 8 +
         (std::int64_t{program.flags} + std::int64_t{program.fronts} * kSolveFlags) * 4;
}

/// How many right-hand sides a sweep takes at once, 1 or kSweepColumns: as many as there is room
/// for where the updates were.
inline constexpr std::int64_t kSweepColumns = 16;
[[nodiscard]] constexpr std::int64_t sweep_columns(const BranchProgram& program) {
  return program.rows * kSweepColumns <= program.bookkeeping ? kSweepColumns : 1;
}

/// In a sweep over a range (sweep_range) the bookkeeping lies behind m numbers for each row.
[[nodiscard]] constexpr std::int64_t range_bookkeeping(const BranchProgram& program,
                                                       std::int64_t m) {
  constexpr std::int64_t kAlignment = 32;
  return (program.rows * m + kAlignment - 1) / kAlignment * kAlignment;
}

struct FrontRecord {
  std::int64_t
      panel;  ///< its first element among the panels, (w + r) × w, `ld` from column to column
  std::int64_t update;  ///< likewise of its update, r × r: in which memory see `place`
  std::int32_t width;   ///< w
  std::int32_t rows;    ///< r
  std::int32_t ld;
  std::int32_t ld_update;  ///< of the first column of tiles, …
  std::int32_t step;       ///< … and by how much the next ones are shorter: kFrontTile, or 0
  std::int32_t place;  ///< of its update. 0: work; k: the k-th operand behind all; −1: U; −2: P
  std::int32_t parent;       ///< a front; −1: none in this branch
  std::int32_t column;       ///< of the branch, its first
  std::int32_t entries;      ///< place of where its entries of A belong: i + j·ld in the front …
  std::int32_t entry_count;  ///< … then, as many, of which value each is: −1: of none, zero
  std::int32_t tile_entries;  ///< cut into tiles: place of the first entry of each, and of the end
  /// Place of its rows' places in the parent's front; of one whose parent is not in this branch, of
  /// their columns of L, as counted from the branch's first.
  std::int32_t places;
  std::int32_t inverses;     ///< number of its first tile on the diagonal
  std::int32_t children;     ///< place of a ChildRecord each, in the order in which they are added
  std::int32_t child_count;  ///< of those that give something
  std::int32_t flag;         ///< number of its first flag: signals of children; then one a tile row
  std::int32_t expected;     ///< signals of children until all of their updates are there
  std::int32_t expected_rows;  ///< the same of a forward sweep, of tile rows
  /// Tile columns of it that are made here, first_tile … last_tile − 1. If they are all columns of
  /// its update, the panel is done, and panel_place tells where it is as `place` does; else that is
  /// 0.
  std::int32_t first_tile;
  std::int32_t last_tile;
  std::int32_t panel_place;
  std::int32_t entry_tiles;  ///< entries of A are in tile columns before this one
  // Where a supernode was split, its parts follow one another in a chain (split_supernodes()).
  // Solves with a chain sum in the order of solves with the whole front.
  std::int32_t later;  ///< how many of its rows, the first ones, are columns of later parts
  /// Rows of the front that begin with those of the right-hand side: as many as a whole front has
  /// columns; the first part of a chain has them for all parts, the others have none.
  std::int32_t own;
  std::int64_t rows_before;  ///< where its rows begin among those of all updates
};
/// What a front needs to know of a child, in this branch or before it. At multiples of 2.
struct ChildRecord {
  std::int64_t update;  ///< as in FrontRecord, of step kFrontTile
  std::int32_t ld_update;
  std::int32_t place;
  std::int32_t rows;
  std::int32_t places;
  std::int32_t
      cuts;  ///< front cut into tiles: place of the first row in each of its tile rows, and r
  std::int32_t first_column;  ///< of its update, that lies there, …
  std::int32_t last_column;   ///< … and behind the last
  std::int32_t none;          ///< so that no byte is undefined
  std::int64_t rows_before;   ///< as in FrontRecord; of one from before, behind all of these

  /// Whether it stands for the child in a solve: of one whose columns lie in several blocks, each
  /// with a record, only that of the first ones does. A record may be there for solves alone: then
  /// it has no columns.
  [[nodiscard]] constexpr bool gives_rows() const { return first_column == 0; }
};
/// Operands of a branch behind the others: updates for other branches, then those of others.
inline constexpr std::int32_t kPlacesMax = 224;
inline constexpr std::int32_t kChildRecord = sizeof(ChildRecord) / sizeof(std::int32_t);
inline constexpr std::int32_t kFrontRecord = sizeof(FrontRecord) / sizeof(std::int32_t);

/// i >= 0: tile (i, j) of `front`. Else the small fronts from `front` to j, one after the other;
/// one that is alone may have children before it.
struct FrontJob {
  std::int32_t front;
  std::int32_t i;
  std::int32_t j;
};
inline constexpr std::int32_t kFrontJob = sizeof(FrontJob) / sizeof(std::int32_t);

/// Tiles of a front, by the borders above. Sweeps backward sum by tiles, so those with a part of a
/// split supernode have the borders of the whole front: `later` of its rows are columns of later
/// parts, whose last tile may be shorter.
struct FrontTiles {
  std::int32_t width;
  std::int32_t rows;
  std::int32_t later = 0;

  [[nodiscard]] static constexpr std::int32_t tiles(std::int32_t n) {
    return (n + kFrontTile - 1) / kFrontTile;
  }
  [[nodiscard]] constexpr std::int32_t across() const { return tiles(width); }
  [[nodiscard]] constexpr std::int32_t count() const {
    return across() + tiles(later) + tiles(rows - later);
  }
  /// First row of tile row i in the front; that of count() is the order.
  [[nodiscard]] constexpr std::int32_t begin(std::int32_t i) const {
    std::int32_t first = 0;
    std::int32_t end = width;
    if (i >= across()) {
      i -= across();
      first = width;
      end += later;
      if (i >= tiles(later)) {
        i -= tiles(later);
        first = end;
        end = width + rows;
      }
    }
    const std::int32_t at = first + i * kFrontTile;
    return at < end ? at : end;
  }
  /// Tiles in the columns of tiles before column j.
  [[nodiscard]] constexpr std::int32_t before(std::int32_t j) const {
    return j * count() - j * (j - 1) / 2;
  }
};

}  // namespace strata
