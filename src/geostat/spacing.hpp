#pragma once
// How far apart neighbouring points are: the lengths that data can tell of, and points so close
// that rounding takes them for one.
//
// Contract: distances are Euclidean, on the sphere along chords in kilometres. O(n log n).

#include "strata/geostat.hpp"

namespace strata {

/// Distances between neighbouring places, times left out. Places within closeness_of() at
/// smoothness 1 are one. At least two places are needed.
struct Spacing {
  double least = 0;   ///< between any two places
  double median = 0;  ///< from a place to its nearest neighbour
};
[[nodiscard]] Spacing spacing_of(const Points& points, Distance distance);

/// The length of the diagonal of the points' bounding box; on the sphere of that in space.
[[nodiscard]] double extent_of(const Points& points, Distance distance);
/// From the first to the last of the times.
[[nodiscard]] double time_extent_of(const Points& points);

/// find_nearly_coincident_points() looks for pairs within this length.
[[nodiscard]] double closeness_of(const Points& points, Distance distance, double smoothness);

}  // namespace strata
