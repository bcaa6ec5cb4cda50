#pragma once
// One tile of rows on the CPU: what gram.hpp says of it, four lanes a vector.
//
// Contract: a tile is n columns of kGramTileRows doubles each, packed, zeros behind its rows.
// Everything is inlined into functions that are compiled for the processor (run_fused). Only for
// gram_host.cpp, which is compiled with -ffp-contract=off.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/tall/gram.hpp"
#include "scalar/lanes.hpp"

namespace strata::tile {

static_assert(kLanes == kGramLanes);

/// Pairs of columns, the first of them not behind the second: their number and the place of (i, i).
[[nodiscard]] constexpr std::int64_t pairs(std::int64_t n) noexcept { return n * (n + 1) / 2; }
[[nodiscard]] constexpr std::int64_t first_pair(std::int64_t i, std::int64_t n) noexcept {
  return i * n - i * (i - 1) / 2;
}

/// The rows that are read next, brought into the second-level cache while others are computed with:
/// a column of a tile is a kilobyte, too short a stream for the processor to see it coming.
struct Ahead {
  const char* first = nullptr;
  std::int64_t columns = 0;  ///< 0: nothing is read next
  std::int64_t stride = 0;   ///< from a column to the next, bytes
  std::int64_t bytes = 0;    ///< of a column

  /// What lies between two of `steps` steps: few columns at a time, so that computations do not
  /// wait for many.
  [[gnu::always_inline]] void fetch(std::int64_t from, std::int64_t to, std::int64_t steps) const {
    constexpr std::int64_t kLine = 64;
    const std::int64_t end = columns * to / steps;
    for (std::int64_t j = columns * from / steps; j < end; ++j) {
      for (std::int64_t byte = 0; byte < bytes; byte += kLine)
        __builtin_prefetch(first + j * stride + byte, 0, 2);
    }
  }
};

/// Columns are taken in groups that stay in the first-level cache while all others go by. Six of
/// them: as many sums in dd as sixteen registers hold, and in fp64 with two others at a time.
constexpr std::int64_t kGroup = 6;
[[nodiscard]] constexpr std::int64_t groups_of(std::int64_t n) noexcept {
  return (n + kGroup - 1) / kGroup;
}
/// The columns of the next group of `left`, a multiple of `multiple` but for the last. They are
/// dealt evenly: sums are made side by side because each waits four cycles for itself, which a rest
/// of one or two columns would not hide.
[[nodiscard]] constexpr std::int64_t next_group(std::int64_t left, std::int64_t multiple) noexcept {
  const std::int64_t even = (left + groups_of(left) - 1) / groups_of(left);
  return std::min(left, (even + multiple - 1) / multiple * multiple);
}
/// Columns that the groups of a tile meet, themselves among them.
[[nodiscard]] constexpr std::int64_t meetings(std::int64_t n, std::int64_t multiple) noexcept {
  std::int64_t sum = 0;
  for (std::int64_t j = 0; j < n;) sum += j += next_group(n - j, multiple);
  return sum;
}

/// The biased exponent of the largest magnitude in a column.
[[gnu::always_inline]] inline int exponent_field(const double* x) {
  Lanes::Vector largest{};
  for (int k = 0; k < kGramTileRows; k += kLanes) {
    const Lanes::Vector value = Lanes::load(x + k).values;
    const Lanes::Vector size = value < 0 ? -value : value;
    largest = size > largest ? size : largest;
  }
  double all = 0;
  for (int i = 0; i < kLanes; ++i) all = largest[i] > all ? largest[i] : all;
  return static_cast<int>(std::bit_cast<std::uint64_t>(all) >> 52);
}

/// 1.5·2^k, see gram.hpp.
[[gnu::always_inline]] inline double extraction_start(int field_x, int field_y) {
  const int biased = field_x + field_y - 1015;
  if (biased > 2046) return std::numeric_limits<double>::infinity();
  return std::bit_cast<double>(static_cast<std::uint64_t>(biased < 1 ? 1 : biased) << 52 |
                               std::uint64_t{1} << 51);
}

/// A sum of a tile joins that of the tiles before it.
[[gnu::always_inline]] inline void add_to(double* sum, const Lanes& of_tile) {
  rounded_sum(Lanes::load(sum), of_tile).store(sum);
}

/// The sums of kRows columns x with kCols columns y, added to those of tiles before: `to` holds for
/// each x where its sums are, a vector a pair.
template <int kRows, int kCols>
[[gnu::always_inline]] inline void add_products(const double* x, const double* y,
                                                double* const (&to)[kRows]) {
  Lanes c[kRows][kCols];
  for (int k = 0; k < kGramTileRows; k += kLanes) {
    Lanes xk[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) xk[i] = Lanes::load(x + i * kGramTileRows + k);
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) {
      const Lanes yk = Lanes::load(y + j * kGramTileRows + k);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) c[i][j] = fused(xk[i], yk, c[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) add_to(to[i] + j * kLanes, c[i][j]);
  }
}

/// Two columns x with each other and with the kCols columns behind them; `to`: where the sum of
/// each with itself is.
template <int kCols>
[[gnu::always_inline]] inline void add_corner(const double* x, double* const (&to)[2]) {
  constexpr int kOwn = 3;
  Lanes own[kOwn];
  Lanes c[2][kCols + 1];
  for (int k = 0; k < kGramTileRows; k += kLanes) {
    const Lanes x0 = Lanes::load(x + k);
    const Lanes x1 = Lanes::load(x + kGramTileRows + k);
    own[0] = fused(x0, x0, own[0]);
    own[1] = fused(x0, x1, own[1]);
    own[2] = fused(x1, x1, own[2]);
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) {
      const Lanes yk = Lanes::load(x + (j + 2) * kGramTileRows + k);
      c[0][j] = fused(x0, yk, c[0][j]);
      c[1][j] = fused(x1, yk, c[1][j]);
    }
  }
  add_to(to[0], own[0]);
  add_to(to[0] + kLanes, own[1]);
  add_to(to[1], own[2]);
#pragma GCC unroll 8
  for (int j = 0; j < kCols; ++j) {
    add_to(to[0] + (2 + j) * kLanes, c[0][j]);
    add_to(to[1] + (1 + j) * kLanes, c[1][j]);
  }
}

