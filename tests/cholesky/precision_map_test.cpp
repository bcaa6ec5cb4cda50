// PrecisionMap: against its formulas, written once more as plain loops, on random norms and on
// norms that lie on the borders between precisions.

#include "cholesky/precision_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/random.hpp"
#include "cholesky/tile_formats.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

using P = TilePrecision;
using Operands = std::array<P, 2>;

constexpr std::array kAll{P::fp64, P::fp32, P::fp16, P::fp8, P::none};

/// Norms that fall with the distance from the diagonal, over many orders of magnitude.
TileNorms random_norms(std::int64_t tiles, std::int64_t tile, std::uint64_t seed) {
  TileNorms norms;
  norms.tiles = tiles;
  norms.tile = tile;
  std::uint64_t next = 0;
  const auto uniform = [&] { return random_uniform(seed, next++); };
  const double decay = 4 * uniform();
  double square = 0;
  for (std::int64_t j = 0; j < tiles; ++j) {
    for (std::int64_t i = j; i < tiles; ++i) {
      const double far = std::exp(-decay * static_cast<double>(i - j));
      norms.matrix.push_back(far * std::exp(4 * uniform() - 2));
      norms.factor.push_back(far * far * std::exp(6 * uniform() - 3));
      norms.largest.push_back(norms.factor.back() * (0.1 + 0.9 * uniform()));
      square += (i == j ? 1 : 2) * norms.matrix.back() * norms.matrix.back();
    }
  }
  norms.frobenius = std::sqrt(square);
  norms.smallest_pivot = std::exp(-20 * uniform());
  return norms;
}

/// What precision_map.hpp and include/strata/mixed_precision.hpp say, tile by tile.
class Oracle {
 public:
  Oracle(const TileNorms& norms, const MixedPrecision& asked)
      : norms_(norms),
        asked_(asked),
        n_(static_cast<double>(norms.tiles)),
        b_(static_cast<double>(norms.tile)),
        by_factor_(asked.rule == PrecisionRule::factor),
        tau_(asked.accuracy * norms.frobenius / n_) {}

  [[nodiscard]] P stored(std::int64_t i, std::int64_t j) const {
    if (i == j) return P::fp64;
    if (!by_factor_)
      return coarsest(
          [&](double u) { return a(i, j) * n_ / norms_.frobenius < asked_.accuracy / u; });
    const double size = l(i, j) * l(j, j);
    if (size < tau_ && !asked_.keep_all) return P::none;
    return coarsest([&](double u) { return u * size / std::sqrt(b_) < tau_ / 2; });
  }

  [[nodiscard]] Operands product(std::int64_t i, std::int64_t j, std::int64_t k) const {
    const Operands kept{stored(i, k), stored(j, k)};
    if (stored(i, j) == P::none || kept[0] == P::none || kept[1] == P::none)
      return {P::none, P::none};
    P at_most = P::fp64;
    if (by_factor_) {
      const double size = l(i, k) * l(j, k);
      if (size * n_ < tau_ && !asked_.keep_all) return {P::none, P::none};
      if (i != j)
        at_most = coarsest([&](double u) { return u * size * std::sqrt(n_ / b_) < tau_ / 2; });
    } else if (i != j) {
      if (asked_.product == ProductRule::target) at_most = stored(i, j);
      if (asked_.product == ProductRule::lower) at_most = coarser(kept[0], kept[1]);
      if (asked_.product == ProductRule::higher) at_most = kept[0] < kept[1] ? kept[0] : kept[1];
    }
    return {coarser(at_most, kept[0]), coarser(at_most, kept[1])};
  }

  [[nodiscard]] bool wide(std::int64_t i, std::int64_t j) const {
    if (i == j || stored(i, j) == P::fp64) return true;
    if (!asked_.allowed[1] && !asked_.allowed[2] && !asked_.allowed[3]) return true;
    if (!by_factor_) return false;
    if (!(std::ldexp(a(i, j), -24) < tau_ / 2)) return true;
    for (std::int64_t k = 0; k < j; ++k) {
      const Operands operands = product(i, j, k);
      if (operands[0] == P::fp64 || operands[1] == P::fp64) return true;
    }
    return false;
  }

