#pragma once
// A·x = b as its caller gave it: residuals that are certified, and the best x that was found.
//
// Contract: residuals are of A, b and x as they are in memory, from products in twice the precision
// (twofold.hpp), so they are right to the last digits that are told, also below the rounding of
// b − A·x. They are told times 2^exponent(), which is 0 unless squares of b might leave the range
// of doubles; A is scaled for the same reason. An x with which a residual is not finite is never
// the best.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

class GivenSystem {
 public:
  /// `a` and `b` outlive it; both are finite, b is not zero. The best x is zero at first.
  GivenSystem(const SparseMatrix& a, std::span<const double> b);

  [[nodiscard]] int exponent() const noexcept { return rhs_exponent_; }
  /// 2^exponent()·b, and its length.
  [[nodiscard]] std::span<const double> rhs() const noexcept { return b_; }
  [[nodiscard]] double length() const noexcept { return length_; }
  /// 2^exponent()·(b − A·x).
  [[nodiscard]] std::vector<double> residual(std::span<const double> x);

  /// Takes x if it is as good as the best, or better; the length of its residual, NaN if an element
  /// of x is not finite.
  double offer(std::span<const double> x);
  [[nodiscard]] const std::vector<double>& best() const noexcept { return best_; }
  [[nodiscard]] double best_residual() const noexcept { return best_residual_; }

 private:
  WorkCrew crew_;
  SparseMatrix scaled_;  ///< 2^matrix_exponent_·A; empty where that is A
  const SparseMatrix& a_;
  int matrix_exponent_, rhs_exponent_;
  std::vector<double> scaled_rhs_;  ///< empty where it is b
  std::span<const double> b_;
  double length_;
  std::vector<double> best_;
  double best_residual_;
};

}  // namespace strata
