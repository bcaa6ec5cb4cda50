#pragma once
// Sparse matrices of the benchmarks, generated.

#include <cstdint>

#include "strata/sparse_matrix.hpp"

namespace strata::bench {

/// The seven-point Laplacian on side³ points: 6 on the diagonal, −1 beside it.
[[nodiscard]] SparseMatrix laplacian_matrix(std::int64_t side);

/// Stiffness of a bar of p × q × r nodes, p, q, r >= 2: unit cubes with trilinear displacements, an
/// isotropic material of Young's modulus 1 and Poisson's ratio 0.3. Unknown 3·node + c is the
/// displacement of a node along axis c; nodes are numbered along x first, then y, then z. Where
/// `fixed` the nodes of the plane z = 0 do not move: their rows and columns are those of the
/// identity, so that the order stays 3·p·q·r. 9 × 9 × 257 nodes are 62,451 unknowns, the order of
/// the matrix `cant` of the SuiteSparse collection. Integrals by Gauss's rule of 2 × 2 × 2 points,
/// exact for a cube (Zienkiewicz and Taylor, The Finite Element Method, volume 1).
[[nodiscard]] SparseMatrix bar_matrix(std::int64_t p, std::int64_t q, std::int64_t r,
                                      bool fixed = true);

/// The bar of side × side × (32·(side − 1) + 1) nodes: `side` 9 is that of 62,451 unknowns.
[[nodiscard]] inline SparseMatrix cantilever_matrix(std::int64_t side) {
  return bar_matrix(side, side, 32 * (side - 1) + 1);
}

}  // namespace strata::bench