  /// ‖A − L·Lᵀ‖_F over ‖A‖_F where tiles of L have these norms: each rounding, each tile and the
  /// sum of the products that are left out of one on their own.
  [[nodiscard]] double error(const TileNorms& met) const {
    constexpr std::array kUnits{0x1p-53, 0x1p-24, 0x1p-11, 0x1p-4};
    const auto norm = [&](std::int64_t i, std::int64_t j) { return met.factor[met.at(i, j)]; };
    double total = 0;
    for (std::int64_t i = 0; i < met.tiles; ++i) {
      for (std::int64_t j = 0; j < met.tiles; ++j) {
        const std::int64_t r = std::max(i, j);
        const std::int64_t c = std::min(i, j);
        if (stored(r, c) == P::none) {
          total += std::pow(norm(r, c) * norm(c, c), 2);
          continue;
        }
        const auto unit = [&](P p) { return kUnits[static_cast<std::size_t>(p)] / std::sqrt(b_); };
        total += std::pow(unit(stored(r, c)) * norm(r, c) * norm(c, c), 2);
        double left_out = 0;
        for (std::int64_t k = 0; k < c; ++k) {
          const double size = norm(r, k) * norm(c, k);
          const auto [p, q] = product(r, c, k);
          if (p == P::none) left_out += size;
          // What both operands enter in, where one was kept finer.
          const P used = p < q ? p : q;
          const P kept = stored(r, k) < stored(c, k) ? stored(r, k) : stored(c, k);
          if (p != P::none && used > kept) total += std::pow(unit(used) * size, 2);
        }
        total += left_out * left_out;
      }
    }
    return std::sqrt(total) / met.frobenius;
  }

  /// The largest entry of a tile that is kept in fp8, or that a product takes in fp8.
  [[nodiscard]] double largest_in_fp8() const {
    double most = 0;
    const auto see = [&](P p, std::int64_t i, std::int64_t j) {
      if (p == P::fp8) most = std::max(most, norms_.largest[norms_.at(i, j)]);
    };
    for (std::int64_t j = 0; j < norms_.tiles; ++j) {
      for (std::int64_t i = j; i < norms_.tiles; ++i) {
        see(stored(i, j), i, j);
        for (std::int64_t k = 0; k < j; ++k) {
          see(product(i, j, k)[0], i, k);
          see(product(i, j, k)[1], j, k);
        }
      }
    }
    return most;
  }

 private:
  static P coarser(P a, P b) { return a < b ? b : a; }
  [[nodiscard]] double a(std::int64_t i, std::int64_t j) const {
    return norms_.matrix[norms_.at(i, j)];
  }
  [[nodiscard]] double l(std::int64_t i, std::int64_t j) const {
    return norms_.factor[norms_.at(i, j)];
  }
  template <class F>
  [[nodiscard]] P coarsest(F&& suits) const {
    if (asked_.allowed[3] && suits(std::ldexp(1.0, -4))) return P::fp8;
    if (asked_.allowed[2] && suits(std::ldexp(1.0, -11))) return P::fp16;
    if (asked_.allowed[1] && suits(std::ldexp(1.0, -24))) return P::fp32;
    return P::fp64;
  }

  const TileNorms& norms_;
  MixedPrecision asked_;
  double n_;
  double b_;
  bool by_factor_;
  double tau_;
};

/// The exponent e is the largest with 2^e·largest <= most.
void expect_exponent(int e, double largest, double most) {
  if (largest == 0) {
    EXPECT_EQ(e, 0);
    return;
  }
  EXPECT_LE(std::ldexp(largest, e), most * (1 + 1e-15));
  EXPECT_GT(std::ldexp(largest, e + 1), most * (1 - 1e-15));
}

