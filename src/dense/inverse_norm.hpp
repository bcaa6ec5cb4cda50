#pragma once
// The norm of an inverse, estimated by a few solves, and the condition that follows from it.
//
// Contract: pure host code in the calling thread; equal operators give equal results. Estimates are
// norms of vectors that were computed, so never above ‖B‖ but for rounding.
//
// Method: Higham, Tisseur, "A block algorithm for matrix 1-norm estimation, with an application to
// 1-norm pseudospectra" (SIAM J. Matrix Anal. Appl. 21, 2000). A product of Bᵀ with signs is a
// lower bound of ‖Bᵀ‖∞ = ‖B‖₁, too. In complex numbers the transposed matrix is the conjugate
// transposed one, and the sign of x is x/|x|. A block costs little more than a column where a solve
// reads a large factor.

#include <complex>
#include <functional>
#include <utility>

#include "dense/dense_block.hpp"

namespace strata {

/// ‖B‖∞ of a symmetric B of order n, exactly up to order 8, by at most 5 products with blocks of 4
/// columns (up to order 8: one of n columns). Inf where a product is not finite.
[[nodiscard]] double estimate_symmetric_norm(std::int64_t n, const BlockSolver& apply);

/// ‖B‖₁ of any B, by as many products with B and Bᵀ (Bᴴ) together.
[[nodiscard]] double estimate_norm_one(std::int64_t n, const BlockSolver& apply,
                                       const BlockSolver& transposed);
[[nodiscard]] double estimate_norm_one(std::int64_t n,
                                       const BlockSolverOf<std::complex<double>>& apply,
                                       const BlockSolverOf<std::complex<double>>& transposed);

/// The operators of two estimates on blocks of their own, either of which may have no columns.
template <class T>
using BlockSolverPair = std::function<void(MatrixView<T> first, MatrixView<T> second)>;
/// ‖B‖₁ of two matrices at once, so that a solve reads a large factor once for both.
template <class T>
[[nodiscard]] std::pair<double, double> estimate_norms_one(std::int64_t n,
                                                           const BlockSolverPair<T>& apply,
                                                           const BlockSolverPair<T>& transposed);

/// ‖D·A⁻¹·D‖∞, D = diag(scale): `solve` is B ← A⁻¹·B.
[[nodiscard]] double estimate_scaled_inverse_norm(const std::vector<double>& scale,
                                                  const BlockSolver& solve);
[[nodiscard]] double estimate_scaled_inverse_norm(const std::vector<double>& scale,
                                                  const BlockSolverOf<std::complex<double>>& solve);

}  // namespace strata
