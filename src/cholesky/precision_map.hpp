#pragma once
// PrecisionMap: in which precision each tile of L is kept and summed up, and each product of tiles
// is done.
//
// Contract: a pure function of norms and of what the caller asks for; it is input to a schedule and
// does not change while that is followed. Tiles are those of a lower triangle of N_t × N_t tiles of
// order `tile`, numbered from 0. Norms are Frobenius norms.

#include <array>
#include <cstdint>
#include <vector>

#include "strata/mixed_precision.hpp"

namespace strata {

/// What is known of A = L·Lᵀ, tile by tile of the lower triangle, column by column.
struct TileNorms {
  std::int64_t tiles = 0;         ///< N_t
  std::int64_t tile = 1;          ///< order of a tile
  double frobenius = 0;           ///< ‖A‖_F
  double smallest_pivot = 1;      ///< min L_ii², or an estimate
  std::vector<double> matrix{};   ///< ‖A_ij‖
  std::vector<double> factor{};   ///< ‖L_ij‖, or bounds of it
  std::vector<double> largest{};  ///< max |entry| of L_ij, or bounds of it
  /// ‖L_ij·L_ijᵀ‖/‖L_ij‖²: 1 for a tile of rank 1, less for one of many ranks. Empty: not known.
  std::vector<double> coherence{};

  [[nodiscard]] std::size_t at(std::int64_t i, std::int64_t j) const noexcept {
    return static_cast<std::size_t>(j * tiles - j * (j - 1) / 2 + (i - j));
  }
};

class PrecisionMap {
 public:
  /// Rule `factor`, with τ = ε‖A‖_F/N_t and half of it for each of storing and multiplying: L_ij in
  /// the lowest p with u_p‖L_ij‖·‖L_jj‖/√tile < τ/2, left out if ‖L_ij‖·‖L_jj‖ < τ. The product
  /// L_ik·L_jkᵀ in the lowest p with u_p‖L_ik‖·‖L_jk‖·√(N_t/tile) < τ/2 (rounding errors as
  /// random), left out if ‖L_ik‖·‖L_jk‖·N_t < τ (as if all had one sign). That the errors of all
  /// tiles together stay near ε‖A‖_F is measured, not proven. Rule `paper`: include/strata. Throws
  /// as check_mixed_precision.
  PrecisionMap(TileNorms norms, const MixedPrecision& asked);

  [[nodiscard]] std::int64_t tiles() const noexcept { return norms_.tiles; }
  /// How many tiles this map keeps finer than the other, or whose products with others it does
  /// finer.
  [[nodiscard]] std::int64_t finer_than(const PrecisionMap& other) const;
  /// ‖A − L·Lᵀ‖_F over ‖A‖_F, about, for a factor that has these norms and was made by this map:
  /// the squares of what rounding costs each tile and product added up, what is left out of one
  /// tile as if it had one sign.
  [[nodiscard]] double error_with(const TileNorms& norms) const;
  /// Whether the two say the same of every tile and product, and have the same scales and lengths
  /// of sums.
  [[nodiscard]] bool same_as(const PrecisionMap& other) const;
  [[nodiscard]] const TileNorms& norms() const noexcept { return norms_; }
  [[nodiscard]] const MixedPrecision& asked() const noexcept { return asked_; }

  /// What tile (i, j) is kept in.
  [[nodiscard]] TilePrecision stored(std::int64_t i, std::int64_t j) const {
    return stored_[norms_.at(i, j)];
  }
  /// Whether its sum is formed in FP64; else in FP32.
  [[nodiscard]] bool wide(std::int64_t i, std::int64_t j) const { return wide_[norms_.at(i, j)]; }
  /// In which precision L_ik enters the product L_ik·L_jkᵀ that updates tile (i, j), and L_jk; none
  /// if the product is left out. An operand never enters finer than it is kept.
  [[nodiscard]] std::array<TilePrecision, 2> product(std::int64_t i, std::int64_t j,
                                                     std::int64_t k) const;

  /// Exponents of the powers of two that fp16 and fp8 tiles are multiplied by before they are
  /// rounded: the largest with which the largest entry of a class, with a margin, stays finite.
  [[nodiscard]] int fp16_exponent() const noexcept { return fp16_exponent_; }
  [[nodiscard]] int fp8_exponent() const noexcept { return fp8_exponent_; }
  /// The same of the inverses of diagonal tiles and of sums, where solves multiply by inverses.
  [[nodiscard]] int inverse_exponent() const noexcept { return inverse_exponent_; }
  [[nodiscard]] int sum_exponent() const noexcept { return sum_exponent_; }

  /// How many tiles below the diagonal, and (by their flops, one for a product of whole tiles) how
  /// many products, of each precision.
  [[nodiscard]] std::array<std::int64_t, kTilePrecisions> tile_counts() const;
  [[nodiscard]] std::array<double, kTilePrecisions> product_counts() const;

 private:
  void store_by_factor();
  void store_by_matrix();
  void choose_sums();
  void choose_scales();
  [[nodiscard]] TilePrecision lowest(double error_of_one, double bound) const;
  [[nodiscard]] TilePrecision finest_product(std::int64_t i, std::int64_t j, std::int64_t k) const;
  [[nodiscard]] double tile_error(const TileNorms& norms, std::int64_t i, std::int64_t j) const;

  TileNorms norms_;
  MixedPrecision asked_;
  double tau_ = 0;
  std::vector<TilePrecision> stored_;
  std::vector<bool> wide_;
  int fp16_exponent_ = 0;
  int fp8_exponent_ = 0;
  int inverse_exponent_ = 0;
  int sum_exponent_ = 0;
};

}  // namespace strata
