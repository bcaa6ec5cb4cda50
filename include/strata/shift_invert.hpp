#pragma once
// The smallest eigenpairs of sparse symmetric matrices and pencils, by a factor: A·v = λ·M·v.
//
// Contract: A symmetric, M symmetric positive definite or absent (the unit matrix). With σ below
// all eigenvalues, A − σ·M is factored once (sparse_factor.hpp) and each step solves with it, so
// that a few dozen steps find what products with A find in thousands. Every pair is certified with
// A and M as they are given, whatever found it.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "strata/matrix_view.hpp"
#include "strata/sparse_factor.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

struct ShiftInvertOptions {
  std::int64_t k = 6;  ///< eigenpairs
  /// Below all eigenvalues: the nearer to them, the fewer steps. None: 0 where A is positive
  /// definite, and not singular to rounding; else one a little below the spectrum is sought, by a
  /// few factorizations.
  std::optional<double> sigma;
  double tolerance = 1e-10;     ///< of a bound, beside λ − σ
  std::int64_t basis_size = 0;  ///< vectors that are held; 0: from k
  std::int64_t restarts_max = 100;
  std::uint64_t seed = 1;             ///< of the vectors to begin with
  SparseCholeskyOptions factoring{};  ///< `shift` is not read; fp64
};

struct ShiftInvertInfo {
  bool ok = false;  ///< k pairs within the tolerance, and no other was found to be missing
  std::string why;  ///< in words, where not ok
  double sigma = 0;
  /// That of A − σ·M. Where it succeeded no eigenvalue is below σ, as far as `lost` is small
  /// beside 1.
  FactorInfo factor;
  double lost = 0;             ///< ‖L⁻¹·(A − σ·M)·L⁻ᵀ − I‖₂, measured
  std::vector<double> values;  ///< ascending, each as often as it is one
  /// |λ − an eigenvalue of the pencil| is at most this, and a share of λ − σ if v is in error by
  /// that share: (λ − σ)·δ/(1 − δ), δ = ‖A·v − λ·M·v‖/‖v‖ in the norms of (A − σ·M)⁻¹ and A − σ·M.
  /// Whether another eigenvalue lies further down it does not say.
  std::vector<double> bounds;
  std::vector<double> residuals;  ///< ‖A·v − λ·M·v‖₂, from products in twice the precision
  double orthogonality = 0;       ///< largest |vᵢᵀ·M·vⱼ − δᵢⱼ|
  std::int64_t converged = 0;     ///< pairs within the tolerance
  std::int64_t restarts = 0;
  std::int64_t solves = 0;  ///< right-hand sides
  std::int64_t factorizations = 0;
  RunReport report;        ///< of the last factorization
  RunReport solve_report;  ///< of all solves with it; `path` is empty if the host solved
  double seconds = 0;
};

/// The k smallest eigenpairs. vectors: n × k, of length 1 in the norm of M and orthogonal with it,
/// zeros where less was found. Block Lanczos' method with (A − σ·M)⁻¹·M and thick restarts (Grimes,
/// Lewis, Simon, "A shifted block Lanczos algorithm for solving sparse symmetric generalized
/// eigenproblems", SIAM J. Matrix Anal. Appl. 15, 1994; Wu, Simon 2000); eigenvalues that come
/// several times are sought by beginning anew, orthogonal to what is there, until nothing further
/// comes. Throws Error{numerical} naming two entries where A or M is not symmetric, a row where M
/// is not positive definite, and σ where A − σ·M is not: a σ below the spectrum is needed, there is
/// no factorization of indefinite matrices; else as SparseCholesky.
ShiftInvertInfo smallest_eigenpairs(const SparseMatrix& a, const SparseMatrix* mass,
                                    MatrixView<double> vectors,
                                    const ShiftInvertOptions& options = {});

}  // namespace strata
