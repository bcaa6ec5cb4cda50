#pragma once
// What every public function of the geostat layer asks of its data.
//
// Contract: each function returns normally or throws the Error that include/strata/geostat.hpp
// promises. `where` names the public function that was called.

#include <span>

#include "strata/geostat.hpp"

namespace strata {

/// n > 0, two coordinates for each point, all finite; `what` is "points" or "targets".
void check_points(const Points& points, const char* what, const char* where);

/// One finite value for each point.
void check_values(const Points& points, std::span<const double> values, const char* where);

void check_parameters(const MaternParameters& parameters, const char* where);

/// No two points coincide; called where there is no nugget.
void check_distinct(const Points& points, const char* where);

}  // namespace strata