/// kRows columns x with a group of columns y.
template <int kRows>
[[gnu::always_inline]] inline void add_group(const double* x, const double* y, std::int64_t group,
                                             double* const (&to)[kRows]) {
  if (group == 1) add_products<kRows, 1>(x, y, to);
  if (group == 2) add_products<kRows, 2>(x, y, to);
  if (group == 3) add_products<kRows, 3>(x, y, to);
  if (group == 4) add_products<kRows, 4>(x, y, to);
  if (group == 5) add_products<kRows, 5>(x, y, to);
  if (group == 6) add_products<kRows, 6>(x, y, to);
}

/// Sums of a tile by extraction, side by side.
template <int kCount>
struct Extraction {
  double start[kCount];
  Lanes a[kCount];
  Lanes low[kCount];

  [[gnu::always_inline]] void begin(int p, int field_x, int field_y) {
    start[p] = extraction_start(field_x, field_y);
    a[p] = Lanes(start[p]);
  }
  [[gnu::always_inline]] void add(int p, const Lanes& x, const Lanes& y) {
    const Lanes t = fused(x, y, a[p]);
    const Lanes q = rounded_sum(t, -a[p]);
    low[p] = rounded_sum(low[p], fused(x, y, -q));
    a[p] = t;
  }
  /// Joins the sum of the tiles before: a vector of high parts, then one of low ones.
  [[gnu::always_inline]] void end(int p, double* to) const {
    const DoubleDoubleOf<Lanes> before{Lanes::load(to), Lanes::load(to + kLanes)};
    const auto after =
        add_cray(before, DoubleDoubleOf<Lanes>{rounded_sum(a[p], -Lanes(start[p])), low[p]});
    after.hi.store(to);
    after.lo.store(to + kLanes);
  }
};

/// The sums in dd of three columns x with themselves and each other; `to`: where the sum of each
/// with itself is.
[[gnu::always_inline]] inline void extract_corner(const double* x, const int* fields,
                                                  double* const (&to)[3]) {
  constexpr int kPairs[6][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};
  Extraction<6> sum;
#pragma GCC unroll 8
  for (int p = 0; p < 6; ++p) sum.begin(p, fields[kPairs[p][0]], fields[kPairs[p][1]]);
  for (int k = 0; k < kGramTileRows; k += kLanes) {
#pragma GCC unroll 8
    for (int p = 0; p < 6; ++p)
      sum.add(p, Lanes::load(x + kPairs[p][0] * kGramTileRows + k),
              Lanes::load(x + kPairs[p][1] * kGramTileRows + k));
  }
#pragma GCC unroll 8
  for (int p = 0; p < 6; ++p)
    sum.end(p, to[kPairs[p][0]] + (kPairs[p][1] - kPairs[p][0]) * 2 * kLanes);
}

