#pragma once
// The mean of a Gaussian process: its columns.
//
// Contract: the columns span 1; for Mean::linear x and y (never z or t) or, on the sphere, the unit
// vector's three coordinates; and the covariates. Over the points that the basis was made of they
// are orthogonal, with a mean square of 1. They are right to a rounding or two wherever the origin
// of the coordinates lies, however near to a line the points are and however small a part of the
// sphere they cover: what an estimate loses to rounding is left to the covariance. Coefficients for
// the user are in original units. Throws nothing but std::bad_alloc.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scalar/double_double.hpp"
#include "strata/geostat.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// The coefficients that are estimated by least squares: none, none, 1 and 3 (on the sphere 4), and
/// those of the covariates.
[[nodiscard]] std::int64_t estimated_count(Mean mean, std::int64_t covariates,
                                           Distance distance) noexcept;

class MeanBasis {
 public:
  MeanBasis(Mean mean, const Points& points, Distance distance);

  [[nodiscard]] std::int64_t columns() const noexcept { return static_cast<std::int64_t>(p_); }
  /// The row of the design matrix at a point, columns() entries; points that have the covariates of
  /// those that the basis was made of. A column that those before it determine, up to the rounding
  /// of coordinates and covariates, is zero.
  [[nodiscard]] std::vector<double> row(const Points& points, std::size_t i) const;
  /// Writes the design matrix, n × columns().
  void fill(const Points& points, MatrixView<double> design) const;
  /// By how many roundings of FP64 elements of the columns may be off, beside their size.
  [[nodiscard]] double roundings() const noexcept { return roundings_; }
  /// From coefficients of the columns to those of 1, of x and y or the unit vector, and of the
  /// covariates, as far as there are.
  [[nodiscard]] std::vector<double> in_original_units(std::span<const double> c) const;

 private:
  /// 1, coordinates and covariates as seen from their centres, in units of about their size.
  [[nodiscard]] std::vector<DoubleDouble> variables(const Points& points, std::size_t i) const;
  void set_centres(const Points& points);
  void orthogonalize(const Points& points);

  [[nodiscard]] DoubleDouble& t(std::size_t k, std::size_t j) { return triangle_[k + j * p_]; }
  [[nodiscard]] const DoubleDouble& t(std::size_t k, std::size_t j) const {
    return triangle_[k + j * p_];
  }
  [[nodiscard]] bool on_sphere() const { return first_ == 4; }

  std::size_t p_;
  std::size_t first_ = 1;            ///< columns before the covariates: 1, 3 or 4
  std::array<double, 2> touches_{};  ///< longitude and latitude where the sphere meets its plane
  std::vector<double> centres_;
  std::vector<int> exponents_;          ///< of the units
  std::vector<DoubleDouble> triangle_;  ///< variables = columns times this
  double roundings_ = 1;
};

/// The mean at a point from coefficients as in Likelihood::mean_coefficients; how many there are
/// says whether it is linear, and whether on the sphere.
[[nodiscard]] double mean_at(std::span<const double> coefficients, const Points& points,
                             std::size_t i);

/// The sum of the magnitudes of its terms, beside which it is rounded.
[[nodiscard]] double mean_terms_at(std::span<const double> coefficients, const Points& points,
                                   std::size_t i);

/// The arithmetic mean.
[[nodiscard]] double sample_mean(std::span<const double> values);

}  // namespace strata
