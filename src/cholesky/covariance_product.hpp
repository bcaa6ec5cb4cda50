#pragma once
// The tasks of Y ← Y − C·V, C the covariance of n points among themselves (without nugget), which
// is generated tile by tile and never stored, V with a few columns.
//
// Contract: emits tasks only. Row m of Y belongs to the device of row m of tiles (RowOwners), which
// generates that row of C as a whole: n² elements in all, twice the triangle, and no sum is shared
// by devices. The columns of tiles come in ascending order for each row of Y, so the result depends
// on the tile, on nothing else. A tile of C is used once, right after it was generated. A factor
// and coordinates that lie on the devices stay there where there is room.

#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"
#include "session/planned_run.hpp"
#include "strata/options.hpp"

namespace strata {

struct ProductProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;              ///< of C, and rows of a block of V and Y
  std::int64_t columns = 0;           ///< of V: one block
  std::int64_t point_dimensions = 1;  ///< coordinates of a point
  int devices = 1;
  std::vector<double> rates{};    ///< as in CholeskyProblem
  std::int64_t rows_at_once = 1;  ///< of tiles, on all devices: as many as queues find work in
  /// The factor that may lie on the devices beside it, and what it is called from plan to plan.
  std::int64_t factor_tile = 1;
  Element factor_precision = Element::fp64;
  TileFormats factor_formats{};
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;  ///< of blocks of `tile` points in fp64

  bool operator==(const ProductProblem&) const = default;
};

/// The families of the schedule, d the coordinates of a point. All but the factor are fp64.
namespace product {
inline constexpr int kFactor = 0;      ///< not touched
inline constexpr int kCovariance = 1;  ///< the tiles of C that exist at once; temporary
inline constexpr int kPoints = 2;      ///< n × d
inline constexpr int kRight = 3;       ///< V, n × columns
inline constexpr int kProduct = 4;     ///< Y, n × columns
}  // namespace product

[[nodiscard]] Schedule covariance_product(const ProductProblem& problem);

/// The tile for `problem`, whose own is not read: the factor's, so that the coordinates of the
/// factorization are found on the devices; smaller where the factor is one tile or larger than
/// 4096, or a task would not fit the smallest budget.
[[nodiscard]] std::int64_t choose_product_tile(ProductProblem problem, const Machine& machine);

/// Plans it, from what is on the devices already. Throws as Plan does.
[[nodiscard]] PlannedRun plan_covariance_product(const ProductProblem& problem,
                                                 const Machine& machine, Policy policy,
                                                 Residency start = {}, HomeModel homes = {});

}  // namespace strata
