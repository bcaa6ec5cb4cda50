#pragma once
// A general system A·X = B in the middle of the range of numbers, with the scales of its rows and
// columns.
//
// Contract: T is what the system is factored in, A what it is given in; B is in fp64, or in
// complex128 where A is complex. A whose largest element is near an end of the range of T is
// divided by a power of two, a column of B likewise. What divided elements lose as subnormal
// numbers is known (Loss). With C_j a power of two near 1 / max_i |a_ij| and R_i = 1 / Σ_j
// |a_ij|·C_j the matrix S = R·A·C has ‖S‖∞ = 1: its condition is what is left when scaling has done
// what it can (van der Sluis, "Condition numbers and equilibration of matrices", Numer. Math. 14,
// 1969).

#include <vector>

#include "cholesky/certified_solution.hpp"
#include "scalar/complex.hpp"

namespace strata {

template <class T, class A>
class ScaledSystem {
 public:
  using W = WideOf<A>;

  /// The views outlive the system.
  ScaledSystem(MatrixView<const A> a, MatrixView<const W> b);

  [[nodiscard]] std::int64_t n() const noexcept { return a_.rows; }
  [[nodiscard]] MatrixView<const A> a() const noexcept { return a_; }
  [[nodiscard]] MatrixView<const W> b() const noexcept { return b_.view(); }
  [[nodiscard]] double largest() const noexcept { return largest_; }
  [[nodiscard]] double norm_inf() const noexcept { return norm_; }
  /// A is 2 to this times what is factored.
  [[nodiscard]] int exponent() const noexcept { return exponent_; }
  /// x of column j times 2 to this is the solution of what was given.
  [[nodiscard]] const std::vector<int>& back() const noexcept { return back_; }
  [[nodiscard]] const std::vector<double>& row_scale() const noexcept { return row_scale_; }
  [[nodiscard]] const std::vector<double>& column_scale() const noexcept { return column_scale_; }
  [[nodiscard]] const Loss& loss() const noexcept { return loss_; }
  /// What is factored.
  [[nodiscard]] MatrixView<const T> factored();

 private:
  /// Exponents by which rows are brought to about 1 before columns are scaled, if they differ by so
  /// much, and more than columns do, that products with a scale of columns may leave the range of
  /// fp64; else none.
  [[nodiscard]] std::vector<int> far_rows() const;
  void scale_rows_and_columns();
  void measure_loss(MatrixView<const A> given);

  MatrixView<const A> a_;
  DenseBlockOf<W> b_;
  std::vector<A> divided_;  // A, where it was
  std::vector<T> narrow_;
  double largest_ = 0;
  double norm_ = 0;
  int exponent_ = 0;
  std::vector<int> back_;
  std::vector<double> row_scale_;
  std::vector<double> column_scale_;
  Loss loss_;
};

}  // namespace strata
