// What is particular to symmetric matrices.
//
// Method: row c of H is known when a block begins at q_c, since Q_cᵀ·A·q_c = (Q_cᵀ·A·Q_c)·e_c by
// symmetry: the coupling with the vector before, or behind a restart with all that were kept. It is
// taken off A·q_c before anything else is done with it. Where the recurrence of the block is near
// that of Lanczos, little of the vectors before q_c comes back in the powers behind, and that is
// what matters. With W = Q_c·S + Q'·R' for w_0 … w_{k−1}, A·Q' follows from A·W, which is known to
// rounding δ, and from A·Q_c, which is known up to E, so that
//
//   the error of A·Q' = Q·H' is (δ − E·S)·R'⁻¹.
//
// S·R'⁻¹ above 1 lets errors grow from block to block and from cycle to cycle, whatever is done
// about H, because the space itself is off. They are followed here, as lengths of columns that are
// taken to be orthogonal to each other.

#include <algorithm>
#include <cmath>
#include <limits>

#include "krylov/arnoldi.hpp"

namespace strata {

std::vector<double> Arnoldi::known_products() const {
  const auto c = static_cast<std::size_t>(size());
  std::vector<double> known;
  for (const std::vector<double>& column : h_) known.push_back(c < column.size() ? column[c] : 0.0);
  return known;
}

std::vector<double> Arnoldi::relation_errors(const Block& block, const Gram& r) const {
  const auto c = static_cast<std::size_t>(block.column);
  const auto k = static_cast<std::size_t>(block.count);
  const Columns w = coordinates(block, r);
  // Column j of S·R'⁻¹, and of R'⁻¹ below it; the rows of the former are those before q_c.
  Columns inverse;
  std::vector<double> errors;
  const double rounding = std::numeric_limits<double>::epsilon() * options_.norm;
  for (std::size_t j = 0; j < k; ++j) {
    std::vector<double> column(c + k);
    std::copy_n(w[j].begin(), c, column.begin());
    column[c + j] = 1;
    for (std::size_t i = 0; i < j; ++i) {
      for (std::size_t l = 0; l < c + k; ++l) column[l] -= inverse[i][l] * w[j][c + i];
    }
    double square = 0;
    for (double& x : column) x /= w[j][c + j];
    for (std::size_t l = 0; l < c; ++l) square += std::pow(column[l] * errors_[l], 2);
    for (std::size_t i = 0; i <= j; ++i) {
      square += std::pow(rounding * length_of(w[i]) * column[c + i], 2);
    }
    errors.push_back(std::sqrt(square));
    inverse.push_back(std::move(column));
  }
  return errors;
}

}  // namespace strata
