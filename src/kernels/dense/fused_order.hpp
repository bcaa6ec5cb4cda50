#pragma once
// The order in which the fused Cholesky kernel draws its tiles.
//
// Contract: plain C++, so that it is tested without a GPU. A tile depends only on tiles with
// smaller tickets and, where there is a chain, on what the chain can do once those are finished:
// one block beside the chain's gets to the end. Where there is a chain, ticket 0 is its own, so
// that it is in the hands of the first block that runs, whatever that block's index is.

namespace strata::fused_kernel {

/// What a ticket asks for.
enum class Work {
  finish,             ///< the tile from beginning to end
  products_below,     ///< tile (j + 1, j) but for the product with tile (j + 1, j − 1), which is
                      ///< left to who finishes that, and for its solve, which is the chain's
  products_diagonal,  ///< tile (j, j) but for the product with tile (j, j − 1); that is the chain's
};

struct Tile {
  int i = 0;
  int j = 0;
  Work work = Work::finish;
};

/// The ticket of the chain, where there is one.
inline constexpr int kChainTicket = 0;

/// From a ticket to its tile. Tickets of one block only grow, so the search goes on where it was.
/// Column by column; the next diagonal tile and the tile below this one come first. chained: those
/// are finished by the chain, and have tickets only for their products, if they have any; those of
/// the tile below come a column early, before the tile on its left. Not factoring: a solve of rows
/// × cols tiles. Aggregate: rows, cols, factors, chained; the rest follows.
struct TileOrder {
  int rows = 0;
  int cols = 0;
  bool factors = true;
  bool chained = false;
  int col = 0;
  int first = chained ? kChainTicket + 1 : 0;  ///< the ticket of the first tile of column `col`

  /// Tiles of column j that come before the rest.
  [[nodiscard]] constexpr int special(int j) const {
    const int next = j + 1 < cols ? 1 : 0;
    if (chained) return j == 0 ? 0 : next + (hands(j + 2, j) ? 1 : 0);
    return next + (j + 1 < rows ? 1 : 0) + (j == 0 ? 1 : 0);
  }
  /// Who finishes tile (i, j) also makes the last product for the tile on its right, on which the
  /// chain waits.
  [[nodiscard]] constexpr bool hands(int i, int j) const {
    return chained && i == j + 2 && i < rows && j + 1 < cols;
  }
  [[nodiscard]] constexpr int count(int j) const {
    if (!factors) return rows;
    return special(j) + (rows - j > 2 ? rows - j - 2 : 0);
  }
  /// Returns false past the last tile. Not for the ticket of a chain.
  constexpr bool find(int ticket, Tile& tile) {
    while (col < cols && ticket - first >= count(col)) first += count(col++);
    if (col >= cols) return false;
    int place = ticket - first;
    tile = {place, col, Work::finish};
    if (!factors) return true;
    const int specials = special(col);
    if (place >= specials) {
      tile.i = col + 2 + place - specials;
      return true;
    }
    if (!chained && col == 0 && place-- == 0) {
      tile.i = 0;
      return true;
    }
    if (chained) {
      tile = {col + 1, col + 1, Work::products_diagonal};
      if (place == 0 && hands(col + 2, col)) tile = {col + 2, col + 1, Work::products_below};
      return true;
    }
    tile.i = col + 1;
    if (place == 1) tile.j = col + 1;
    return true;
  }
};

}  // namespace strata::fused_kernel
