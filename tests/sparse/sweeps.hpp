#pragma once
// What tests of triangular solves with a sparse factor share.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"

namespace strata::test {

struct Sweep {
  bool forward;
  bool backward;
};
inline constexpr std::array<Sweep, 3> kSweeps{{{true, true}, {true, false}, {false, true}}};

inline std::vector<double> right_hand_sides(std::int64_t n, std::int64_t columns,
                                            double scale = 1) {
  std::vector<double> b(at(n * columns));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = scale * (random_uniform(7, i) - 0.5);
  return b;
}

inline MatrixView<double> view_of(std::vector<double>& b, std::int64_t n) {
  return {b.data(), n, std::ssize(b) / std::max<std::int64_t>(n, 1), n};
}

/// Largest distance of X from Y, over the largest element of Y; NaN where X has one.
inline double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double most = 0;
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= most)) most = std::abs(x[i] - y[i]);
    largest = std::max(largest, std::abs(y[i]));
  }
  return most / largest;
}

}  // namespace strata::test
