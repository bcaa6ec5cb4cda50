#pragma once
// X·R⁻¹ for one tile of rows on the CPU: what gram.hpp says of it, four lanes a vector. Contract:
// that of gram_tile_host.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/tall/eight_solve.hpp"
#include "kernels/tall/gram_tile_host.hpp"

namespace strata::tile {

/// Quotients by one divisor, rounded correctly without a division where that is possible: with y
/// the rounded reciprocal of b and q within an ulp of a/b, q + y·(a − b·q) is (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990), if nothing
/// underflows. A processor multiplies four times while it divides once.
struct Divisor {
  double b = 1;
  double reciprocal = 1;
  bool ordinary = true;  ///< quotients of ordinary numbers by it are far from under- and overflow

  static constexpr double kLeast = 0x1p-400, kMost = 0x1p400;  ///< of what is ordinary

  Divisor() = default;
  explicit Divisor(double divisor)
      : b(divisor),
        reciprocal(1 / divisor),
        ordinary(std::abs(divisor) > kLeast && std::abs(divisor) < kMost) {}

  /// a ← a/b.
  template <int kVectors>
  [[gnu::always_inline]] void divide(Lanes (&a)[kVectors]) const {
    using Bits [[gnu::vector_size(sizeof(Lanes::Vector))]] = std::int64_t;
    Bits inside = ~Bits{};
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto size = std::bit_cast<Lanes::Vector>(std::bit_cast<Bits>(a[v].values) &
                                                     std::numeric_limits<std::int64_t>::max());
      inside &= (size > kLeast) & (size < kMost);
    }
    if (!ordinary || (inside[0] & inside[1] & inside[2] & inside[3]) == 0) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) a[v] = rounded_quotient(a[v], Lanes(b));
      return;
    }
    const Lanes y(reciprocal);
    const Lanes divisor(b);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Lanes q = rounded_product(a[v], y);
      q = fused(fused(-q, divisor, a[v]), y, q);
      a[v] = fused(fused(-q, divisor, a[v]), y, q);
    }
  }
};

/// X ← X·R⁻¹ in fp64, four vectors of rows and two columns at a time: eight sums that do not wait
/// for each other. R: upper triangle, ld n; divisors: its diagonal.
struct Solve {
  [[gnu::always_inline]] static void run(double* x, std::int64_t n, const double* r,
                                         const Divisor* divisors, const Ahead& ahead) {
    for (int k = 0; k < kGramTileRows; k += kVectors * kLanes) {
      ahead.fetch(k, k + kVectors * kLanes, kGramTileRows);
      std::int64_t j = 0;
      for (; j + 2 <= n; j += 2) columns<2>(x + k, j, r + j * n, n, divisors + j);
      if (j < n) columns<1>(x + k, j, r + j * n, n, divisors + j);
    }
  }

 private:
  static constexpr int kVectors = 4;

  /// sum ← sum − x·r.
  [[gnu::always_inline]] static void subtract(const double* x, double r, Lanes (&sum)[kVectors]) {
    const Lanes factor(r);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[v] = fused(-Lanes::load(x + v * kLanes), factor, sum[v]);
  }

