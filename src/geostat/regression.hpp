#pragma once
// Least squares fit of the mean of a Gaussian process.
//
// Contract: few columns, whose lengths and directions differ little (mean_basis.hpp).

#include <span>
#include <vector>

#include "strata/geostat.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

struct Regression {
  std::vector<double> coefficients;  ///< p
  std::vector<double> r;             ///< p × p upper triangle, column-major
  double residual_square = 0;

  /// ‖R⁻ᵀ·u‖²: the variance of uᵀβ̂ in units of the residual variance.
  [[nodiscard]] double leverage(std::span<const double> u) const;
  /// ‖R⁻¹·s‖₂.
  [[nodiscard]] double length_of_solution(std::span<const double> s) const;
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
