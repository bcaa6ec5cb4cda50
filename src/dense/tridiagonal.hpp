#pragma once
// The eigenvalues of a small symmetric tridiagonal matrix, with what a quadrature needs of its
// eigenvectors.
//
// Contract: pure functions of host data.

#include <vector>

namespace strata {

struct TridiagonalSpectrum {
  std::vector<double> values;   ///< in no order
  std::vector<double> weights;  ///< squares of the first elements of their eigenvectors; sum 1
};

/// `off` has one element less than `diagonal`. A NaN in either makes all values NaN.
[[nodiscard]] TridiagonalSpectrum spectrum_of(std::vector<double> diagonal,
                                              std::vector<double> off);

}  // namespace strata
