// Method: by screening, tiles of L far from the diagonal are small even where those of A are not,
// and what rounding a tile of L costs in A = L·Lᵀ is bounded by its own norm times that of the
// tiles it is multiplied with. So the rule `factor` looks at L, whose norms a pilot factorization
// gives, and not at A.

#include "cholesky/precision_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "kernels/dense/tile_scales.hpp"
#include "scalar/fp8.hpp"

namespace strata {
namespace {

constexpr std::array<TilePrecision, 4> kFinestFirst{TilePrecision::fp64, TilePrecision::fp32,
                                                    TilePrecision::fp16, TilePrecision::fp8};
/// The share of the tolerance that storing may use, and that multiplying may use.
constexpr double kShare = 0.5;

/// Entries are expected this much below the largest finite number, at least: estimates of the
/// largest entry come from a sample.
constexpr double kFp8Margin = 4;
/// Products of two such entries, added up over a tile, stay far from the largest float.
constexpr double kFp16Max = 16384;

/// Entries of an inverse are about as large as the smallest pivot says; how much larger is not
/// known, and two planes of binary16 have room above and below.
constexpr double kInverseMax = 256;

/// The exponent of the largest power of two s with s·largest <= max.
int exponent_below(double max, double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  return std::clamp(static_cast<int>(std::floor(std::log2(max / largest))), -100, 100);
}

}  // namespace

const char* to_string(TilePrecision precision) noexcept {
  constexpr std::array<const char*, kTilePrecisions> names{"fp64", "fp32", "fp16", "fp8", "none"};
  return names[static_cast<std::size_t>(precision)];
}

double unit_roundoff(TilePrecision precision) noexcept {
  constexpr std::array<double, kTilePrecisions> values{0x1p-53, 0x1p-24, 0x1p-11, 0x1p-4, 1};
  return values[static_cast<std::size_t>(precision)];
}

std::array<bool, 4> parse_precisions(const std::string& names) {
  std::array<bool, 4> allowed{};
  std::size_t first = 0;
  while (first <= names.size()) {
    const std::size_t comma = std::min(names.find(',', first), names.size());
    const std::string name = names.substr(first, comma - first);
    const auto found = std::find_if(kFinestFirst.begin(), kFinestFirst.end(),
                                    [&](TilePrecision p) { return name == to_string(p); });
    require(found != kFinestFirst.end(), ErrorKind::misuse, "options",
            "'{}' is no set of precisions: name some of fp64,fp32,fp16,fp8", names);
    allowed[static_cast<std::size_t>(*found)] = true;
    first = comma + 1;
  }
  require(allowed[0], ErrorKind::misuse, "options",
          "the precisions '{}' are without fp64, which diagonal tiles need", names);
  return allowed;
}

void check_mixed_precision(const MixedPrecision& mixed) {
  require(mixed.accuracy == 0 || (mixed.accuracy >= 1e-12 && mixed.accuracy <= 1e-3),
          ErrorKind::misuse, "options",
          "an accuracy is between 1e-12 and 1e-3, or 0 for FP64, and not {}", mixed.accuracy);
  require(mixed.allowed[0], ErrorKind::misuse, "options",
          "a set of precisions without fp64, which diagonal tiles need");
}

PrecisionMap::PrecisionMap(TileNorms norms, const MixedPrecision& asked)
    : norms_(std::move(norms)), asked_(asked) {
  check_mixed_precision(asked);
  const auto count = static_cast<std::size_t>(norms_.tiles * (norms_.tiles + 1) / 2);
  stored_.assign(count, TilePrecision::fp64);
  wide_.assign(count, true);
  if (!asked.on() || norms_.tiles == 0) return;
  require(norms_.matrix.size() == count && norms_.factor.size() == count &&
              norms_.largest.size() == count,
          ErrorKind::misuse, "precision map", "{}, {} and {} norms for {} tiles",
          norms_.matrix.size(), norms_.factor.size(), norms_.largest.size(), count);
  tau_ = asked.accuracy * norms_.frobenius / static_cast<double>(norms_.tiles);
  asked.rule == PrecisionRule::factor ? store_by_factor() : store_by_matrix();
  choose_sums();
  choose_scales();
}

/// The coarsest allowed precision p with u_p·error_of_one < bound; fp64 if there is none.
TilePrecision PrecisionMap::lowest(double error_of_one, double bound) const {
  TilePrecision best = TilePrecision::fp64;
  for (const TilePrecision p : kFinestFirst) {
    if (!asked_.allowed[static_cast<std::size_t>(p)]) continue;
    if (unit_roundoff(p) * error_of_one < bound) best = p;
  }
  return best;
}

void PrecisionMap::store_by_factor() {
  const double root = std::sqrt(static_cast<double>(norms_.tile));
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    const double diagonal = norms_.factor[norms_.at(j, j)];
    for (std::int64_t i = j + 1; i < norms_.tiles; ++i) {
      const std::size_t at = norms_.at(i, j);
      const double size = norms_.factor[at] * diagonal;
      const bool negligible = !asked_.keep_all && size < tau_;
      stored_[at] = negligible ? TilePrecision::none : lowest(size / root, kShare * tau_);
    }
  }
}

