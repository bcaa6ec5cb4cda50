#pragma once
// The tasks of Wᵀ·R and the squared lengths of the columns of W, W = L⁻¹·C, where L is a tile
// Cholesky factor, C the covariance between the n points of its rows and many targets, and R has a
// few columns. It is what kriging needs of its targets.
//
// Contract: emits tasks only. Row m of W belongs to the device of row m of L (RowOwners). C is
// generated and W is temporary: where the devices have room for both, neither goes home. What is
// summed up for a block of targets is summed in the order of the rows on any number of devices, so
// that the result depends on the tile and on which targets share a block, on nothing else.

#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"

namespace strata {

struct WhitenedProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;  ///< of L
  std::int64_t targets = 0;
  std::int64_t target_tile = 1;
  std::int64_t columns = 0;           ///< of R
  std::int64_t point_dimensions = 1;  ///< coordinates of a point
  Element precision = Element::fp64;  ///< of L, too, where formats has no map
  TileFormats formats{};              ///< of L
  int devices = 1;
  std::vector<double> rates{};  ///< as in CholeskyProblem
  /// What L and the points of its rows are called from plan to plan (BlockFamily::identity).
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;

  bool operator==(const WhitenedProblem&) const = default;
};

/// The families of the schedule, d the coordinates of a point. The sums begin with what is stored.
namespace whitened {
inline constexpr int kFactor = 0;    ///< L
inline constexpr int kWhitened = 1;  ///< W, n × targets; temporary
inline constexpr int kPoints = 2;    ///< n × d
inline constexpr int kTargets = 3;   ///< targets × d
inline constexpr int kRight = 4;     ///< R, n × columns
inline constexpr int kProducts = 5;  ///< G ← G − Wᵀ·R, targets × columns
inline constexpr int kSquares = 6;   ///< s_j ← s_j + Σ_i w_ij², targets × 1, always fp64
}  // namespace whitened

[[nodiscard]] Schedule whitened_sums(const WhitenedProblem& problem);

}  // namespace strata
