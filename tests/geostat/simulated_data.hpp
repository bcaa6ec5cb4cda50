#pragma once
// What several geostat tests share: all means, and points with their values.

#include <vector>

#include "strata/geostat.hpp"

namespace strata {

inline constexpr Mean kMeans[] = {Mean::sample, Mean::zero, Mean::constant, Mean::linear};

struct SimulatedData {
  Points points;
  std::vector<double> values;
};

}  // namespace strata