void PrecisionMap::store_by_matrix() {
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j + 1; i < norms_.tiles; ++i) {
      const std::size_t at = norms_.at(i, j);
      stored_[at] = lowest(norms_.matrix[at], tau_);
    }
  }
}

TilePrecision PrecisionMap::finest_product(std::int64_t i, std::int64_t j, std::int64_t k) const {
  const TilePrecision a = stored(i, k);
  const TilePrecision b = stored(j, k);
  if (a == TilePrecision::none || b == TilePrecision::none) return TilePrecision::none;
  if (asked_.rule == PrecisionRule::paper) {
    if (i == j) return a;
    return asked_.product == ProductRule::target  ? stored(i, j)
           : asked_.product == ProductRule::lower ? std::max(a, b)
                                                  : std::min(a, b);
  }
  const double size = norms_.factor[norms_.at(i, k)] * norms_.factor[norms_.at(j, k)];
  const auto rows = static_cast<double>(norms_.tiles);
  if (!asked_.keep_all && size * rows < tau_) return TilePrecision::none;
  // A rounding error on the diagonal has one sign for all products: there what is kept is
  // multiplied exactly.
  if (i == j) return a;
  return lowest(size * std::sqrt(rows / static_cast<double>(norms_.tile)), kShare * tau_);
}

std::array<TilePrecision, 2> PrecisionMap::product(std::int64_t i, std::int64_t j,
                                                   std::int64_t k) const {
  const TilePrecision p = finest_product(i, j, k);
  if (p == TilePrecision::none || stored(i, j) == TilePrecision::none)
    return {TilePrecision::none, TilePrecision::none};
  return {std::max(p, stored(i, k)), std::max(p, stored(j, k))};
}

/// A sum is formed in FP32 if the rounding of its first value, A_ij, is within the tolerance, and
/// none of its products needs FP64.
void PrecisionMap::choose_sums() {
  const bool single = asked_.allowed[1] || asked_.allowed[2] || asked_.allowed[3];
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j + 1; i < norms_.tiles; ++i) {
      const std::size_t at = norms_.at(i, j);
      bool narrow = single && stored_[at] != TilePrecision::fp64;
      if (asked_.rule == PrecisionRule::factor) {
        narrow = narrow && 0x1p-24 * norms_.matrix[at] < kShare * tau_;
        for (std::int64_t k = 0; narrow && k < j; ++k) {
          const auto operands = product(i, j, k);
          narrow = operands[0] != TilePrecision::fp64 && operands[1] != TilePrecision::fp64;
        }
      }
      wide_[at] = !narrow;
    }
  }
}

void PrecisionMap::choose_scales() {
  double largest = 0;
  double largest_fp8 = 0;
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j; i < norms_.tiles; ++i) {
      const std::size_t at = norms_.at(i, j);
      largest = std::max(largest, norms_.largest[at]);
      if (i > j && stored_[at] == TilePrecision::fp8)
        largest_fp8 = std::max(largest_fp8, norms_.largest[at]);
    }
  }
  // A tile that is kept finer may enter a product in fp8, too.
  const auto enters_in_fp8 = [&](std::int64_t i, std::int64_t k) {
    for (std::int64_t j = k + 1; j < norms_.tiles; ++j) {
      if (j != i && product(std::max(i, j), std::min(i, j), k)[j < i ? 0 : 1] == TilePrecision::fp8)
        return true;
    }
    return false;
  };
  for (std::int64_t k = 0; k < norms_.tiles; ++k) {
    for (std::int64_t i = k + 1; i < norms_.tiles; ++i) {
      const double here = norms_.largest[norms_.at(i, k)];
      if (here > largest_fp8 && stored(i, k) < TilePrecision::fp8 && enters_in_fp8(i, k))
        largest_fp8 = here;
    }
  }
  fp16_exponent_ = exponent_below(kFp16Max, largest);
  fp8_exponent_ = exponent_below(Fp8::kMax / kFp8Margin, largest_fp8);
  // No entry of A, nor of what is left of it, is larger than the largest variance.
  sum_exponent_ = exponent_below(kFp16Max, largest * largest);
  inverse_exponent_ = exponent_below(kInverseMax, 1 / std::sqrt(norms_.smallest_pivot));
}

