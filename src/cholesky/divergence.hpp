#pragma once
// The Kullback-Leibler divergence between N(0, Σ) and N(0, L̃·L̃ᵀ) where the factors of both are at
// hand.
//
// Contract: KL(N(0, Σ) ‖ N(0, M)), Σ = L·Lᵀ the truth and M = L̃·L̃ᵀ what stands for it, in nats;
// it is not symmetric. Host code; memory for two chunks of columns. For orders at which L cannot be
// computed, log_determinant.hpp estimates the same.

#include <cstdint>
#include <functional>

#include "dense/dense_block.hpp"

namespace strata {

/// Fills OUT, n × c, with columns first … first + c − 1 of a lower triangular factor; zeros above
/// its diagonal.
using FactorColumns = std::function<void(std::int64_t first, MatrixView<double> out)>;

struct Divergence {
  /// A sum of terms none of which is negative, nor the difference of large numbers: it is right to
  /// some digits where it is 1e-13 and n is thousands. NaN if a diagonal element of L̃⁻¹·L is not
  /// positive.
  double divergence = 0;
  double log_determinant_difference = 0;  ///< log|Σ| − log|M|

  /// |ℓ(0; Σ) − ℓ̃(0)|, what the determinants alone change in a log-likelihood.
  [[nodiscard]] double likelihood_difference_at_zero() const {
    return std::abs(log_determinant_difference) / 2;
  }
};

/// From `exact`, L, and `approximate`, L̃, with `solve_lower`, B ← L̃⁻¹·B in fp64, for `chunk`
/// columns at a time: n³/2 multiplications by a solver that does not know of the zeros. The
/// subtraction L − L̃ is exact where elements are within a factor of two of each other (Sterbenz),
/// so the error is the solver's, of the order of κ(L̃)·n·u at worst, relative to E = L̃⁻¹·(L − L̃)
/// and so to the divergence, however small that is. Throws Error{misuse} for a chunk below 1.
[[nodiscard]] Divergence kullback_leibler(std::int64_t n, const FactorColumns& exact,
                                          const FactorColumns& approximate,
                                          const BlockSolver& solve_lower, std::int64_t chunk = 256);

}  // namespace strata
