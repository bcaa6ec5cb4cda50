#pragma once
// What every public function of the geostat layer asks of its data.
//
// Contract: each function returns normally or throws the Error that include/strata/geostat.hpp
// promises. `where` names the public function that was called.

#include <span>

#include "strata/geostat.hpp"

namespace strata {

/// n > 0, as many coordinates of each kind and values of each covariate as points, all finite;
/// `what` is "points" or "targets".
void check_points(const Points& points, const char* what, const char* where);

/// The separation is meant for such points: it has a time if they have, and on the sphere they lie.
/// After check_points.
void check_separation(const Separation& separation, const Points& points, const char* where);

/// One finite value for each point.
void check_values(const Points& points, std::span<const double> values, const char* where);

/// There are no covariates for which the mean has no place.
void check_mean(Mean mean, const Points& points, const char* where);

void check_parameters(const MaternParameters& parameters, const char* where);

/// No two points coincide; called where there is no nugget.
void check_distinct(const Points& points, Distance distance, const char* where);

}  // namespace strata
