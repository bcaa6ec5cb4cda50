#pragma once
// What a thread block of gram_units_cuda.cu does at once, and how that is chosen.
//
// Contract: plain C++, so that a benchmark can go through all shapes.

#include <algorithm>
#include <cstdint>

#include "kernels/tall/gram.hpp"

namespace strata::gram_shape {

inline constexpr int kWarpThreads = 32;
inline constexpr int kPanel = 32;  // columns of a panel, in squares of four
inline constexpr int kThreadsMax = 256;
inline constexpr int kColumn = kGramTileRows + kGramLanes;  // doubles from column to column
inline constexpr std::int64_t kSharedMost = 220 << 10;      // bytes of a multiprocessor

/// Blocks of kThreadsMax threads that a multiprocessor is to have registers for. More warps did
/// more for the rate than larger squares; only those of four need all registers of a block.
constexpr int resident_blocks(int edge) { return edge == 4 ? 1 : 2; }

/// How a stage lies in shared memory, unit by unit and column by column, and what threads do.
struct Stage {
  std::int64_t n;   ///< columns of V
  int width;        ///< columns of a panel
  int panels;       ///< of V; of several each has whole squares
  int squares;      ///< in a panel: square t has the columns t, t + squares, …
  int columns;      ///< of a unit in shared memory, with those that a last square lacks
  int units;        ///< at once
  int off_threads;  ///< of pairs of different squares, whole warps
  int threads;
  int doubles;  ///< of a stage
  int tiles;    ///< of a unit
};

/// The shape of a stage, and how long a row takes by it, in arbitrary units; less is better.
struct Choice {
  Stage stage{};
  int edge = 0;
  double cost = 1e300;
};

constexpr int rounded_up(int x, int to) { return (x + to - 1) / to * to; }

inline constexpr int kEdgeLeast = 2;
inline constexpr int kEdgeMost = 4;
inline constexpr int kUnitsMost = 16;

/// `units` of n columns at once in squares of `edge`; edge 0: there is no such shape, or it does
/// not fit a thread block.
inline Choice shape_of(std::int64_t n, int edge, int units) {
  Choice c;
  if (edge < kEdgeLeast || edge > kEdgeMost || units < 1 || units > kUnitsMost) return c;
  Stage& s = c.stage;
  const auto squares_of = [edge](std::int64_t columns) {
    return static_cast<int>((columns + edge - 1) / edge);
  };
  s.n = n;
  s.units = units;
  s.squares = squares_of(n);
  const auto pairs_of = [](int squares) { return squares * (squares - 1) / 2; };
  s.panels = 1;
  if (rounded_up(kGramLanes * pairs_of(s.squares), kWarpThreads) +
          rounded_up(kGramLanes * s.squares, kWarpThreads) >
      kThreadsMax) {
    if (edge != 4) return c;
    s.squares = kPanel / edge;
    s.panels = static_cast<int>((n + kPanel - 1) / kPanel);
  }
  s.width = s.panels == 1 ? static_cast<int>(n) : kPanel;
  const int off = kGramLanes * pairs_of(s.squares) * units;
  const int diagonal = kGramLanes * s.squares * units;
  s.off_threads = rounded_up(off, kWarpThreads);
  s.threads = rounded_up(s.off_threads + diagonal, kWarpThreads);
  if (s.panels > 1) s.threads = std::max(s.threads, kGramLanes * s.squares * s.squares * units);
  s.columns = s.squares * edge * (s.panels > 1 ? 2 : 1);
  s.doubles = units * s.columns * kColumn;
  const std::int64_t bytes = 2 * std::int64_t{8} * s.doubles;
  if (units * s.width * (s.panels > 1 ? 2 : 1) > s.threads) return c;  // a copy each
  if (bytes > kSharedMost || s.threads > kThreadsMax) return c;
  // Reads of shared memory and products of a row at the rates of a multiprocessor, by whole warps,
  // and longer where there are too few warps for it. It has the order of what was measured for 10,
  // 20 and 30 columns on an H200.
  const int diagonal_threads = rounded_up(diagonal, kWarpThreads);
  const double products = s.off_threads * edge * edge + diagonal_threads * edge * (edge + 1) / 2.0;
  const double reads = s.off_threads * 2 * edge + diagonal_threads * edge;
  const std::int64_t blocks =
      std::min<std::int64_t>(kSharedMost / bytes, resident_blocks(edge) * kThreadsMax / s.threads);
  const double warps =
      static_cast<double>(std::max<std::int64_t>(blocks, 1) * s.threads) / kWarpThreads;
  const double idle = warps < 16 ? 16 / warps : 1;
  c.edge = edge;
  c.cost = (reads / 16 + products * 4.5 / 64) / units * idle;
  return c;
}

/// The shape that counts as fastest.
inline Choice choose(std::int64_t n) {
  Choice best;
  for (int edge = kEdgeLeast; edge <= kEdgeMost; ++edge) {
    for (int units = 1; units <= kUnitsMost; ++units) {
      const Choice c = shape_of(n, edge, units);
      if (c.cost < best.cost) best = c;
    }
  }
  return best;
}

}  // namespace strata::gram_shape