/// The sums in dd of one column x with `kCount` columns y, tile by tile. `sums` holds for each pair
/// two vectors: the high parts of the lanes, then the low ones.
template <int kCount>
struct WideProducts {
  /// By extraction; fields: the exponents of the columns.
  [[gnu::always_inline]] static void extract(const double* x, const double* y, int field_x,
                                             const int* fields, double* sums) {
    Extraction<kCount> sum;
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) sum.begin(p, field_x, fields[p]);
    for (int k = 0; k < kGramTileRows; k += kLanes) {
      const Lanes xk = Lanes::load(x + k);
#pragma GCC unroll 8
      for (int p = 0; p < kCount; ++p) sum.add(p, xk, Lanes::load(y + p * kGramTileRows + k));
    }
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) sum.end(p, sums + p * 2 * kLanes);
  }

  /// By the other variants, for comparison.
  [[gnu::always_inline]] static void compare(const double* x, const double* y,
                                             std::uint32_t variant, double* sums) {
    for (int p = 0; p < kCount; ++p) {
      double* to = sums + p * 2 * kLanes;
      DoubleDoubleOf<Lanes> sum{Lanes::load(to), Lanes::load(to + kLanes)};
      for (int k = 0; k < kGramTileRows; k += kLanes) {
        const auto product =
            two_product(Lanes::load(x + k), Lanes::load(y + p * kGramTileRows + k));
        if (variant == kCray) {
          sum = add_cray(sum, product);
        } else if (variant == kIeee) {
          sum = sum + product;
        } else {
          const auto s = two_sum(sum.hi, product.hi);
          sum = {s.hi, rounded_sum(sum.lo, rounded_sum(s.lo, product.lo))};
        }
      }
      sum.hi.store(to);
      sum.lo.store(to + kLanes);
    }
  }
};

/// How a tile is added to the sums of its pairs.
struct Sum {
  std::uint32_t variant = kExtraction;
  bool wide = false;  ///< in dd
};

template <int kCount>
[[gnu::always_inline]] inline void add_wide(const Sum& sum, const double* x, const double* y,
                                            int field_x, const int* fields, double* sums) {
  if (sum.variant == kExtraction) {
    WideProducts<kCount>::extract(x, y, field_x, fields, sums);
  } else {
    WideProducts<kCount>::compare(x, y, sum.variant, sums);
  }
}

/// Column x with a group of columns y, in dd.
[[gnu::always_inline]] inline void add_wide_group(const Sum& sum, const double* x, const double* y,
                                                  std::int64_t group, int field_x,
                                                  const int* fields, double* sums) {
  if (group == 1) add_wide<1>(sum, x, y, field_x, fields, sums);
  if (group == 2) add_wide<2>(sum, x, y, field_x, fields, sums);
  if (group == 3) add_wide<3>(sum, x, y, field_x, fields, sums);
  if (group == 4) add_wide<4>(sum, x, y, field_x, fields, sums);
  if (group == 5) add_wide<5>(sum, x, y, field_x, fields, sums);
  if (group == 6) add_wide<6>(sum, x, y, field_x, fields, sums);
}

/// The pairs of a tile: those of a group of columns with the ones before it, then its own.
struct AddTile {
  [[gnu::always_inline]] static void run(const Sum& sum, const double* x, std::int64_t n,
                                         const Ahead& ahead, int* fields, double* sums) {
    if (!sum.wide) return add(x, n, ahead, sums);
    for (std::int64_t j = 0; j < n; ++j) fields[j] = exponent_field(x + j * kGramTileRows);
    constexpr std::int64_t kStride = 2 * kLanes;
    const std::int64_t steps = meetings(n, 1);
    std::int64_t step = 0;
    for (std::int64_t j = 0, stop = 0; j < n; j = stop) {
      stop = j + next_group(n - j, 1);
      for (std::int64_t i = 0; i < stop; ++i, ++step) {
        ahead.fetch(step, step + 1, steps);
        const double* xi = x + i * kGramTileRows;
        const std::int64_t first = std::max(i, j);
        double* to = sums + (first_pair(i, n) + first - i) * kStride;
        if (i >= j && stop - i == 3 && sum.variant == kExtraction) {
          extract_corner(
              xi, fields + i,
              {to, sums + first_pair(i + 1, n) * kStride, sums + first_pair(i + 2, n) * kStride});
          ahead.fetch(step + 1, step + 3, steps);
          step += 3;
          break;
        }
        add_wide_group(sum, xi, x + first * kGramTileRows, stop - first, fields[i], fields + first,
                       to);
      }
    }
  }

