#pragma once
// Some of the points of a set, two sets one after the other, and which of them are one place.
//
// Contract: the one place that goes through the coordinates of Points by name; a coordinate that a
// set does not have is empty in it, and stays so. Covariates go where their points go, and have no
// part in what is one place.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/geostat.hpp"

namespace strata {

/// The coordinates that points may have.
inline constexpr std::array kCoordinates{&Points::x, &Points::y, &Points::z, &Points::t};

/// The points of these rows, in their order.
[[nodiscard]] Points rows_of(const Points& points, std::span<const std::int64_t> rows);
/// The points of rows first … first + count − 1.
[[nodiscard]] Points rows_of(const Points& points, std::int64_t first, std::int64_t count);

/// Appends `more`, which has the same coordinates and as many covariates, to `points`; any set to
/// one without points.
void append(Points& points, const Points& more);

/// What two points have in common if and only if they are one place: their coordinates, of which
/// longitudes that differ by 360 are the same on the sphere, and all of them are at a pole.
[[nodiscard]] std::array<double, 4> place_of(const Points& points, std::int64_t row,
                                             Distance distance);

/// The same where distances are Euclidean: on the sphere, in place of longitude and latitude, a
/// vector from its centre, in kilometres.
[[nodiscard]] std::array<double, 4> place_in_space(const Points& points, std::int64_t row,
                                                   Distance distance);

/// For each point the row of the first point at the same place: its own, if there is none before.
[[nodiscard]] std::vector<std::int64_t> first_rows(const Points& points, Distance distance);

}  // namespace strata
