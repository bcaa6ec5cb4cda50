#pragma once
// What counts as a symmetric matrix, dense or sparse.
//
// Contract: a pair of elements may differ by rounding, which is measured beside √(aᵢᵢ·aⱼⱼ): a
// Cholesky factorization itself is that of a matrix whose elements are off by multiples of
// ε·√(aᵢᵢ·aⱼⱼ) (Demmel 1989; Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
// theorem 10.5), so that what cancelled to rounding noise in one of them decides nothing.

#include <algorithm>
#include <cmath>

namespace strata {

/// For matrices made with 53 bits: some thousand roundings.
inline constexpr double kSymmetryTolerance = 1e-12;
/// For matrices made with 24 bits.
inline constexpr double kSymmetryToleranceFp32 = 1e-6;

/// Whether elements (i, j) and (j, i) are equal up to `tolerance` beside √(aᵢᵢ·aⱼⱼ), or beside the
/// larger of them where that is more: then the matrix is indefinite. W is double, or
/// std::complex<double>, of which b is the conjugate of element (j, i).
template <class W>
[[nodiscard]] bool is_symmetric_pair(W a, W b, double diagonal_i, double diagonal_j,
                                     double tolerance) {
  const double difference = std::abs(a - b);
  if (difference <= tolerance * std::max(std::abs(a), std::abs(b))) return true;
  // Roots first: a product of two elements may overflow.
  return difference <=
         tolerance * std::sqrt(std::abs(diagonal_i)) * std::sqrt(std::abs(diagonal_j));
}

}  // namespace strata
