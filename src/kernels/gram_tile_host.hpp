#pragma once
// One tile of rows on the CPU: what gram.hpp says of it, four lanes a vector.
//
// Contract: a tile is n columns of kGramTileRows doubles each, packed, zeros behind its rows.
// Everything is inlined into functions that are compiled for the processor (run_fused). Only for
// gram_host.cpp, which is compiled with -ffp-contract=off.

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/gram.hpp"
#include "scalar/lanes.hpp"

namespace strata::tile {

static_assert(kLanes == kGramLanes);

/// Pairs of columns, the first of them not behind the second: their number and the place of (i, i).
[[nodiscard]] constexpr std::int64_t pairs(std::int64_t n) noexcept { return n * (n + 1) / 2; }
[[nodiscard]] constexpr std::int64_t first_pair(std::int64_t i, std::int64_t n) noexcept {
  return i * n - i * (i - 1) / 2;
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

/// The sums of kRows columns x with kCols columns y, added to those of tiles before: `to` holds for
/// each x where its sums are, a vector a pair. Eight sums at a time do not wait for each other.
template <int kRows, int kCols>
[[gnu::always_inline]] inline void add_products(const double* x, const double* y,
                                                double* const (&to)[kRows]) {
  Lanes c[kRows][kCols];
  for (int k = 0; k < kGramTileRows; k += kLanes) {
    Lanes xk[kRows];
    for (int i = 0; i < kRows; ++i) xk[i] = Lanes::load(x + i * kGramTileRows + k);
    for (int j = 0; j < kCols; ++j) {
      const Lanes yk = Lanes::load(y + j * kGramTileRows + k);
      for (int i = 0; i < kRows; ++i) c[i][j] = fused(xk[i], yk, c[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols; ++j) {
      double* sum = to[i] + j * kLanes;
      rounded_sum(Lanes::load(sum), c[i][j]).store(sum);
    }
  }
}

/// Columns x with the `count` columns from y on.
template <int kRows>
[[gnu::always_inline]] inline void add_products_of(const double* x, const double* y,
                                                   std::int64_t count, double* const (&to)[kRows]) {
  std::int64_t j = 0;
  double* at[kRows];
  const auto advance = [&] {
    for (int i = 0; i < kRows; ++i) at[i] = to[i] + j * kLanes;
    return y + j * kGramTileRows;
  };
  for (; j + 4 <= count; j += 4) add_products<kRows, 4>(x, advance(), at);
  if (count - j == 1) add_products<kRows, 1>(x, advance(), at);
  if (count - j == 2) add_products<kRows, 2>(x, advance(), at);
  if (count - j == 3) add_products<kRows, 3>(x, advance(), at);
}

/// The sums in dd of one column x with `kCount` columns y, tile by tile. `sums` holds for each pair
/// two vectors: the high parts of the lanes, then the low ones.
template <int kCount>
struct WideProducts {
  /// By extraction; fields: the exponents of the columns.
  [[gnu::always_inline]] static void extract(const double* x, const double* y, int field_x,
                                             const int* fields, double* sums) {
    Lanes a[kCount];
    Lanes low[kCount];
    for (int p = 0; p < kCount; ++p) a[p] = Lanes(extraction_start(field_x, fields[p]));
    for (int k = 0; k < kGramTileRows; k += kLanes) {
      const Lanes xk = Lanes::load(x + k);
      for (int p = 0; p < kCount; ++p) {
        const Lanes yk = Lanes::load(y + p * kGramTileRows + k);
        const Lanes t = fused(xk, yk, a[p]);
        const Lanes q = rounded_sum(t, -a[p]);
        low[p] = rounded_sum(low[p], fused(xk, yk, -q));
        a[p] = t;
      }
    }
    for (int p = 0; p < kCount; ++p) {
      const Lanes start(extraction_start(field_x, fields[p]));
      double* to = sums + p * 2 * kLanes;
      const DoubleDoubleOf<Lanes> before{Lanes::load(to), Lanes::load(to + kLanes)};
      const auto after = add_cray(before, DoubleDoubleOf<Lanes>{rounded_sum(a[p], -start), low[p]});
      after.hi.store(to);
      after.lo.store(to + kLanes);
    }
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

/// Column x with the `count` columns from y on, in dd.
[[gnu::always_inline]] inline void add_wide_row(const Sum& sum, const double* x, const double* y,
                                                std::int64_t count, int field_x, const int* fields,
                                                double* sums) {
  constexpr std::int64_t kStride = 2 * kLanes;
  std::int64_t p = 0;
  for (; p + 4 <= count; p += 4)
    add_wide<4>(sum, x, y + p * kGramTileRows, field_x, fields + p, sums + p * kStride);
  const double* rest = y + p * kGramTileRows;
  if (count - p == 1) add_wide<1>(sum, x, rest, field_x, fields + p, sums + p * kStride);
  if (count - p == 2) add_wide<2>(sum, x, rest, field_x, fields + p, sums + p * kStride);
  if (count - p == 3) add_wide<3>(sum, x, rest, field_x, fields + p, sums + p * kStride);
}

/// The pairs of a tile, in fp64 of two columns at a time.
struct AddTile {
  [[gnu::always_inline]] static void run(const Sum& sum, const double* x, std::int64_t n,
                                         int* fields, double* sums) {
    if (!sum.wide) return add(x, n, sums);
    for (std::int64_t j = 0; j < n; ++j) fields[j] = exponent_field(x + j * kGramTileRows);
    for (std::int64_t i = 0; i < n; ++i) {
      const double* xi = x + i * kGramTileRows;
      add_wide_row(sum, xi, xi, n - i, fields[i], fields + i, sums + first_pair(i, n) * 2 * kLanes);
    }
  }

 private:
  [[gnu::always_inline]] static void add(const double* x, std::int64_t n, double* sums) {
    for (std::int64_t i = 0; i < n; i += 2) {
      const double* xi = x + i * kGramTileRows;
      double* first = sums + first_pair(i, n) * kLanes;
      if (i + 1 == n) return add_products_of<1>(xi, xi, 1, {first});
      double* second = sums + first_pair(i + 1, n) * kLanes;
      add_products_of<1>(xi, xi, 1, {first});
      add_products_of<2>(xi, xi + kGramTileRows, n - i - 1, {first + kLanes, second});
    }
  }
};

/// All pairs of two tiles of p and q columns.
struct AddInner {
  [[gnu::always_inline]] static void run(const Sum& sum, const double* x, std::int64_t p,
                                         const double* y, std::int64_t q, int* fields,
                                         double* sums) {
    if (!sum.wide) return add(x, p, y, q, sums);
    for (std::int64_t j = 0; j < q; ++j) fields[j] = exponent_field(y + j * kGramTileRows);
    for (std::int64_t i = 0; i < p; ++i) {
      const double* xi = x + i * kGramTileRows;
      add_wide_row(sum, xi, y, q, exponent_field(xi), fields, sums + i * q * 2 * kLanes);
    }
  }

 private:
  [[gnu::always_inline]] static void add(const double* x, std::int64_t p, const double* y,
                                         std::int64_t q, double* sums) {
    std::int64_t i = 0;
    for (; i + 2 <= p; i += 2)
      add_products_of<2>(x + i * kGramTileRows, y, q,
                         {sums + i * q * kLanes, sums + (i + 1) * q * kLanes});
    if (i < p) add_products_of<1>(x + i * kGramTileRows, y, q, {sums + i * q * kLanes});
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

/// X ← X·R⁻¹ in fp64, four vectors of rows at a time. R: upper triangle, ld n.
struct Solve {
  [[gnu::always_inline]] static void run(double* x, std::int64_t n, const double* r) {
    constexpr int kVectors = 4;
    for (int k = 0; k < kGramTileRows; k += kVectors * kLanes) {
      for (std::int64_t j = 0; j < n; ++j) {
        double* xj = x + j * kGramTileRows + k;
        Lanes acc[kVectors];
        for (int v = 0; v < kVectors; ++v) acc[v] = Lanes::load(xj + v * kLanes);
        for (std::int64_t i = 0; i < j; ++i) {
          const double* xi = x + i * kGramTileRows + k;
          const Lanes rij(r[i + j * n]);
          for (int v = 0; v < kVectors; ++v)
            acc[v] = fused(-Lanes::load(xi + v * kLanes), rij, acc[v]);
        }
        const Lanes rjj(r[j + j * n]);
        for (int v = 0; v < kVectors; ++v) rounded_quotient(acc[v], rjj).store(xj + v * kLanes);
      }
    }
  }
};

/// The same in dd; `low` takes the low parts of X·R⁻¹, as x the high ones.
struct SolveWide {
  [[gnu::always_inline]] static void run(double* x, double* low, std::int64_t n,
                                         const DoubleDouble* r) {
    constexpr int kVectors = 2;
    for (int k = 0; k < kGramTileRows; k += kVectors * kLanes) {
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = j * kGramTileRows + k;
        DoubleDoubleOf<Lanes> acc[kVectors];
        for (int v = 0; v < kVectors; ++v) acc[v].hi = Lanes::load(x + at + v * kLanes);
        for (std::int64_t i = 0; i < j; ++i) {
          const DoubleDouble& rij = r[i + j * n];
          const DoubleDoubleOf<Lanes> factor{Lanes(rij.hi), Lanes(rij.lo)};
          for (int v = 0; v < kVectors; ++v) {
            const std::int64_t from = i * kGramTileRows + k + v * kLanes;
            const DoubleDoubleOf<Lanes> q{Lanes::load(x + from), Lanes::load(low + from)};
            acc[v] = subtract_product(acc[v], q, factor);
          }
        }
        const DoubleDouble& rjj = r[j + j * n];
        for (int v = 0; v < kVectors; ++v) {
          const auto q = acc[v] / DoubleDoubleOf<Lanes>{Lanes(rjj.hi), Lanes(rjj.lo)};
          q.hi.store(x + at + v * kLanes);
          q.lo.store(low + at + v * kLanes);
        }
      }
    }
  }
};

}  // namespace strata::tile