 private:
  [[gnu::always_inline]] static void add(const double* x, std::int64_t n, const Ahead& ahead,
                                         double* sums) {
    const std::int64_t steps = meetings(n, 2);
    std::int64_t step = 0;
    for (std::int64_t j = 0, stop = 0; j < n; j = stop) {
      stop = j + next_group(n - j, 2);
      for (std::int64_t i = 0; i < stop; i += 2, step += 2) {
        ahead.fetch(step, step + 2, steps);
        const double* xi = x + i * kGramTileRows;
        double* first = sums + first_pair(i, n) * kLanes;
        double* second = sums + first_pair(i + 1, n) * kLanes;
        if (i < j) {
          add_group<2>(xi, x + j * kGramTileRows, stop - j,
                       {first + (j - i) * kLanes, second + (j - i - 1) * kLanes});
        } else {
          add_own(xi, stop - i, {first, second});
        }
      }
    }
  }
  /// The first two of the `left` columns of a group that have not met it yet.
  [[gnu::always_inline]] static void add_own(const double* x, std::int64_t left,
                                             double* const (&to)[2]) {
    if (left == 1) add_products<1, 1>(x, x, {to[0]});
    if (left == 2) add_corner<0>(x, to);
    if (left == 3) add_corner<1>(x, to);
    if (left == 4) add_corner<2>(x, to);
    if (left == 5) add_corner<3>(x, to);
    if (left == 6) add_corner<4>(x, to);
  }
};

/// All pairs of two tiles of p and q columns.
struct AddInner {
  [[gnu::always_inline]] static void run(const Sum& sum, const double* x, std::int64_t p,
                                         const double* y, std::int64_t q, const Ahead& ahead_x,
                                         const Ahead& ahead_y, int* fields, double* sums) {
    const std::int64_t steps = p * groups_of(q);
    std::int64_t step = 0;
    for (std::int64_t j = 0, group = 0; j < q; j += group) {
      group = next_group(q - j, 1);
      const double* yj = y + j * kGramTileRows;
      for (std::int64_t i = 0; i < group && sum.wide; ++i)
        fields[i] = exponent_field(yj + i * kGramTileRows);
      const std::int64_t rows = sum.wide ? 1 : 2;
      for (std::int64_t i = 0; i < p; i += rows, step += rows) {
        ahead_x.fetch(step, std::min(step + rows, steps), steps);
        ahead_y.fetch(step, std::min(step + rows, steps), steps);
        const double* xi = x + i * kGramTileRows;
        double* to = sums + (i * q + j) * kLanes * (sum.wide ? 2 : 1);
        if (sum.wide) {
          add_wide_group(sum, xi, yj, group, exponent_field(xi), fields, to);
        } else if (i + 1 < p) {
          add_group<2>(xi, yj, group, {to, to + q * kLanes});
        } else {
          add_group<1>(xi, yj, group, {to});
        }
      }
    }
  }
};

/// The sums of single columns, for whoever has but one.
struct AddOne {
  [[gnu::always_inline]] static void run(const double* x, const double* y, double* sums) {
    add_products<1, 1>(x, y, {sums});
  }
};

/// y ← y − c·x for `rows` rows.
struct Subtract {
  [[gnu::always_inline]] static void run(double c, const double* x, double* y, std::int64_t rows) {
    const double minus = -c;
    std::int64_t r = 0;
    for (; r + kLanes <= rows; r += kLanes)
      fused(Lanes(minus), Lanes::load(x + r), Lanes::load(y + r)).store(y + r);
    for (; r < rows; ++r) y[r] = fused(minus, x[r], y[r]);
  }
};

}  // namespace strata::tile
