#pragma once
// Eigenvalues of small matrices on the host: projected problems of Krylov methods.
//
// Contract: orders of a few hundred; sums in a fixed order, so equal inputs give equal bits,
// whatever the number of threads. Files that include this are compiled with -ffp-contract=off.

#include <complex>
#include <cstdint>
#include <vector>

#include "base/work_crew.hpp"
#include "dense/square_matrix.hpp"

namespace strata {

/// Eigenvalues of an upper Hessenberg matrix (what is below the subdiagonal is not read);
/// conjugates follow each other, the one with the positive imaginary part first. Empty where 100·n
/// steps of QR do not converge, or an element is not finite.
[[nodiscard]] std::vector<std::complex<double>> hessenberg_eigenvalues(SquareMatrix<double> h);

/// Eigenpairs of a symmetric matrix, of which the lower triangle is read.
struct SymmetricEigen {
  std::vector<double> values;    ///< ascending; empty where QL does not converge
  SquareMatrix<double> vectors;  ///< orthonormal, column j belongs to value j
};
[[nodiscard]] SymmetricEigen symmetric_eigen(SquareMatrix<double> a, WorkCrew& crew);

}  // namespace strata