/// Compares a map with the oracle; counts the tiles of each precision.
void expect_as_the_formulas_say(const TileNorms& norms, const MixedPrecision& asked,
                                std::array<std::int64_t, kTilePrecisions>& seen) {
  const PrecisionMap map(norms, asked);
  const Oracle oracle(norms, asked);
  std::array<std::int64_t, kTilePrecisions> tiles{};
  std::array<double, kTilePrecisions> products{};
  double largest = 0;
  for (std::int64_t j = 0; j < norms.tiles; ++j) {
    for (std::int64_t i = j; i < norms.tiles; ++i) {
      ASSERT_EQ(map.stored(i, j), oracle.stored(i, j)) << i << "," << j;
      ASSERT_EQ(map.wide(i, j), oracle.wide(i, j)) << i << "," << j;
      largest = std::max(largest, norms.largest[norms.at(i, j)]);
      if (i > j) ++tiles[static_cast<std::size_t>(map.stored(i, j))];
      for (std::int64_t k = 0; k < j; ++k) {
        const Operands operands = map.product(i, j, k);
        ASSERT_EQ(operands, oracle.product(i, j, k)) << i << "," << j << "," << k;
        products[static_cast<std::size_t>(std::min(operands[0], operands[1]))] +=
            i == j ? 0.5 : 1.0;
      }
    }
  }
  EXPECT_EQ(map.tile_counts(), tiles);
  EXPECT_EQ(map.product_counts(), products);
  expect_exponent(map.fp16_exponent(), largest, 16384);
  expect_exponent(map.fp8_exponent(), oracle.largest_in_fp8(), 448.0 / 4);
  expect_exponent(map.sum_exponent(), largest * largest, 16384);
  expect_exponent(map.inverse_exponent(), 1 / std::sqrt(norms.smallest_pivot), 256);
  EXPECT_TRUE(map.same_as(PrecisionMap(norms, asked)));
  EXPECT_EQ(map.finer_than(map), 0);
  for (std::size_t p = 0; p < seen.size(); ++p) seen[p] += tiles[p];
}

TEST(PrecisionMap, TheErrorOfItsOwnNormsIsWithinTheAccuracyAndGrowsWithThem) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const TileNorms norms = random_norms(1 + static_cast<std::int64_t>(seed % 9), 32, seed);
    for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
      for (const double accuracy : {1e-3, 1e-5, 1e-8}) {
        const MixedPrecision asked{.accuracy = accuracy, .rule = rule};
        const PrecisionMap map(norms, asked);
        const Oracle oracle(norms, asked);
        const double error = map.error_with(norms);
        EXPECT_NEAR(error, oracle.error(norms), 1e-12 * error) << seed;
        // Half of the tolerance for tiles, half for products, all of it for what is left out.
        if (rule == PrecisionRule::factor) {
          EXPECT_LE(error, std::sqrt(1.5) * accuracy) << seed;
        }
        TileNorms met = norms;
        for (std::size_t at = 0; at < met.factor.size(); ++at)
          met.factor[at] *= at % 3 == 0 ? 10 : 1;
        EXPECT_NEAR(map.error_with(met), oracle.error(met), 1e-12 * oracle.error(met)) << seed;
        EXPECT_GE(map.error_with(met), error) << seed;
      }
    }
  }
}

TEST(PrecisionMap, IsThatOfTheFormulasForAnyNormsAndAnythingAsked) {
  std::array<std::int64_t, kTilePrecisions> seen{};
  std::uint64_t seed = 0;
  for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
    for (const ProductRule product :
         {ProductRule::target, ProductRule::lower, ProductRule::higher}) {
      for (unsigned set = 0; set < 8; ++set) {
        for (const bool keep_all : {false, true}) {
          for (const std::int64_t tiles : {1, 2, 6, 11}) {
            MixedPrecision asked;
            asked.accuracy = std::pow(10.0, -3 - 9 * random_uniform(77, seed));
            asked.rule = rule;
            asked.product = product;
            asked.allowed = {true, (set & 1U) != 0, (set & 2U) != 0, (set & 4U) != 0};
            asked.keep_all = keep_all;
            const std::int64_t tile = std::int64_t{1} << (seed % 12);
            SCOPED_TRACE("seed " + std::to_string(seed));
            expect_as_the_formulas_say(random_norms(tiles, tile, seed), asked, seen);
            if (HasFatalFailure()) return;
            ++seed;
          }
        }
      }
    }
  }
  for (const P p : kAll) EXPECT_GT(seen[static_cast<std::size_t>(p)], 200) << to_string(p);
}

