#pragma once
// The tasks of tile Cholesky, A = L·Lᵀ, lower triangle, in any order of tiles (Order).
//
// Contract: emits tasks only; names no backend. The updates of each tile come in the same sequence
// in every order, so no order changes a bit of the factor. Rows of tiles belong to devices as
// RowOwners says.

#include <memory>
#include <string>
#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"

namespace strata {

/// In which order the tiles are finished.
struct Order {
  /// 0: column after column, the textbook order. w > 0: blocks of w·D rows × w columns of
  /// accumulators stay on the devices while the operands stream past them.
  std::int64_t super_tile = 0;
  /// Above `super_tile`: blocks of so many columns, and rows of each device, are what host memory
  /// holds between storage and the devices. They take the operands in groups of `group` columns of
  /// tiles, each of which all super-tiles of the block use while host memory has it: so storage is
  /// read by the size of host memory, not of the devices. 0: one level.
  std::int64_t outer = 0;
  std::int64_t group = 0;
  /// Only of the textbook order: its first and last columns as blocks of twice as many rows as
  /// there are devices. A block at the beginning needs few tiles, so that the devices have work
  /// before much has been loaded; the block at the end is updated as a whole, so that devices
  /// without rows in the last columns have work, too.
  bool balanced = false;
  /// Only of a factor in several precisions that has an identity: each tile is stored as soon as it
  /// is done. Else it stays on its device until it has to leave: right where most of them fit. But
  /// tiles whose value is nowhere else leave last, and those that are read from home then share the
  /// few slots that are left.
  bool brings_home = false;

  [[nodiscard]] std::string name() const;
};

/// What is to be factored.
struct CholeskyProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;
  Element precision = Element::fp64;
  /// With a map: the elements of the tiles of L; sums and coordinates are then fp64 or fp32, and
  /// `precision` is fp64.
  TileFormats formats{};
  int devices = 1;
  /// Rate of each device, in any unit, by which rows are distributed; empty: all alike.
  std::vector<double> rates{};
  /// 0: A is stored. d > 0: A is the covariance of n points with d coordinates, generated tile by
  /// tile.
  std::int64_t point_dimensions = 0;
  /// What the factor and the points are called from plan to plan (BlockFamily::identity).
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;
  /// Tiles of L that are there already, by BlockTable::index, e.g. of a run before that did not
  /// end; null: none.
  std::shared_ptr<const std::vector<bool>> done{};
  /// Statuses rest in storage, too, so that what is there already is known.
  bool durable = false;
};

/// Families of the schedule's block table.
inline constexpr int kMatrixFamily = 0;  ///< A, then L
inline constexpr int kStatusFamily = 1;  ///< of diagonal tile k block (0, k): a PivotStatus
inline constexpr int kPointsFamily =
    2;  ///< if generated: the points, n × d, a block for each row of tiles

[[nodiscard]] Schedule tile_cholesky(const CholeskyProblem& problem, Order order);

}  // namespace strata
