#pragma once
// The mean of a Gaussian process: its columns and their least squares fit.
//
// Contract: columns are those of 1, x, y (never z or t) with x and y centred and divided by their
// standard deviation, so that the fit is well conditioned wherever the origin of the coordinates
// lies; coefficients that leave this header's functions for the user are in original coordinates.

#include <array>
#include <span>
#include <vector>

#include "strata/geostat.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// The coefficients that are estimated by least squares: none, none, 1 and 3.
[[nodiscard]] std::int64_t estimated_count(Mean mean) noexcept;

class MeanBasis {
 public:
  MeanBasis(Mean mean, const Points& points);

  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }
  /// The row of the design matrix at a point; the first `columns()` entries count.
  [[nodiscard]] std::array<double, 3> row(double x, double y) const;
  [[nodiscard]] std::array<double, 3> row(const Points& points, std::size_t i) const {
    return row(points.x[i], points.y[i]);
  }
  /// Writes the design matrix, n × columns().
  void fill(const Points& points, MatrixView<double> design) const;
  /// From coefficients of the columns to a + b·x + c·y (or the constant alone).
  [[nodiscard]] std::vector<double> in_original_coordinates(std::span<const double> scaled) const;

 private:
  std::int64_t columns_;
  double x_centre_ = 0;
  double y_centre_ = 0;
  double x_scale_ = 1;
  double y_scale_ = 1;
};

/// The mean at a point from coefficients as in Likelihood::mean_coefficients.
[[nodiscard]] double mean_at(std::span<const double> coefficients, double x, double y);
[[nodiscard]] inline double mean_at(std::span<const double> coefficients, const Points& points,
                                    std::size_t i) {
  return mean_at(coefficients, points.x[i], points.y[i]);
}

/// The arithmetic mean.
[[nodiscard]] double sample_mean(std::span<const double> values);

struct Regression {
  std::vector<double> coefficients;  ///< p
  std::vector<double> r;             ///< p × p upper triangle, column-major
  double residual_square = 0;

  /// ‖R⁻ᵀ·u‖²: the variance of uᵀβ̂ in units of the residual variance.
  [[nodiscard]] double leverage(std::span<const double> u) const;
};

/// Least squares of the last column of w (n × (p + 1), p <= 3) on the others. On return these are
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
