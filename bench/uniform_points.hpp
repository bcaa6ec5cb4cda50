#pragma once
// Points of the benchmarks of covariances.
//
// Contract: uniform in the unit square, a function of n and the seed alone.

#include <cstdint>

#include "base/random.hpp"
#include "strata/geostat.hpp"

namespace strata::bench {

[[nodiscard]] inline Points uniform_points(std::int64_t n, std::uint64_t seed) {
  Points points;
  for (std::int64_t i = 0; i < n; ++i) {
    points.x.push_back(random_uniform(seed, static_cast<std::uint64_t>(i)));
    points.y.push_back(random_uniform(seed, static_cast<std::uint64_t>(n + i)));
  }
  return points;
}

}  // namespace strata::bench
