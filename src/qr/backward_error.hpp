#pragma once
// BackwardError: how far V may be from Q·R, and how far R from the triangle of V, pass by pass.
//
// Contract: V = (X + F)·P + E for what the passes so far have made: X as it is stored, P the
// product of the triangles. Each solve and each column that is dropped is told; then bounds of E,
// column by column, and of F follow from lengths and triangles alone, without another pass. First
// order: where many roundings of n columns add up, their signs are taken to be independent (Higham
// and Mary, "A new approach to probabilistic rounding error analysis", 2019), with 8 standard
// deviations.

#include <cmath>
#include <cstdint>
#include <vector>

#include "dense/square_matrix.hpp"

namespace strata {

/// X_k·diag(d) = X_{k+1}·R, rounded as it was computed.
struct SolveStep {
  const SquareMatrix<DoubleDouble>& r;       ///< ones on the diagonal where columns are zeros
  const SquareMatrix<DoubleDouble>& before;  ///< P before this solve, …
  const SquareMatrix<DoubleDouble>& after;   ///< … and behind it
  const std::vector<double>& scales;         ///< d, powers of two
  const std::vector<bool>& zero;             ///< columns of X_{k+1} that are zeros
  std::vector<double> lengths;  ///< of the other columns of X_{k+1}, 0 of those dropped next, …
  double norm = 1;              ///< … and its 2-norm, from above
  bool wide = false;            ///< computed in twice the digits, rounded once
  double inverse = 0;           ///< ‖R⁻¹‖_F of R with unit columns, from above
};

/// How many times the largest BackwardError::residual() of n columns a combination of their errors
/// may be, with coefficients whose squares add up to 1. That of 64 roundings and more is 8 standard
/// deviations, which a combination does not exceed either; that of fewer is the sum of their sizes,
/// as many as a column has before it.
[[nodiscard]] double combined_residuals(std::int64_t n);

class BackwardError {
 public:
  /// unit: 2^-p of the precision of V; wide_unit: of wide sums and solves. least: where a column is
  /// shorter R may have fewer digits, since its elements are multiples of `subnormal`.
  BackwardError(std::int64_t n, double unit, double wide_unit, double least, double subnormal);

  /// The scales of the first Gram matrix, beside which lengths are taken.
  void begin(const std::vector<double>& scales);
  void solved(const SolveStep& step);
  /// Column j of X·diag(scales) is replaced by a combination of those before it, `distance` away.
  void dropped(std::int64_t j, double distance, const SquareMatrix<DoubleDouble>& before,
               const std::vector<double>& scales);
  /// What else was done to each column, beside its length.
  void add(double relative) { beside_ += relative; }

  /// The largest ‖v_j − Q·r_j‖/‖v_j‖, with R as it is rounded for the caller. lengths: in the place
  /// of ‖v_j‖, which is that of r_j; may be empty.
  [[nodiscard]] double residual(const SquareMatrix<DoubleDouble>& r,
                                const std::vector<double>& lengths) const;
  /// ‖F‖_F for an X of unit columns.
  [[nodiscard]] double spread() const { return std::sqrt(static_cast<double>(n_)) * spread_; }

 private:
  [[nodiscard]] double& at(std::vector<double>& of, std::int64_t j) {
    return of[static_cast<std::size_t>(j)];
  }
  void add_roundings(std::int64_t j, double count, double size);

  std::int64_t n_;
  double unit_;
  double wide_unit_;
  double least_;
  double subnormal_;
  std::vector<double> frame_;   ///< powers of two that take columns of V to lengths near 1
  std::vector<double> sum_;     ///< of roundings in each column: of their sizes, in units, …
  std::vector<double> square_;  ///< … and of the squares of these
  std::vector<double> other_;   ///< what is no rounding to T
  double beside_ = 0;
  double spread_ = 0;  ///< the longest column of F beside that of X
};

}  // namespace strata
