#pragma once
// What a fit asks of its data and options.
//
// Contract: returns the units in which to fit, or throws the Error that fit() in
// include/strata/geostat.hpp promises, but for what a search needs of bounds (fit_space.hpp).

#include <span>

#include "geostat/units.hpp"
#include "strata/geostat.hpp"

namespace strata {

[[nodiscard]] Units check_fit(const Points& points, std::span<const double> values,
                              const FitOptions& options);

}  // namespace strata
