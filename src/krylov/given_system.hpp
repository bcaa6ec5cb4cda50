#pragma once
// A·x = b as its caller gave it: residuals that are certified, and the best x that was found.
//
// Contract: residuals are of A, b and x as they are in memory, from products in twice the precision
// (twofold.hpp), so they are right to the last digits that are told, also below the rounding of
// b − A·x. Rows whose products underflow are formed again with exponents of their own, and what is
// below the least double is told as that, not as 0. Residuals are told times 2^exponent(), which is
// 0 unless squares of b might leave the range of doubles; A is scaled for the same reason. An x
// with which a residual is not finite is never the best.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "scalar/scaled_number.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

/// What is known of b and the range of A: ‖Aᵀy‖ beside ‖|A|ᵀ|y|‖. Where that is no more than
/// rounding for a y with yᵀb > 0, b is not in the range of A.
struct RangeEvidence {
  double residual = 1;  ///< y = b − A·x
  /// The least of the y that some steps of conjugate gradients for AᵀA·z = Aᵀb come to from there
  /// (CGLS: Hestenes, Stiefel, 1952).
  double left = 1;
};

class GivenSystem {
 public:
  /// `a`, `b` and the crew outlive it; both are finite, b is not zero. The best x is zero at first.
  GivenSystem(const SparseMatrix& a, std::span<const double> b, WorkCrew& crew);

  /// Lengths are formed with each row times one of these, too; they outlive it. To be called before
  /// an x is offered.
  void also_scale_rows(std::span<const double> scale);

  [[nodiscard]] int exponent() const noexcept { return rhs_exponent_; }
  /// 2^exponent()·b, and its length.
  [[nodiscard]] std::span<const double> rhs() const noexcept { return b_; }
  [[nodiscard]] double length() const noexcept { return length_; }
  /// 2^exponent()·(b − A·x).
  [[nodiscard]] std::vector<double> residual(std::span<const double> x) const;

  /// Takes x if it is as good as the best, or better; the length of its residual, NaN if an element
  /// of x is not finite.
  double offer(std::span<const double> x);
  [[nodiscard]] const std::vector<double>& best() const noexcept { return best_; }
  [[nodiscard]] double best_residual() const noexcept { return best_residual_; }
  /// ‖R·(b − A·x)‖ of the best x, and ‖R·b‖, where R are the scales of rows.
  [[nodiscard]] ScaledNumber best_with_scaled_rows() const noexcept { return best_scaled_; }
  [[nodiscard]] ScaledNumber rhs_with_scaled_rows() const noexcept { return rhs_scaled_; }
  /// That of the best x, whose residual is not 0.
  [[nodiscard]] RangeEvidence evidence_of_range() const;

 private:
  /// An x whose residual is asked for.
  struct Unknowns {
    std::span<const double> given;
    std::vector<double> shifted;  ///< as the scaled A is multiplied with it; empty where that is x
    bool apart = false;           ///< a power of two for all of A or x would lose elements
  };
  struct Lengths {
    ScaledNumber plain;
    ScaledNumber scaled;  ///< with the scales of rows
  };
  [[nodiscard]] Unknowns unknowns_of(std::span<const double> x) const;
  /// Rows begin … end − 1 of b − A·x, however small.
  [[nodiscard]] std::vector<ScaledNumber> rows_of_residual(const Unknowns& x, std::int64_t begin,
                                                           std::int64_t end) const;
  /// Row i of b − A·x by products whose exponents are kept apart.
  [[nodiscard]] ScaledNumber row_apart(std::int64_t i, std::span<const double> x) const;
  /// rows(begin, end) gives some rows of a vector; lengths of blocks are summed in their order.
  template <class Rows>
  [[nodiscard]] Lengths lengths_of(const Rows& rows) const;

  WorkCrew& crew_;
  const SparseMatrix& given_;
  std::span<const double> given_rhs_;
  std::span<const double> row_scale_;  ///< empty: nobody asks
  int matrix_exponent_, rhs_exponent_;
  SparseMatrix scaled_;  ///< 2^matrix_exponent_·A; empty where that is A
  const SparseMatrix& a_;
  bool matrix_loses_;
  std::vector<double> scaled_rhs_;  ///< empty where it is b
  std::span<const double> b_;
  double length_;
  std::vector<double> best_;
  double best_residual_;
  ScaledNumber rhs_scaled_, best_scaled_;
};

}  // namespace strata
