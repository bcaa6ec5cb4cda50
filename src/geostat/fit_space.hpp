#pragma once
// The parameters of a fit as coordinates of a search.
//
// Contract: coordinates of those variables that are free, in the order of `Variable`:
//   * log range, log smoothness, log of the smoothness in time, log of the anisotropy ratio;
//   * log(ratio + ratio_offset), ratio = nugget/variance. Where the ratio is well above the offset
//     that is its logarithm; below, where it is indistinguishable from 0, it is nearly linear, so
//     that 0, which is its bound unless points coincide, is a short way off;
//   * of the scale in time a, log τ with τ = a^(−1/(2α)), α the smoothness in time: half of the
//     covariance is left after the time τ. That is about the same for any α, which a is not: it
//     has the unit of time to the power of −2α;
//   * the interaction itself, for 0 and 1 are values like others;
//   * the angle of anisotropy in radians, without bounds: half a turn leads back.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "geostat/minimize.hpp"
#include "strata/geostat.hpp"

namespace strata {

inline constexpr const char* kFitWhere = "fit";  ///< what an Error of a fit names

struct FitSpace {
  enum Variable : std::size_t {
    range,
    smoothness,
    ratio,
    time_scale,
    time_smoothness,
    interaction,
    anisotropy_ratio,
    anisotropy_angle,
  };
  static constexpr std::size_t kVariables = 8;
  using Values = std::array<double, kVariables>;

  std::vector<std::size_t> free;
  Values held{1, 0.5, 0, 1, 1, 0, 1, 0};
  std::array<Bounds, kVariables> bounds{};  ///< of time_scale those of τ, of the angle none
  std::optional<double> nugget;             ///< held above 0
  double ratio_offset = 1e-3;               ///< while the nugget is free; see offset()
  double data_variance = 1;                 ///< about the mean, if there is one
  Separation separation{};                  ///< its distance, and whether there are times

  /// With a nugget that is held the ratio stands for the variance, and its logarithm is taken.
  [[nodiscard]] double offset() const noexcept { return nugget ? 0 : ratio_offset; }
  [[nodiscard]] Values values(const std::vector<double>& x) const;
  [[nodiscard]] std::vector<double> coordinates(const Values& values) const;
  [[nodiscard]] Box box() const;
  [[nodiscard]] bool is_free(std::size_t variable) const;
  /// Whether what is not free is what it is held at.
  [[nodiscard]] bool holds(const Values& values) const;
  /// What its bounds are of: the variable itself, or τ for the scale in time.
  [[nodiscard]] double bounded(std::size_t variable, const Values& values) const;
  /// Whether the domain of a variable ends at this bound.
  [[nodiscard]] bool ends_at(std::size_t variable, double bound) const;
  /// As a fit tells of it; of a ratio that stands for the variance, the variance.
  [[nodiscard]] FitBound at_bound(std::size_t variable, bool upper) const;
  /// As FitOptions calls its bounds: "range", "noise ratio", "time range" …
  [[nodiscard]] static const char* name_of(std::size_t variable);
  /// Whether a variable is free and away from its bounds; the angle, whether the ratio is.
  [[nodiscard]] bool inside(std::size_t variable, const Values& values) const;
  [[nodiscard]] Separation separation_of(const Values& values) const;
  /// The parameters at `values` with this variance.
  [[nodiscard]] MaternParameters parameters(const Values& values, double variance) const {
    return {variance, values[range], values[smoothness],
            nugget ? *nugget : values[ratio] * variance, separation_of(values)};
  }

 private:
  [[nodiscard]] double coordinate(std::size_t variable, double value) const;
};

/// Where in a search these parameters are.
[[nodiscard]] FitSpace::Values values_of(const MaternParameters& parameters);

/// τ of the scale and the smoothness in time, and back.
[[nodiscard]] double time_range_of(double scale, double smoothness);
[[nodiscard]] double time_scale_of(double range, double smoothness);

/// The separation of a fit, in which what is estimated is as it is by default.
[[nodiscard]] Separation held_separation(const FitOptions& options);

/// Throws Error{numerical} if all points coincide, or all times where they are to say something,
/// Error{misuse} for bounds that cannot be.
[[nodiscard]] FitSpace make_fit_space(const Points& points, const FitOptions& options,
                                      std::span<const double> values = {});

/// Puts the variables in ascending order of their room to the next bound, in deviations of the
/// covariance of their coordinates. With a triangular factor of it the first one is then a
/// coordinate by itself, whose bound is a bound there, and those that move with it have more room.
void sort_by_room(FitSpace& space, const FitSpace::Values& at,
                  const std::vector<double>& covariance);

/// The same with the nugget held at 0.
[[nodiscard]] FitSpace without_nugget(FitSpace space);

}  // namespace strata
