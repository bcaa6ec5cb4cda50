#pragma once
// Orders of points: which row of the covariance matrix belongs to which point.
//
// Contract: `order_points` returns a permutation p of 0 … n − 1: point p[k] comes k-th. It is a
// pure function of its arguments, the same on every machine; what is equally good comes in the
// order of the rows. Points may coincide or lie on a line. One core takes less than a second for
// 400,000 points in the plane and tiles of 2,048.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/geostat.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// "none", "hilbert", "kd", "coarse"; and back, throwing Error{misuse}.
[[nodiscard]] const char* to_string(PointOrder order) noexcept;
[[nodiscard]] PointOrder parse_point_order(const std::string& name);

/// The order of n points with one, two or three coordinates, one a column of `points` (n by d), all
/// in one unit of length; n may be 0. `tile`, at least 1, is the order of the tiles that the matrix
/// is cut into:
///   kd      rows k·tile … (k + 1)·tile − 1 are the points of a box; only the last tile has fewer
///   coarse  the same, but the first tile has the points that `max_min_points` selects, in its
///   order
/// The others do not depend on it. O(n log n) for `none` and `hilbert`, O(n log(n/tile)) for `kd`.
/// Throws Error{misuse} for other numbers of coordinates or a tile below 1, Error{input} for a
/// coordinate that is not finite, with its row.
[[nodiscard]] std::vector<std::int64_t> order_points(MatrixView<const double> points,
                                                     PointOrder order, std::int64_t tile);

/// The first min(count, n) points of the max-min order: the point nearest to the middle of the
/// bounding box, then always the one whose distance to the nearest of those before is largest; of
/// two the one with the lower row. So the distances never grow, up to rounding. Throws as
/// `order_points` does; `count` is at least 0.
[[nodiscard]] std::vector<std::int64_t> max_min_points(MatrixView<const double> points,
                                                       std::int64_t count);

}  // namespace strata
