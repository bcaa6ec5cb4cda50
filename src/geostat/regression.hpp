#pragma once
// The mean of a Gaussian process: its columns and their least squares fit.
//
// Contract: the columns are 1; for Mean::linear x and y (never z or t) or, on the sphere, the unit
// vector's three coordinates; and the covariates. All but 1 are centred and divided by their
// standard deviation, so that the fit is well conditioned wherever the origin of the coordinates
// lies and whatever the units of a covariate are. Coefficients that leave this header's functions
// for the user are in original units.

#include <span>
#include <vector>

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

  [[nodiscard]] std::int64_t columns() const noexcept { return std::ssize(scales_); }
  /// The row of the design matrix at a point, columns() entries; points that have the covariates of
  /// those that the basis was made of.
  [[nodiscard]] std::vector<double> row(const Points& points, std::size_t i) const;
  /// Writes the design matrix, n × columns().
  void fill(const Points& points, MatrixView<double> design) const;
  /// From coefficients of the columns to those of 1, of x and y or the unit vector, and of the
  /// covariates, as far as there are.
  [[nodiscard]] std::vector<double> in_original_units(std::span<const double> scaled) const;

 private:
  /// A column is (v − centre) / scale; that of 1 has none of both.
  struct Scale {
    double centre = 0;
    double scale = 1;
  };

  std::vector<Scale> scales_;
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

struct Regression {
  std::vector<double> coefficients;  ///< p
  std::vector<double> r;             ///< p × p upper triangle, column-major
  double residual_square = 0;

  /// ‖R⁻ᵀ·u‖²: the variance of uᵀβ̂ in units of the residual variance.
  [[nodiscard]] double leverage(std::span<const double> u) const;
};

/// Least squares of the last column of w (n × (p + 1)) on the others. On return these are
/// orthonormal and the last column is the residual. Throws Error{numerical} if the columns are
/// dependent.
[[nodiscard]] Regression regress(MatrixView<double> w, const char* where);

/// The same without a factor: generalized least squares of the last column of w on the others, from
/// u = Σ⁻¹·w. Leaves w alone; on return u's last column is Σ⁻¹ times the residual. The columns are
/// taken as dependent if those of L⁻¹X were to 1e-5 of their length, for their products are formed.
/// Throws likewise.
[[nodiscard]] Regression regress_by_solutions(MatrixView<const double> w, MatrixView<double> u,
                                              const char* where);

/// M ← M·R⁻¹ for n × p columns.
void divide_by_triangle(const Regression& regression, MatrixView<double> m);

}  // namespace strata
