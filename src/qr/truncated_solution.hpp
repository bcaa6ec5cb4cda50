#pragma once
// Solutions of R·x = c with the columns of R that are nearly combinations of others left out.
//
// Contract: R is square, upper triangular, finite, and may be singular. Nothing is known of the
// error of x beside that of all columns; but x is as small as the columns that are taken allow.

#include <cstdint>
#include <functional>
#include <vector>

#include "dense/square_matrix.hpp"
#include "qr/residual_products.hpp"

namespace strata {

/// R·P = H·T by reflections, P so that the column taken next is the longest beside those before.
class PivotedTriangle {
 public:
  /// Columns and rows of R that are not among `dropped` (in ascending order).
  PivotedTriangle(const SquareMatrix<DoubleDouble>& r, const std::vector<std::int64_t>& dropped);

  /// Numbers of columns worth trying, in ascending order: as many as have diagonal elements above
  /// 10⁻¹⁶, 10⁻¹⁵ … of the first, and all.
  [[nodiscard]] std::vector<std::int64_t> counts() const;
  /// x of n elements, zeros but in the first `count` columns, with the least ‖c − R·x‖; c has n.
  [[nodiscard]] std::vector<double> solve(std::int64_t count, std::vector<double> c) const;
  /// The same for RᵀR·x = g beside these columns.
  [[nodiscard]] std::vector<double> solve_squared(std::int64_t count,
                                                  const std::vector<double>& g) const;

 private:
  [[nodiscard]] double& at(std::int64_t i, std::int64_t j) {
    return t_[static_cast<std::size_t>(i + j * m_)];
  }
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return t_[static_cast<std::size_t>(i + j * m_)];
  }
  void reflect(std::int64_t j);
  [[nodiscard]] std::vector<double> placed(std::int64_t count, std::vector<double> y) const;

  std::int64_t n_;
  std::int64_t m_;                  ///< columns that are kept
  std::vector<std::int64_t> kept_;  ///< in the order in which they are taken
  std::vector<std::int64_t> rows_;
  std::vector<double> t_;  ///< T, and the reflections below its diagonal, their first elements in …
  std::vector<double> head_;
};

/// ‖b − A·x‖ and Aᵀ·(b − A·x); an infinite length for an x that cannot be written.
using MeasuredResidual = std::function<ResidualProducts(const std::vector<double>& x)>;

/// Puts the solution of so many columns of R, refined, in the place of x whose residual is the
/// least, if it is below that of x. c: Qᵀb.
void improve(std::vector<double>& x, const PivotedTriangle& r, const std::vector<DoubleDouble>& c,
             const MeasuredResidual& measured);

}  // namespace strata
