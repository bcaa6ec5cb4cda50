#pragma once
// Minimization without derivatives inside a box.
//
// Contract: `f` is called from the calling thread only; what it throws comes out of `minimize`
// unchanged. At most `evaluations_max` calls of f. Equal inputs give equal results.

#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace strata {

using ObjectiveFunction = std::function<double(const std::vector<double>&)>;

struct Box {
  std::vector<double> lower;
  std::vector<double> upper;
};

struct MinimizeOptions {
  double step = 0.3;        ///< first radius of the search
  double tolerance = 1e-6;  ///< stop when the radius is below this …
  double gain = 1e-9;       ///< … or a step gains less than this, relative to f
  int evaluations_max = 200;
  /// A value that is known from elsewhere: minimize_scaled ends, without convergence, as soon as it
  /// is clear that it will not come below.
  double rival = std::numeric_limits<double>::infinity();
};

struct Minimum {
  std::vector<double> x;
  double value = 0;
  bool converged = false;
  bool beaten = false;  ///< it ended because of the rival
};

/// Minimizes f from x, which lies in the box; 1 <= x.size(), lower < upper, both may be infinite.
[[nodiscard]] Minimum minimize(const ObjectiveFunction& f, std::vector<double> x, const Box& box,
                               const MinimizeOptions& options);

/// The same in units of `steps`, one for each variable: options.step and tolerance are in them. On
/// a long flat slope a single step that gains little says nothing: there options.gain is 0.
[[nodiscard]] Minimum minimize_in_steps(const ObjectiveFunction& f, std::vector<double> x, Box box,
                                        const std::vector<double>& steps,
                                        const MinimizeOptions& options);

/// What is known before a search: with x = x0 + C·u, f is about |u|²/2 + gᵀu + c, g unknown.
struct ScaledStart {
  std::vector<double> x0;
  std::vector<double> factor;  ///< C, lower triangular, packed by columns
  /// Values of f that are there already.
  std::vector<std::pair<std::vector<double>, double>> known{};
};

/// Minimizes f from start.x0, or the best that is known: in few evaluations if it is roughly as the
/// start says; x0 lies in the box. It stops, without convergence, where it does not get on, or
/// where f is not as the start says, for which it tries f around where it ends: then what it found
/// is where minimize_in_steps() goes on. `step` is a
/// radius of u, `tolerance` of x; `gain`, not relative here, is what is still expected to be
/// gained. What is known may be the best.
[[nodiscard]] Minimum minimize_scaled(const ObjectiveFunction& f, const ScaledStart& start,
                                      const Box& box, const MinimizeOptions& options);

}  // namespace strata
