// The order of tiles of the fused Cholesky kernel, without a GPU: every tile once, and one block
// beside the chain's gets to the end.

#include "kernels/dense/fused_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace strata::fused_kernel {
namespace {

std::vector<Tile> tiles_of(TileOrder order) {
  std::vector<Tile> tiles;
  Tile tile;
  const int first = order.chained ? kChainTicket + 1 : 0;
  for (int ticket = first; order.find(ticket, tile); ++ticket) tiles.push_back(tile);
  return tiles;
}

/// What the flags of the kernel say, and what its chain does with them.
struct Progress {
  int rows;
  int cols;
  std::vector<int> done;       // finished tiles of a row
  std::vector<bool> products;  // of tile (j + 1, j), but for the last
  std::vector<bool> below;     // all of them
  std::vector<bool> diagonal;  // products of tile (j, j)
  int chain = 0;               // the chain's next diagonal tile
  bool factored = false;       // it has factored that, and waits to solve

  Progress(int r, int c)
      : rows(r),
        cols(c),
        done(static_cast<std::size_t>(r)),
        products(static_cast<std::size_t>(r)),
        below(static_cast<std::size_t>(r)),
        diagonal(static_cast<std::size_t>(r)) {}

  int& row(int i) { return done[static_cast<std::size_t>(i)]; }

  /// As far as the chain gets.
  void run_chain() {
    while (chain < cols) {
      const int j = chain;
      if (!factored) row(j) = j + 1;
      factored = true;
      if (j + 1 == rows) {
        chain = cols;
        return;
      }
      const auto next = static_cast<std::size_t>(j + 1);
      if (j > 0 && !below[next - 1]) return;
      if (j > 0 && j + 1 < cols && !diagonal[next]) return;
      row(j + 1) = j + 1;
      factored = false;
      ++chain;
    }
  }

  /// Whether a block that draws this tile now can finish it. hands: and the products of the one on
  /// its right.
  bool can_finish(const Tile& tile, bool factors, bool hands) {
    const auto [i, j, work] = tile;
    if (work == Work::products_diagonal) return row(i) >= j - 1;
    if (work == Work::products_below) return row(i) >= j - 1 && row(j) >= j - 1;
    if (!factors) return row(i) >= j;
    if (i == j) return row(i) >= j;
    if (row(i) < j || row(j) < j + 1) return false;
    const auto next = static_cast<std::size_t>(j + 1);
    return !hands || ((j == 0 || products[next]) && row(j + 1) >= j + 1);
  }

  void finish(const Tile& tile, bool hands) {
    const auto j = static_cast<std::size_t>(tile.j);
    if (tile.work == Work::products_below) {
      products[j] = true;
    } else if (tile.work == Work::products_diagonal) {
      diagonal[j] = true;
    } else {
      ASSERT_EQ(row(tile.i), tile.j) << "tiles of a row finish from left to right";
      row(tile.i) = tile.j + 1;
      if (hands) below[j + 1] = true;
    }
  }
};

class FusedOrder : public ::testing::TestWithParam<std::tuple<bool, bool>> {};
INSTANTIATE_TEST_SUITE_P(Kinds, FusedOrder,
                         ::testing::Values(std::tuple{true, false}, std::tuple{true, true},
                                           std::tuple{false, false}));

TEST_P(FusedOrder, OneBlockGetsToTheEnd) {
  const auto [factors, chained] = GetParam();
  for (int rows = 1; rows <= 14; ++rows) {
    for (int cols = 1; cols <= (factors ? rows : 14); ++cols) {
      Progress progress(rows, cols);
      const TileOrder order{rows, cols, factors, chained};
      for (const Tile& tile : tiles_of(order)) {
        if (chained) progress.run_chain();
        const bool hands = order.hands(tile.i, tile.j);
        EXPECT_TRUE(!hands || tile.work == Work::finish) << "others finish nothing";
        ASSERT_TRUE(progress.can_finish(tile, factors, hands))
            << rows << " x " << cols << ": (" << tile.i << ", " << tile.j << ")";
        progress.finish(tile, hands);
      }
      if (chained) progress.run_chain();
      for (int i = 0; i < rows; ++i) {
        EXPECT_EQ(progress.row(i), factors ? std::min(i + 1, cols) : cols) << rows << " x " << cols;
      }
    }
  }
}

TEST_P(FusedOrder, EveryTileOnce) {
  const auto [factors, chained] = GetParam();
  for (int rows = 1; rows <= 14; ++rows) {
    for (int cols = 1; cols <= (factors ? rows : 14); ++cols) {
      std::set<std::tuple<int, int, Work>> seen;
      const std::vector<Tile> tiles = tiles_of({rows, cols, factors, chained});
      // The kernel stops at this many tickets, the chain's among them.
      EXPECT_LE(std::ssize(tiles) + (chained ? 1 : 0), rows * cols) << rows << " x " << cols;
      for (const Tile& tile : tiles) {
        EXPECT_TRUE(seen.insert({tile.i, tile.j, tile.work}).second);
        EXPECT_LT(tile.i, rows);
        EXPECT_LT(tile.j, cols);
        EXPECT_TRUE(!factors || tile.i >= tile.j);
      }
      if (!chained) {
        const int triangle = cols * (cols + 1) / 2 + (rows - cols) * cols;
        EXPECT_EQ(static_cast<int>(seen.size()), factors ? triangle : rows * cols);
      }
    }
  }
}

/// A launch of the kernel whose blocks get to a GPU one by one.
struct Launch {
  TileOrder shape;
  Progress progress;
  int next = 0;  // ticket

