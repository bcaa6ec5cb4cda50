#pragma once
// The tasks of the squared lengths of some columns of L⁻¹, L a tile Cholesky factor: those of all
// columns are the diagonal of A⁻¹ = L⁻ᵀ·L⁻¹.
//
// Contract: emits tasks only. Row m of W = L⁻¹·I belongs to the device of row m of L (RowOwners). W
// is generated and temporary; what is above the diagonal is neither stored nor computed. The sum
// of a column is made in the order of the rows on any number of devices, so that the result depends
// on the tile and on the width of the blocks of columns, on nothing else.

#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"

namespace strata {

struct InverseProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;              ///< of L
  std::int64_t first = 0;             ///< column of A⁻¹, a multiple of …
  std::int64_t column_tile = 1;       ///< … the columns of a block of W
  std::int64_t columns = 0;           ///< from `first` on
  Element precision = Element::fp64;  ///< of W; of L, too, where formats has no map
  TileFormats formats{};              ///< of L
  int devices = 1;
  std::vector<double> rates{};  ///< as in CholeskyProblem
  /// What L and the points are called from plan to plan (BlockFamily::identity).
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;
  /// As in SolveProblem.
  std::int64_t point_dimensions = 0;
};

/// The families of the schedule. The sums begin with what is stored.
namespace inverse {
inline constexpr int kFactor = 0;   ///< L
inline constexpr int kColumns = 1;  ///< W, blocks on and below the diagonal; temporary
inline constexpr int kSquares = 2;  ///< s_j ← s_j + Σ_i w_ij², columns × 1, always fp64
}  // namespace inverse

[[nodiscard]] Schedule inverse_diagonal(const InverseProblem& problem);

}  // namespace strata
