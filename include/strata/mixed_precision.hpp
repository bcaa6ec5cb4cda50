#pragma once
// In which precision each tile of a Cholesky factor is kept, and each product of tiles is done.
//
// Contract: pure data. The default asks for nothing: everything is FP64.

#include <array>
#include <cstdint>
#include <string>

#include "strata/element.hpp"

namespace strata {

/// What a tile of the factor is kept in, from the finest to the coarsest. "fp32" is a class: 24
/// bits as a float on a CPU, 22 as the sum of two binary16 numbers on a GPU.
enum class TilePrecision : std::uint8_t {
  fp64,
  fp32,
  fp16,
  fp8,   ///< e4m3
  none,  ///< left out: the tile is taken as zero, the product is not done
};
inline constexpr int kTilePrecisions = 5;

[[nodiscard]] const char* to_string(TilePrecision precision) noexcept;

/// The unit roundoff of a precision: 2⁻⁵³, 2⁻²⁴, 2⁻¹¹, 2⁻⁴; 1 for `none`.
[[nodiscard]] double unit_roundoff(TilePrecision precision) noexcept;

enum class PrecisionRule : std::uint8_t {
  /// By the norms of the tiles of L, which a pilot factorization estimates: a tile, and each
  /// product of tiles, in the lowest precision whose rounding error stays within the accuracy.
  factor,
  /// By the norms of the tiles of A: ‖A_ij‖_F·N_t/‖A‖_F < ε/u (Higham, Mary, "Mixed precision
  /// algorithms in numerical linear algebra", 2022, section 14; Ren, Ltaief, Abdulah, Keyes 2024).
  paper,
};

/// Rule `paper`: the precision of the product that updates tile C with tiles A and B.
enum class ProductRule : std::uint8_t {
  target,  ///< that of C
  lower,   ///< the coarser of A's and B's
  higher,  ///< the finer of A's and B's
};

/// What a caller asks for.
struct MixedPrecision {
  /// ε, relative to ‖A‖_F: between 1e-12 and 1e-3; 0: everything in FP64.
  double accuracy = 0;
  PrecisionRule rule = PrecisionRule::factor;
  ProductRule product = ProductRule::target;
  /// The precisions that may be used, fp64 … fp8; fp64 always is.
  std::array<bool, 4> allowed{true, true, true, true};
  /// Rule `factor`: no tile and no product is left out.
  bool keep_all = false;
  /// Before the run: ε is made finer until 2ε‖A‖_F/√n is at most a tenth of the smallest pivot that
  /// the pilot met, so that the factorization does not fail. After it: where random vectors find
  /// more than the accuracy allows (MixedReport::probe), nothing is left out, then ε is made finer.
  /// Without the guard the note of the report says so; with it FP64 is taken where nothing is won.
  bool guard = true;

  [[nodiscard]] bool on() const noexcept { return accuracy > 0; }
  friend bool operator==(const MixedPrecision&, const MixedPrecision&) = default;
};

/// "fp64,fp32" → which of fp64, fp32, fp16, fp8. Throws Error{misuse} for other names, or without
/// fp64.
[[nodiscard]] std::array<bool, 4> parse_precisions(const std::string& names);

/// Throws Error{misuse} for an accuracy that is neither 0 nor in [1e-12, 1e-3], or a set without
/// fp64.
void check_mixed_precision(const MixedPrecision& mixed);

}  // namespace strata