  Launch(int rows, int cols) : shape{rows, cols, true, true}, progress(rows, cols) {}
};

/// One block: it draws a ticket when it begins, and another when it is done with its tile.
struct Block {
  Launch* launch;
  TileOrder order;
  int ticket;

  explicit Block(Launch& of) : launch(&of), order(of.shape), ticket(of.next++) {}

  /// Returns whether there was anything to do; sets `left` when the block leaves.
  bool work(bool& left) {
    if (ticket == kChainTicket) {
      const auto before = launch->progress;
      launch->progress.run_chain();
      left = launch->progress.chain == launch->progress.cols;
      return left || launch->progress.done != before.done;
    }
    Tile tile;
    left = !order.find(ticket, tile);
    if (left) return true;
    const bool hands = order.hands(tile.i, tile.j);
    if (!launch->progress.can_finish(tile, true, hands)) return false;
    launch->progress.finish(tile, hands);
    ticket = launch->next++;
    return true;
  }
};

// Several launches at once on a GPU with room for one block more than there are launches: whatever
// blocks get there first, and whatever their indices are, all get to the end.
TEST(FusedOrderOfSeveral, LaunchesAtOnceGetToTheEnd) {
  std::minstd_rand random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const int count = 1 + trial % 4;
    std::vector<Launch> launches;
    std::vector<std::size_t> waiting;  // blocks that have no place yet, by their launch
    for (int k = 0; k < count; ++k) {
      const int rows = 1 + static_cast<int>(random() % 8);
      launches.emplace_back(rows, 1 + static_cast<int>(random() % static_cast<unsigned>(rows)));
      waiting.insert(waiting.end(), 2 + random() % 5, static_cast<std::size_t>(k));
    }
    std::shuffle(waiting.begin(), waiting.end(), random);
    std::vector<Block> running;
    bool goes_on = true;
    while (goes_on && !(running.empty() && waiting.empty())) {
      goes_on = false;
      for (; !waiting.empty() && std::ssize(running) <= count; waiting.pop_back(), goes_on = true) {
        running.emplace_back(launches[waiting.back()]);
      }
      std::shuffle(running.begin(), running.end(), random);
      std::erase_if(running, [&](Block& block) {
        bool left = false;
        goes_on = block.work(left) || goes_on;
        return left;
      });
    }
    ASSERT_TRUE(goes_on) << "trial " << trial << ": " << count << " launches wait for each other";
  }
}

TEST(FusedOrderHandChecked, TheFirstTicketIsTheChains) {
  TileOrder order{4, 4, true, true};
  Tile tile;
  ASSERT_TRUE(order.find(kChainTicket + 1, tile));
  EXPECT_EQ(std::tuple(tile.i, tile.j, tile.work), std::tuple(2, 0, Work::finish));
  TileOrder plain{4, 4, true, false};
  ASSERT_TRUE(plain.find(0, tile));
  EXPECT_EQ(std::tuple(tile.i, tile.j, tile.work), std::tuple(0, 0, Work::finish));
}

TEST(FusedOrderHandChecked, FourByFour) {
  const std::vector<Tile> plain = tiles_of({4, 4, true, false});
  const std::vector<std::pair<int, int>> expected{{0, 0}, {1, 0}, {1, 1}, {2, 0}, {3, 0},
                                                  {2, 1}, {2, 2}, {3, 1}, {3, 2}, {3, 3}};
  ASSERT_EQ(plain.size(), expected.size());
  for (std::size_t k = 0; k < plain.size(); ++k) {
    EXPECT_EQ(std::pair(plain[k].i, plain[k].j), expected[k]) << k;
  }
  // In column 0 the chain needs no products; (1, 1) has none either.
  const std::vector<Tile> chained = tiles_of({4, 4, true, true});
  const std::vector<std::tuple<int, int, Work>> words{
      {2, 0, Work::finish},         {3, 0, Work::finish},
      {3, 2, Work::products_below}, {2, 2, Work::products_diagonal},
      {3, 1, Work::finish},         {3, 3, Work::products_diagonal}};
  ASSERT_EQ(chained.size(), words.size());
  for (std::size_t k = 0; k < chained.size(); ++k) {
    EXPECT_EQ(std::tuple(chained[k].i, chained[k].j, chained[k].work), words[k]) << k;
  }
}

}  // namespace
}  // namespace strata::fused_kernel
