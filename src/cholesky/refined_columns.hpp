#pragma once
// RefinedColumns: what the methods of refinement share, the columns with their computed residuals.
//
// Contract: x changes only by `measure`, which takes a change of a column if the residual that it
// computes anew says that the column is better for it. Operators are counted. For refinement*.cpp.

#include <vector>

#include "cholesky/refinement.hpp"

namespace strata {

class RefinedColumns {
 public:
  RefinedColumns(const BlockOperator& apply, const BlockSolver& precondition,
                 MatrixView<const double> b, MatrixView<double> x, const RefinementOptions& options,
                 Refinement& out);

  [[nodiscard]] std::int64_t n() const noexcept { return b_.rows; }
  [[nodiscard]] std::int64_t count() const noexcept { return b_.cols; }
  [[nodiscard]] const RefinementOptions& options() const noexcept { return options_; }
  [[nodiscard]] RefinedColumn& operator[](std::int64_t j) {
    return out_.columns[static_cast<std::size_t>(j)];
  }
  /// Whether column j is not done.
  [[nodiscard]] bool goes_on(std::int64_t j) const { return goes_on_[static_cast<std::size_t>(j)]; }
  void stop(std::int64_t j, RefinementStop why);
  /// A column that stopped as indefinite goes on, by another method.
  void revive(std::int64_t j) { goes_on_[static_cast<std::size_t>(j)] = true; }

  [[nodiscard]] const double* x(std::int64_t j) const { return x_.column(j); }
  [[nodiscard]] const double* residual(std::int64_t j) const { return out_.residuals.column(j); }
  /// norm·‖x‖∞ + ‖b‖∞ for a column with that ‖x‖∞.
  [[nodiscard]] double scale(std::int64_t j, double norm_x) const;

  void apply(const DenseBlock& v, DenseBlock& y);
  void precondition(DenseBlock& v);

  /// Computes the residuals of x + change in these columns, which all go on; says of which columns
  /// the change was taken, because it lowers the backward error. A column that reaches the
  /// tolerance stops, and so does one whose residual is not finite or, if `final`, one that has not
  /// halved its error or has taken its steps.
  std::vector<bool> measure(const std::vector<bool>& which, const DenseBlock& change, bool final);

 private:
  void judge(std::int64_t j, double error, double before, bool final);

  const BlockOperator& apply_;
  const BlockSolver& precondition_;
  MatrixView<const double> b_;
  MatrixView<double> x_;
  const RefinementOptions& options_;
  Refinement& out_;
  std::vector<bool> goes_on_;
  std::vector<double> norm_b_;
};

/// Refines the columns that go on.
void refine_by_conjugate_gradients(RefinedColumns& columns, Refinement& out);
void refine_by_gmres(RefinedColumns& columns, bool left);

}  // namespace strata