/// Four tiles in each direction, of order 16, all norms 0 but those of the diagonal: τ = ε = 2⁻²⁰.
TileNorms plain_norms() {
  TileNorms norms;
  norms.tiles = 4;
  norms.tile = 16;
  norms.frobenius = 4;
  norms.matrix.assign(10, 0.0);
  norms.factor.assign(10, 0.0);
  norms.largest.assign(10, 0.0);
  for (std::int64_t k = 0; k < 4; ++k) {
    for (auto* all : {&norms.matrix, &norms.factor, &norms.largest}) (*all)[norms.at(k, k)] = 1;
  }
  return norms;
}
constexpr double kMapAccuracy = 0x1p-20;

MixedPrecision asking(PrecisionRule rule) {
  MixedPrecision asked;
  asked.accuracy = kMapAccuracy;
  asked.rule = rule;
  return asked;
}

TEST(PrecisionMap, BordersBelongToTheFinerPrecision) {
  const auto below = [](double x) { return std::nextafter(x, 0.0); };
  const auto stored = [](double norm, PrecisionRule rule, bool keep_all = false) {
    TileNorms norms = plain_norms();
    auto& of = rule == PrecisionRule::factor ? norms.factor : norms.matrix;
    of[norms.at(2, 0)] = norm;
    MixedPrecision asked = asking(rule);
    asked.keep_all = keep_all;
    return PrecisionMap(norms, asked).stored(2, 0);
  };
  constexpr auto kFactor = PrecisionRule::factor;
  EXPECT_EQ(stored(0, kFactor), P::none);
  EXPECT_EQ(stored(below(0x1p-20), kFactor), P::none);
  EXPECT_EQ(stored(below(0x1p-20), kFactor, true), P::fp8);
  EXPECT_EQ(stored(0x1p-20, kFactor), P::fp8);
  EXPECT_EQ(stored(below(0x1p-15), kFactor), P::fp8);
  EXPECT_EQ(stored(0x1p-15, kFactor), P::fp16);
  EXPECT_EQ(stored(below(0x1p-8), kFactor), P::fp16);
  EXPECT_EQ(stored(0x1p-8, kFactor), P::fp32);
  EXPECT_EQ(stored(below(0x1p5), kFactor), P::fp32);
  EXPECT_EQ(stored(0x1p5, kFactor), P::fp64);
  constexpr auto kPaper = PrecisionRule::paper;
  EXPECT_EQ(stored(0, kPaper), P::fp8) << "it leaves nothing out";
  EXPECT_EQ(stored(below(0x1p-16), kPaper), P::fp8);
  EXPECT_EQ(stored(0x1p-16, kPaper), P::fp16);
  EXPECT_EQ(stored(below(0x1p-9), kPaper), P::fp16);
  EXPECT_EQ(stored(0x1p-9, kPaper), P::fp32);
  EXPECT_EQ(stored(below(16), kPaper), P::fp32);
  EXPECT_EQ(stored(16, kPaper), P::fp64);
}

TEST(PrecisionMap, AProductIsLeftOutOnlyIfAllOfItsKindMayBe) {
  TileNorms norms = plain_norms();
  norms.factor[norms.at(2, 1)] = 1;        // the target, in fp32
  norms.factor[norms.at(1, 0)] = 0x1p-8;   // in fp32
  norms.factor[norms.at(2, 0)] = 0x1p-14;  // in fp16: size·N_t = 2⁻²⁰
  const PrecisionMap map(norms, asking(PrecisionRule::factor));
  EXPECT_EQ(map.product(2, 1, 0), (Operands{P::fp8, P::fp8})) << "2⁻⁴·2⁻²²·½ < 2⁻²¹";
  norms.factor[norms.at(2, 0)] = std::nextafter(0x1p-14, 0.0);
  const PrecisionMap less(norms, asking(PrecisionRule::factor));
  EXPECT_EQ(less.product(2, 1, 0), (Operands{P::none, P::none}));
  EXPECT_EQ(less.stored(2, 0), P::fp16) << "the tile itself is kept";
  EXPECT_EQ(less.product(2, 2, 0), (Operands{P::none, P::none})) << "2⁻²⁸·4 < τ";
  EXPECT_EQ(less.product(1, 1, 0), (Operands{P::fp32, P::fp32})) << "as it is kept";
  EXPECT_FALSE(less.same_as(map)) << "they differ in one product";
  EXPECT_FALSE(map.same_as(less));
  EXPECT_EQ(map.finer_than(less), 2) << "both operands of the product";
  EXPECT_EQ(less.finer_than(map), 0);
}