  /// The columns j … j + kColumns − 1; r: R's column j.
  template <int kColumns>
  [[gnu::always_inline]] static void columns(double* x, std::int64_t j, const double* r,
                                             std::int64_t n, const Divisor* divisors) {
    Lanes sum[kColumns][kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sum[c][v] = Lanes::load(x + (j + c) * kGramTileRows + v * kLanes);
    }
    for (std::int64_t i = 0; i < j; ++i) {
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) subtract(x + i * kGramTileRows, r[i + c * n], sum[c]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      if (c == 1) subtract(x + j * kGramTileRows, r[j + n], sum[c]);
      divisors[c].divide(sum[c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[c][v].store(x + (j + c) * kGramTileRows + v * kLanes);
    }
  }
};

/// Eight columns on the diagonal of R: their triangle, the same with its rows over its diagonal and
/// the inverse of that, row by row, and reciprocals of the diagonal.
struct Eight {
  double r[kEightColumns][kEightColumns] = {};
  double u[kEightColumns][kEightColumns] = {};
  double t[kEightColumns][kEightColumns] = {};
  double reciprocal[kEightColumns] = {};
  bool good = true;

  Eight() = default;
  /// The columns from `first` on of R (packed, n × n); ones on the diagonal where there are none.
  Eight(const double* factor, std::int64_t n, std::int64_t first) {
    for (int j = 0; j < kEightColumns; ++j) {
      const bool there = first + j < n;
      for (int i = 0; i < j && there; ++i) r[i][j] = factor[first + i + (first + j) * n];
      r[j][j] = there ? factor[first + j + (first + j) * n] : 1.0;
    }
    for (int i = 0; i < kEightColumns; ++i) {
      for (int j = i; j < kEightColumns; ++j) u[i][j] = i == j ? 1.0 : r[i][j] / r[i][i];
      reciprocal[i] = 1 / r[i][i];
      good = good && divides_well(r[i][i]);
    }
    for (int i = 0; i < kEightColumns; ++i)
      good = invert_row(
                 i, [this](int k, int j) { return u[k][j]; }, t[i]) &&
             good;
  }
};

/// X ← X·R⁻¹ by eights of columns, all in fp64, four vectors of rows at a time.
struct SolveEights {
  [[gnu::always_inline]] static void run(double* x, std::int64_t n, const double* r,
                                         const Divisor* divisors, const Eight* eights,
                                         const Ahead& ahead) {
    for (int k = 0; k < kGramTileRows; k += kVectors * kLanes) {
      ahead.fetch(k, k + kVectors * kLanes, kGramTileRows);
      for (std::int64_t first = 0; first < n; first += kEightColumns) {
        const std::int64_t count = std::min<std::int64_t>(kEightColumns, n - first);
        update(x + k, first, count, r, n);
        double* here = x + k + first * kGramTileRows;
        const Eight& eight = eights[first / kEightColumns];
        eight.good ? correct(here, static_cast<int>(count), eight)
                   : substitute(here, static_cast<int>(count), eight, divisors + first);
      }
    }
  }

 private:
  static constexpr int kVectors = 4;

  [[gnu::always_inline]] static void load(const double* x, Lanes (&to)[kVectors]) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) to[v] = Lanes::load(x + v * kLanes);
  }
  [[gnu::always_inline]] static void store(const Lanes (&from)[kVectors], double* x) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) from[v].store(x + v * kLanes);
  }
  /// sum ← sum + x·r, or − x·r.
  template <bool kMinus>
  [[gnu::always_inline]] static void add(const double* x, double r, Lanes (&sum)[kVectors]) {
    const Lanes factor(r);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Lanes value = Lanes::load(x + v * kLanes);
      sum[v] = fused(kMinus ? -value : value, factor, sum[v]);
    }
  }
  /// The columns first … first + count − 1 lose those before them, two at a time.
  [[gnu::always_inline]] static void update(double* x, std::int64_t first, std::int64_t count,
                                            const double* r, std::int64_t n) {
    if (first == 0) return;
    for (std::int64_t j = first; j < first + count; j += 2) {
      const bool two = j + 1 < first + count;
      Lanes one[kVectors];
      Lanes other[kVectors];
      load(x + j * kGramTileRows, one);
      load(x + (two ? j + 1 : j) * kGramTileRows, other);
      const double* right = r + (two ? j + 1 : j) * n;
      for (std::int64_t i = 0; i < first; ++i) {
        add<true>(x + i * kGramTileRows, r[i + j * n], one);
        add<true>(x + i * kGramTileRows, right[i], other);
      }
      store(one, x + j * kGramTileRows);
      if (two) store(other, x + (j + 1) * kGramTileRows);
    }
  }
  /// to_j ← from_j + Σ_{k<=j} x_k·a_kj, or −; where there is no `from`, it is 0.
  template <bool kMinus>
  [[gnu::always_inline]] static void multiply(const double* x, std::int64_t ld, int count,
                                              const double (&a)[kEightColumns][kEightColumns],
                                              const double* from, std::int64_t from_ld, double* to,
                                              std::int64_t to_ld) {
    for (int j = 0; j < count; ++j) {
      Lanes sum[kVectors] = {};
      if (from != nullptr) load(from + j * from_ld, sum);
      for (int k = 0; k <= j; ++k) add<kMinus>(x + k * ld, a[k][j], sum);
      store(sum, to + j * to_ld);
    }
  }
  [[gnu::always_inline]] static void correct(double* y, int count, const Eight& eight) {
    constexpr int kRows = kVectors * kLanes;
    double q[kEightColumns * kRows];
    double e[kEightColumns * kRows];
    multiply<false>(y, kGramTileRows, count, eight.t, nullptr, 0, q, kRows);
    multiply<true>(q, kRows, count, eight.u, y, kGramTileRows, e, kRows);
    multiply<false>(e, kRows, count, eight.t, q, kRows, y, kGramTileRows);
    for (int j = 0; j < count; ++j) {
      Lanes column[kVectors];
      load(y + j * kGramTileRows, column);
      const Lanes by(eight.reciprocal[j]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) column[v] = rounded_product(column[v], by);
      store(column, y + j * kGramTileRows);
    }
  }
  [[gnu::always_inline]] static void substitute(double* y, int count, const Eight& eight,
                                                const Divisor* divisors) {
    for (int j = 0; j < count; ++j) {
      Lanes sum[kVectors];
      load(y + j * kGramTileRows, sum);
      for (int i = 0; i < j; ++i) add<true>(y + i * kGramTileRows, eight.r[i][j], sum);
      divisors[j].divide(sum);
      store(sum, y + j * kGramTileRows);
    }
  }
};

