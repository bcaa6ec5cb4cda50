#pragma once
// Jacobi's method for the eigenvalues of small symmetric matrices whose elements differ in size.
//
// Contract: orders of a few hundred; a fixed order of operations, so equal inputs give equal bits.
// Files that include this are compiled with -ffp-contract=off.

#include <cstdint>

#include "dense/small_eigen.hpp"

namespace strata {

/// All eigenpairs of a symmetric matrix, whose lower triangle is read; values ascending.
/// Small eigenvalues of a matrix that is graded, or whose rows are of different units, have digits
/// of their own (Demmel, Veselić, "Jacobi's method is more accurate than QR", 1992), where those of
/// a reduction to tridiagonal form are in error by rounding of the largest elements. Empty where
/// rotations would change more than `work_max` elements of A.
[[nodiscard]] SymmetricEigen jacobi_eigen(SquareMatrix<double> a, std::int64_t work_max);

}  // namespace strata