TEST(PrecisionMap, ATileThatIsLeftOutTakesItsProductsWithIt) {
  TileNorms norms = plain_norms();
  for (const auto& [i, j] : {std::pair{1, 0}, {2, 0}, {3, 0}}) norms.factor[norms.at(i, j)] = 1;
  const PrecisionMap map(norms, asking(PrecisionRule::factor));
  ASSERT_EQ(map.stored(2, 1), P::none);
  EXPECT_EQ(map.product(2, 1, 0), (Operands{P::none, P::none})) << "nobody asks for the sum";
  EXPECT_NE(map.product(2, 2, 0)[0], P::none);
  EXPECT_EQ(map.product(3, 3, 2), (Operands{P::none, P::none}));
}

/// Tile by tile, product by product.
bool says_the_same(const PrecisionMap& a, const PrecisionMap& b) {
  bool same = a.fp16_exponent() == b.fp16_exponent() && a.fp8_exponent() == b.fp8_exponent() &&
              a.sum_exponent() == b.sum_exponent() && a.inverse_exponent() == b.inverse_exponent();
  for (std::int64_t j = 0; j < a.tiles(); ++j) {
    for (std::int64_t i = j; i < a.tiles(); ++i) {
      same = same && a.stored(i, j) == b.stored(i, j) && a.wide(i, j) == b.wide(i, j);
      for (std::int64_t k = 0; k < j; ++k) same = same && a.product(i, j, k) == b.product(i, j, k);
    }
  }
  return same;
}

TEST(PrecisionMap, FinerCountsTilesAndThoseThatProductsRoundedFurther) {
  TileNorms norms = plain_norms();
  norms.factor[norms.at(1, 0)] = 0x1p-7;
  norms.factor[norms.at(3, 0)] = 0x1p-18;
  const MixedPrecision asked = asking(PrecisionRule::factor);
  const PrecisionMap before(norms, asked);
  TileNorms larger = norms;
  larger.factor[norms.at(3, 0)] = 0x1p-12;
  const PrecisionMap after(larger, asked);
  EXPECT_EQ(before.stored(3, 0), P::fp8);
  EXPECT_EQ(after.stored(3, 0), P::fp16);
  EXPECT_EQ(after.finer_than(before), 1);
  EXPECT_EQ(before.finer_than(after), 0);
  larger.factor[norms.at(3, 1)] = 0x1p-20;
  EXPECT_EQ(PrecisionMap(larger, asked).finer_than(before), 3)
      << "and one that was left out, and (1,0), whose product with (3,0) nobody asked for";

  // By the definition, on random norms.
  int identical = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const TileNorms random = random_norms(7, 32, seed);
    MixedPrecision finer = asked;
    finer.accuracy = kMapAccuracy / static_cast<double>(1 << (seed % 9));
    const PrecisionMap here(random, finer);
    const PrecisionMap there(random, asked);
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < 7; ++k) {
      for (std::int64_t t = k + 1; t < 7; ++t) {  // tile (t, k), in every product it enters
        bool counts = here.stored(t, k) < there.stored(t, k);
        for (std::int64_t o = k + 1; o < 7; ++o) {
          const std::int64_t i = std::max(t, o);
          const std::int64_t j = std::min(t, o);
          if (here.stored(i, j) == P::none) continue;
          for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
            if ((side == 0 ? i : j) != t) continue;
            const P then = there.product(i, j, k)[side];
            counts = counts || (here.product(i, j, k)[side] < then && there.stored(t, k) < then);
          }
        }
        count += counts ? 1 : 0;
      }
    }
    EXPECT_EQ(here.finer_than(there), count) << seed;
    EXPECT_EQ(there.finer_than(here), 0) << "a coarser accuracy makes nothing finer";
    EXPECT_EQ(here.same_as(there), says_the_same(here, there)) << seed;
    identical += here.same_as(there) ? 1 : 0;
  }
  EXPECT_GT(identical, 5);
  EXPECT_LT(identical, 55);
}

