#pragma once
// The tasks of Y ← Y − C·V, C the covariance of n points among themselves (without nugget), which
// is generated where it is used and never stored, V with a few columns.
//
// Contract: emits tasks only. A task takes some rows of Y and some columns of C: those of a device
// are the rows that RowOwners gives it, so n² elements are generated in all, twice the triangle,
// and no sum is shared by devices. Columns of C come in ascending order for each row of Y, and
// tiles of them begin at multiples of kCovarianceRun, so the result depends on points, parameters
// and V alone, on no tile (covariance_times.hpp). A factor and coordinates that lie on the devices
// stay there where there is room.

#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"
#include "strata/options.hpp"

namespace strata {

struct ProductProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;              ///< rows of Y in a task
  std::int64_t column_tile = 512;     ///< columns of C in a task: a multiple of kCovarianceRun
  std::int64_t columns = 0;           ///< of V: one block
  std::int64_t point_dimensions = 1;  ///< coordinates of a point
  int devices = 1;
  std::vector<double> rates{};  ///< as in CholeskyProblem
  /// The factor that may lie on the devices beside it, and what it is called from plan to plan.
  std::int64_t factor_tile = 1;
  Element factor_precision = Element::fp64;
  TileFormats factor_formats{};
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;  ///< of blocks of `tile` points in fp64
};

/// The families of the schedule, d the coordinates of a point. All but the factor are fp64. Points
/// are there twice, in tiles of rows and of columns.
namespace product {
inline constexpr int kFactor = 0;        ///< not touched
inline constexpr int kRowPoints = 1;     ///< n × d
inline constexpr int kColumnPoints = 2;  ///< n × d
inline constexpr int kRight = 3;         ///< V, n × columns
inline constexpr int kProduct = 4;       ///< Y, n × columns
}  // namespace product

/// Throws Error{misuse} where `column_tile` is not a multiple of kCovarianceRun.
[[nodiscard]] Schedule covariance_product(const ProductProblem& problem);

/// `problem` with the tiles it should have, and with as many of its columns as fit the smallest
/// budget at once, but at least one. The tile of rows is the factor's, so that the coordinates of
/// the factorization are found on the devices; smaller where the factor is one tile or larger than
/// 4096.
[[nodiscard]] ProductProblem choose_product_tiles(ProductProblem problem, const Machine& machine);

}  // namespace strata
