#pragma once
// The parameters of a fit as coordinates of a search.
//
// Contract: coordinates are log range, log smoothness and log(ratio + ratio_offset), of those that
// are free, ratio = nugget/variance. Where the ratio is well above the offset that is its
// logarithm; below, where nobody can tell it from 0, it is as good as linear, so that the bound
// near 0 is a short way off.

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "geostat/minimize.hpp"
#include "strata/geostat.hpp"

namespace strata {

struct FitSpace {
  enum Variable : std::size_t { range, smoothness, ratio };
  using Values = std::array<double, 3>;

  std::vector<std::size_t> free;
  Values held{1, 0.5, 0};
  std::array<Bounds, 3> bounds;
  std::optional<double> nugget;  ///< held above 0
  double ratio_offset = 1e-3;
  Separation separation{};  ///< held

  [[nodiscard]] Values values(const std::vector<double>& x) const;
  [[nodiscard]] std::vector<double> coordinates(const Values& values) const;
  [[nodiscard]] Box box() const;
  /// Whether a variable is free and away from its bounds.
  [[nodiscard]] bool inside(std::size_t variable, const Values& values) const;
  /// The parameters at `values` with this variance.
  [[nodiscard]] MaternParameters parameters(const Values& values, double variance) const {
    return {variance, values[range], values[smoothness],
            nugget ? *nugget : values[ratio] * variance, separation};
  }

 private:
  [[nodiscard]] double coordinate(std::size_t variable, double value) const;
};

/// Throws Error{numerical} if all points coincide, Error{misuse} for bounds that cannot be.
[[nodiscard]] FitSpace make_fit_space(const Points& points, const FitOptions& options);

/// Length of the diagonal of the points' bounding box; on the sphere about that, in kilometres.
[[nodiscard]] double extent_of(const Points& points, Distance distance);

}  // namespace strata