TEST(PrecisionMap, TheSameMapNeedsTheSameScales) {
  TileNorms norms = plain_norms();
  norms.factor[norms.at(2, 0)] = 0x1p-18;
  norms.largest[norms.at(2, 0)] = 0x1p-20;
  const MixedPrecision asked = asking(PrecisionRule::factor);
  const PrecisionMap map(norms, asked);
  ASSERT_EQ(map.stored(2, 0), P::fp8);
  EXPECT_EQ(map.fp8_exponent(), 26);  // 112 = 1.75·2⁶
  EXPECT_EQ(map.fp16_exponent(), 14);
  TileNorms others = norms;
  others.largest[norms.at(2, 0)] = 0x1p-19;
  EXPECT_EQ(PrecisionMap(others, asked).fp8_exponent(), 25);
  EXPECT_FALSE(PrecisionMap(others, asked).same_as(map));
  others = norms;
  others.largest[norms.at(0, 0)] = 2;
  EXPECT_EQ(PrecisionMap(others, asked).fp16_exponent(), 13);
  EXPECT_FALSE(PrecisionMap(others, asked).same_as(map));
  others = norms;
  others.smallest_pivot = 0x1p-2;
  EXPECT_EQ(map.inverse_exponent(), 8);
  EXPECT_EQ(PrecisionMap(others, asked).inverse_exponent(), 7);
  EXPECT_FALSE(PrecisionMap(others, asked).same_as(map));
  others = norms;
  others.factor[norms.at(2, 0)] *= 1.5;  // still fp8
  EXPECT_TRUE(PrecisionMap(others, asked).same_as(map)) << "norms may differ";
  EXPECT_FALSE(map.same_as(PrecisionMap(random_norms(5, 16, 1), asked)));
}

TEST(PrecisionMap, SumsInSingleNeedAFirstValueThatMayBeRounded) {
  TileNorms norms = plain_norms();
  norms.factor[norms.at(2, 0)] = norms.factor[norms.at(2, 1)] = 0x1p-10;  // in fp16
  norms.matrix[norms.at(2, 0)] = 8;                                       // 2⁻²⁴·8 = τ/2
  norms.matrix[norms.at(2, 1)] = std::nextafter(8.0, 0.0);
  const PrecisionMap map(norms, asking(PrecisionRule::factor));
  EXPECT_EQ(map.stored(2, 0), P::fp16);
  EXPECT_TRUE(map.wide(2, 0));
  EXPECT_FALSE(map.wide(2, 1));
  for (std::int64_t k = 0; k < 4; ++k) EXPECT_TRUE(map.wide(k, k));
  MixedPrecision only = asking(PrecisionRule::factor);
  only.allowed = {true, false, false, false};
  EXPECT_TRUE(PrecisionMap(norms, only).wide(2, 1)) << "nothing but FP64 may be used";
}

TEST(PrecisionMap, WithoutAnAccuracyIsFp64) {
  for (const std::int64_t tiles : {0, 1, 5}) {
    const PrecisionMap map(random_norms(tiles, 8, 3), MixedPrecision{});
    EXPECT_EQ(map.tile_counts()[0], tiles * (tiles - 1) / 2);
    for (std::int64_t j = 0; j < tiles; ++j) {
      for (std::int64_t i = j; i < tiles; ++i) {
        EXPECT_EQ(map.stored(i, j), P::fp64);
        EXPECT_TRUE(map.wide(i, j));
      }
    }
  }
}

TEST(PrecisionMap, OfNothingIsEmpty) {
  const PrecisionMap map(TileNorms{}, asking(PrecisionRule::factor));
  EXPECT_EQ(map.tiles(), 0);
  EXPECT_EQ(map.tile_counts(), (std::array<std::int64_t, kTilePrecisions>{}));
}

