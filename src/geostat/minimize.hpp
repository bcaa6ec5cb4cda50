#pragma once
// Minimization without derivatives inside a box.
//
// Contract: `f` is called from the calling thread only; what it throws comes out of `minimize`
// unchanged. At most `evaluations_max` calls of f. Equal inputs give equal results.

#include <functional>
#include <vector>

namespace strata {

struct Box {
  std::vector<double> lower;
  std::vector<double> upper;
};

struct MinimizeOptions {
  double step = 0.3;        ///< first radius of the search
  double tolerance = 1e-6;  ///< stop when the radius is below this …
  double gain = 1e-9;       ///< … or a step gains less than this, relative to f
  int evaluations_max = 200;
};

struct Minimum {
  std::vector<double> x;
  double value = 0;
  bool converged = false;
};

/// Minimizes f from x, which lies in the box; 1 <= x.size(), lower < upper.
[[nodiscard]] Minimum minimize(const std::function<double(const std::vector<double>&)>& f,
                               std::vector<double> x, const Box& box,
                               const MinimizeOptions& options);

}  // namespace strata
