#pragma once
// A general system A·X = B in the middle of the range of numbers, with the scales of its rows and
// columns.
//
// Contract: A is what the matrix is given in; B is in fp64, or in complex128 where A is complex. A
// whose largest element is near an end of the range of what it is factored in is divided by a power
// of two, a column of B likewise. What divided elements lose as subnormal numbers is known (Loss).
// With C_j a power of two near 1 / max_i |a_ij| and R_i = 1 / Σ_j |a_ij|·C_j the matrix S = R·A·C
// has ‖S‖∞ = 1: its condition is what is left when scaling has done what it can (van der Sluis,
// "Condition numbers and equilibration of matrices", Numer. Math. 14, 1969). Where rows or columns
// are so far apart from 1, C and R balance the sums of both (Sinkhorn, Knopp, "Concerning
// nonnegative matrices and doubly stochastic matrices", Pacific J. Math. 21, 1967): any units of
// rows and columns then give the same S.

#include <vector>

#include "dense/certified_solution.hpp"
#include "lu/matrix_products.hpp"
#include "lu/slabbed_matrix.hpp"
#include "scalar/complex.hpp"

namespace strata {

template <class A>
class ScaledSystem {
 public:
  using W = WideOf<A>;

  /// `precision`: of the factors, that of A or a narrower one. What the system is of outlives it.
  ScaledSystem(MatrixView<const A> a, MatrixView<const W> b, Element precision)
      : ScaledSystem(SlabbedMatrix<A>(a), b, precision) {}
  ScaledSystem(SlabbedMatrix<A> a, MatrixView<const W> b, Element precision);

  [[nodiscard]] std::int64_t n() const noexcept { return a_.n(); }
  [[nodiscard]] Element precision() const noexcept { return precision_; }
  [[nodiscard]] const SlabbedMatrix<A>& a() const noexcept { return a_; }
  [[nodiscard]] MatrixView<const W> b() const noexcept { return b_.view(); }
  [[nodiscard]] double largest() const noexcept { return largest_; }
  [[nodiscard]] double norm_inf() const noexcept { return norm_; }
  /// A is 2 to this times what is factored.
  [[nodiscard]] int exponent() const noexcept { return exponent_; }
  /// x of column j times 2 to this is the solution of what was given.
  [[nodiscard]] const std::vector<int>& back() const noexcept { return back_; }
  [[nodiscard]] const std::vector<double>& row_scale() const noexcept { return row_scale_; }
  [[nodiscard]] const std::vector<double>& column_scale() const noexcept { return column_scale_; }
  /// Whether rows are in units so different that the pivot of a column would be that of the
  /// largest unit, and no longer that of the least growth.
  [[nodiscard]] bool rows_are_apart() const noexcept { return rows_are_apart_; }
  [[nodiscard]] const Loss& loss() const noexcept { return loss_; }
  /// A product with a(), by which copies of it are told from it.
  [[nodiscard]] const ProbeProduct<A>& probe() const noexcept { return probe_; }

 private:
  struct Scales {
    std::vector<int> row, column;           // exponents
    std::vector<double> of_row, of_column;  // sums of magnitudes, scaled
    double spread = 0;                      // mean size of exponents of elements, scaled
  };

  void scale_columns_and_rows();
  /// By 2 to `exponent`.
  void divide(int exponent);
  [[nodiscard]] Scales balanced(bool rows_first) const;
  [[nodiscard]] double excess(const Scales& s) const;
  void balance_where_far_apart();
  void measure_loss(const SlabbedMatrix<A>& given);

  SlabbedMatrix<A> a_;
  DenseBlockOf<W> b_;
  Element precision_;
  std::vector<A> divided_;  // A, where it was
  double largest_ = 0;
  double norm_ = 0;
  int exponent_ = 0;
  std::vector<int> back_;
  std::vector<double> row_scale_;
  std::vector<double> column_scale_;
  bool rows_are_apart_ = false;
  Loss loss_;
  ProbeProduct<A> probe_;
};

}  // namespace strata
