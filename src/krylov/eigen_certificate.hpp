#pragma once
// What is certified of the eigenpairs of a symmetric matrix.
//
// Contract: from the matrix and a vector alone, whatever method found it; residuals are formed in
// twice the precision (twofold.hpp), so bounds hold far below the rounding of A·v. Equal inputs
// give equal bits.

#include <cstdint>
#include <span>

#include "strata/sparse_matrix.hpp"

namespace strata {

struct CertifiedPair {
  double value = 0;     ///< Rayleigh's quotient θ
  double residual = 0;  ///< ‖A·v − θ·v‖₂
  double bound = 0;     ///< an eigenvalue of the symmetric part of A is as near to θ, or nearer
  /// The bound or the margin is not small beside θ, and θ is not zero within the tolerance either.
  bool unresolved = false;
};

struct CertifiedMatrix {
  const SparseMatrix& a;
  double norm = 0;       ///< the largest row sum of |A|
  double asymmetry = 0;  ///< a bound of ‖A − Aᵀ‖₂/2
  double margin = 0;     ///< an eigenvalue that is further out by less may have been missed
  double smallest = 0;   ///< the least |a_ij| that is not 0 in the matrix as given; 0: underflows
};

/// v is not zero. θ counts as zero if |θ| and the bound are at most 100·tolerance·‖|A|·|v|‖₂/‖v‖₂:
/// that is beside the terms that cancel in A·v, not beside the largest of the matrix; or if the
/// bound is nothing beside any element of A.
[[nodiscard]] CertifiedPair certified(const CertifiedMatrix& of, std::span<const double> v,
                                      double tolerance);

/// CertifiedMatrix::smallest of 2^exponent·A; 1 of zeros alone.
[[nodiscard]] double smallest_of(const SparseMatrix& a, int exponent);

/// A bound of ‖A − Aᵀ‖₂/2: half of the largest row sum of |A − Aᵀ|; A is square.
[[nodiscard]] double asymmetry_of(const SparseMatrix& a);

}  // namespace strata