TEST(TileFormats, GiveEachTileTheElementOfItsPrecision) {
  TileNorms norms = plain_norms();
  norms.factor[norms.at(1, 0)] = 1;        // fp32
  norms.factor[norms.at(2, 0)] = 0x1p-10;  // fp16
  norms.factor[norms.at(3, 0)] = 0x1p-18;  // fp8
  norms.factor[norms.at(2, 1)] = 64;       // fp64
  const auto map = std::make_shared<const PrecisionMap>(norms, asking(PrecisionRule::factor));
  for (const Element single : {Element::fp32, Element::fp16x2}) {
    const TileFormats formats{map, single};
    EXPECT_EQ(formats.elements(), (std::vector{Element::fp64, single, Element::fp16, Element::fp8,
                                               Element::fp64, Element::fp64, Element::none,
                                               Element::fp64, Element::none, Element::fp64}));
    EXPECT_FALSE(formats.exists(3, 1));
    EXPECT_TRUE(formats.exists(3, 0));
  }
  EXPECT_TRUE(TileFormats{}.elements().empty());
  EXPECT_TRUE(TileFormats{}.exists(7, 3));
}

template <class F>
void expect_refusal(const std::string& part, F&& call) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(MixedPrecision, RefusesAccuraciesAndSetsThatNameNoFactor) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1e-6, 9e-13, 1.1e-3, 1.0, kNaN, double{INFINITY}, 1e-320}) {
    MixedPrecision asked;
    asked.accuracy = bad;
    expect_refusal("an accuracy is between 1e-12 and 1e-3", [&] { check_mixed_precision(asked); });
    expect_refusal("accuracy", [&] { (void)PrecisionMap(plain_norms(), asked); });
  }
  for (const double good : {0.0, 1e-12, 1e-3, 1e-6}) {
    MixedPrecision asked;
    asked.accuracy = good;
    EXPECT_NO_THROW(check_mixed_precision(asked));
    EXPECT_EQ(asked.on(), good > 0);
  }
  MixedPrecision asked = asking(PrecisionRule::factor);
  asked.allowed = {false, true, true, true};
  expect_refusal("without fp64", [&] { check_mixed_precision(asked); });
  expect_refusal("without fp64", [&] { (void)PrecisionMap(plain_norms(), asked); });
}

TEST(MixedPrecision, RefusesNormsThatAreNotOneForEachTile) {
  for (const int which : {0, 1, 2}) {
    TileNorms norms = plain_norms();
    (which == 0 ? norms.matrix : which == 1 ? norms.factor : norms.largest).pop_back();
    expect_refusal("norms for 10 tiles",
                   [&] { (void)PrecisionMap(norms, asking(PrecisionRule::factor)); });
  }
}

TEST(MixedPrecision, ParsesSetsOfPrecisions) {
  using Set = std::array<bool, 4>;
  EXPECT_EQ(parse_precisions("fp64"), (Set{true, false, false, false}));
  EXPECT_EQ(parse_precisions("fp64,fp32"), (Set{true, true, false, false}));
  EXPECT_EQ(parse_precisions("fp8,fp64,fp16"), (Set{true, false, true, true}));
  EXPECT_EQ(parse_precisions("fp64,fp64"), (Set{true, false, false, false}));
  for (const char* bad : {"", "fp65", "fp64,", ",fp64", "fp64,,fp32", "fp64 ,fp32", "none,fp64",
                          "FP64", "fp64;fp32", "fp"})
    expect_refusal(std::string("'") + bad + "' is no set of precisions",
                   [&] { (void)parse_precisions(bad); });
  expect_refusal("'fp32,fp16' are without fp64", [] { (void)parse_precisions("fp32,fp16"); });
}

TEST(MixedPrecision, UnitRoundoffsAreThoseOfTheFormats) {
  const auto roundoff = [](P p) { return unit_roundoff(p); };
  EXPECT_EQ(roundoff(P::fp64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(roundoff(P::fp32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(roundoff(P::fp16), std::ldexp(1.0, -11));
  EXPECT_EQ(roundoff(P::fp8), std::ldexp(1.0, -4));
  EXPECT_EQ(roundoff(P::none), 1);
}

}  // namespace
}  // namespace strata