/// The same in dd; `low` takes the low parts of X·R⁻¹, as x the high ones. A step of a sum waits
/// more than twenty cycles for the one before it, in which four vectors do theirs. divisors: of the
/// high parts of the diagonal.
struct SolveWide {
  [[gnu::always_inline]] static void run(double* x, double* low, std::int64_t n,
                                         const DoubleDouble* r, const Divisor* divisors,
                                         const Ahead& ahead) {
    using Wide = DoubleDoubleOf<Lanes>;
    constexpr int kVectors = 4;
    for (int k = 0; k < kGramTileRows; k += kVectors * kLanes) {
      ahead.fetch(k, k + kVectors * kLanes, kGramTileRows);
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = j * kGramTileRows + k;
        Wide sum[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sum[v].hi = Lanes::load(x + at + v * kLanes);
        for (std::int64_t i = 0; i < j; ++i) {
          const DoubleDouble& rij = r[i + j * n];
          const Wide factor{Lanes(rij.hi), Lanes(rij.lo)};
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            const std::int64_t from = i * kGramTileRows + k + v * kLanes;
            const Wide q{Lanes::load(x + from), Lanes::load(low + from)};
            sum[v] = subtract_product(sum[v], q, factor);
          }
        }
        // The quotient of double_double.hpp, several at a time.
        const Wide diagonal{Lanes(r[j + j * n].hi), Lanes(r[j + j * n].lo)};
        Lanes first[kVectors];
        Lanes second[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) first[v] = sum[v].hi;
        divisors[j].divide(first);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          second[v] = subtract_product(sum[v], Wide(first[v]), diagonal).hi;
        divisors[j].divide(second);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const Wide q = fast_two_sum(first[v], second[v]);
          q.hi.store(x + at + v * kLanes);
          q.lo.store(low + at + v * kLanes);
        }
      }
    }
  }
};

}  // namespace strata::tile
