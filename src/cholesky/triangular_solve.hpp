#pragma once
// The tasks of X ← L⁻¹·X, X ← L⁻ᵀ·X, X ← L⁻ᵀ·L⁻¹·X and X ← −L·X for many right-hand sides, L a tile
// Cholesky factor.
//
// Contract: emits tasks only. Row m of X belongs to the device of row m of L (RowOwners).

#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"

namespace strata {

struct SolveProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;  ///< of L
  std::int64_t rhs = 0;   ///< columns of X
  std::int64_t rhs_tile = 1;
  Element precision = Element::fp64;  ///< of X; of L, too, where formats has no map
  TileFormats formats{};              ///< of L
  int devices = 1;
  std::vector<double> rates{};  ///< as in CholeskyProblem
  /// What L and the points are called from plan to plan (BlockFamily::identity).
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;
  /// d > 0: L is of a covariance of n points with d coordinates. No task reads them, but those that
  /// are on a device stay there for the next factorization.
  std::int64_t point_dimensions = 0;
  /// 0: left-looking, a product a task, so that a device needs few blocks at a time. Otherwise
  /// right-looking, with up to so many products in a task, which a GPU carries out in one launch.
  /// The order of the sums, and so every bit, is the same. For forward and backward sweeps.
  std::int64_t products_at_once = 0;
};

inline constexpr int kFactorFamily = 0;    ///< L
inline constexpr int kSolutionFamily = 1;  ///< X

/// `both`: one after the other, X ← A⁻¹·X. `multiply`: X ← −L·X, with the sign of gemm, and
/// `multiply_transposed`: X ← −Lᵀ·X.
enum class Sweep : std::uint8_t { forward, backward, both, multiply, multiply_transposed };

[[nodiscard]] Schedule triangular_solve(const SolveProblem& problem, Sweep sweep);

}  // namespace strata
