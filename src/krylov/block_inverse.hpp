#pragma once
// The inverse of the diagonal blocks of a sparse matrix: the block-Jacobi preconditioner.
//
// Contract: A is square. Block i has the rows and columns i·size … (i + 1)·size − 1, the last one
// what is left. Equal inputs give equal bits. Throws Error{input} naming the rows of a block that
// is singular to working precision, and Error{misuse} for sizes outside of 1 … kJacobiBlockMax.

#include <cstdint>

#include "strata/sparse_matrix.hpp"

namespace strata {

/// diag(B_0⁻¹, B_1⁻¹, …) as a sparse matrix; elements of an inverse that are zero are left out.
[[nodiscard]] SparseMatrix inverse_of_blocks(const SparseMatrix& a, std::int64_t size,
                                             const char* what);

}  // namespace strata
