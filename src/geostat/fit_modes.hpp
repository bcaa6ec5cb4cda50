#pragma once
// The modes of a likelihood, on few points.
//
// Contract: a likelihood of covariance parameters has several maxima more often than not (a long
// range or much noise, a short range or none, a smooth process without noise); these find the
// places where searches end that began far from each other.

#include <functional>
#include <vector>

#include "geostat/fit_space.hpp"
#include "geostat/spacing.hpp"

namespace strata {

/// Where a search ended, and what it minimized there.
struct Mode {
  FitSpace::Values at{};
  double value = 0;
};

/// What a grid is made for.
struct Scales {
  Spacing spacing;
  double extent = 0;
  double time_extent = 0;  ///< 0: there are no times
};

/// A coarse grid over the variables that are searched: ranges from the distances between neighbours
/// to the extent, smoothness, noise ratios above 0, some parameters of time, no anisotropy yet.
[[nodiscard]] std::vector<FitSpace::Values> coarse_grid(const FitSpace& space,
                                                        const Scales& scales);

using FitFunction = std::function<double(const FitSpace::Values&)>;

/// Evaluates f at all `begins` and goes downhill from the best of them that are apart, at most
/// `searches`; the ends, best first, those that are the same mode only once. Where anisotropies are
/// searched, some are tried from the best end.
[[nodiscard]] std::vector<Mode> find_modes(const FitFunction& f, const FitSpace& space,
                                           const std::vector<FitSpace::Values>& begins,
                                           std::size_t searches);

}  // namespace strata
