#pragma once
// What a fit asks of its data and options.
//
// Contract: returns normally or throws the Error that fit() in include/strata/geostat.hpp promises,
// but for what a search needs of bounds (fit_space.hpp).

#include <span>

#include "strata/geostat.hpp"

namespace strata {

void check_fit(const Points& points, std::span<const double> values, const FitOptions& options);

}  // namespace strata