std::int64_t PrecisionMap::finer_than(const PrecisionMap& other) const {
  std::vector<bool> finer(stored_.size());
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j; i < norms_.tiles; ++i) {  // of diagonal tiles: their products
      const std::size_t at = norms_.at(i, j);
      if (stored_[at] < other.stored_[at]) finer[at] = true;
      if (stored_[at] == TilePrecision::none) continue;
      for (std::int64_t k = 0; k < j; ++k) {
        const auto here = product(i, j, k);
        const auto there = other.product(i, j, k);
        for (int o = 0; o < 2; ++o) {
          const auto p = static_cast<std::size_t>(o);
          if (here[p] < there[p] && other.stored(o == 0 ? i : j, k) < there[p])
            finer[norms_.at(o == 0 ? i : j, k)] = true;
        }
      }
    }
  }
  return std::count(finer.begin(), finer.end(), true);
}

/// The square of ‖A_ij − Σ_k L_ik·L_jkᵀ‖.
double PrecisionMap::tile_error(const TileNorms& norms, std::int64_t i, std::int64_t j) const {
  const auto size = [&](std::int64_t a, std::int64_t b, std::int64_t k) {
    return norms.factor[norms.at(a, k)] * norms.factor[norms.at(b, k)];
  };
  const double root = std::sqrt(static_cast<double>(norms.tile));
  const TilePrecision kept = i == j ? TilePrecision::fp64 : stored(i, j);
  double left_out = kept == TilePrecision::none ? size(i, j, j) : 0;
  double rounding = kept == TilePrecision::none ? 0 : unit_roundoff(kept) * size(i, j, j) / root;
  double squares = rounding * rounding;
  for (std::int64_t k = 0; k < j && kept != TilePrecision::none; ++k) {
    const TilePrecision p = finest_product(i, j, k);
    if (p == TilePrecision::none) {
      left_out += size(i, j, k);
    } else if (p > std::min(stored(i, k), stored(j, k))) {
      rounding = unit_roundoff(p) * size(i, j, k) / root;
      squares += rounding * rounding;
    }
  }
  return squares + left_out * left_out;
}

double PrecisionMap::error_with(const TileNorms& norms) const {
  double squares = 0;
  for (std::int64_t j = 0; j < norms.tiles; ++j) {
    for (std::int64_t i = j; i < norms.tiles; ++i)
      squares += (i == j ? 1 : 2) * tile_error(norms, i, j);
  }
  return std::sqrt(squares) / norms.frobenius;
}

bool PrecisionMap::same_as(const PrecisionMap& other) const {
  if (norms_.tiles != other.norms_.tiles || stored_ != other.stored_ || wide_ != other.wide_ ||
      fp16_exponent_ != other.fp16_exponent_ || fp8_exponent_ != other.fp8_exponent_ ||
      inverse_exponent_ != other.inverse_exponent_ || sum_exponent_ != other.sum_exponent_ ||
      longest_sum(asked_.accuracy) != longest_sum(other.asked_.accuracy))
    return false;
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j; i < norms_.tiles; ++i) {
      for (std::int64_t k = 0; k < j; ++k) {
        if (product(i, j, k) != other.product(i, j, k)) return false;
      }
    }
  }
  return true;
}

std::array<std::int64_t, kTilePrecisions> PrecisionMap::tile_counts() const {
  std::array<std::int64_t, kTilePrecisions> counts{};
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j + 1; i < norms_.tiles; ++i)
      ++counts[static_cast<std::size_t>(stored(i, j))];
  }
  return counts;
}

std::array<double, kTilePrecisions> PrecisionMap::product_counts() const {
  std::array<double, kTilePrecisions> counts{};
  for (std::int64_t j = 0; j < norms_.tiles; ++j) {
    for (std::int64_t i = j; i < norms_.tiles; ++i) {
      for (std::int64_t k = 0; k < j; ++k) {
        const auto [a, b] = product(i, j, k);
        counts[static_cast<std::size_t>(std::min(a, b))] += i == j ? 0.5 : 1;
      }
    }
  }
  return counts;
}

}  // namespace strata
