#pragma once
// Sparse matrices of the benchmarks, generated.
//
// Contract: symmetric, with both triangles; the same bits on every machine that rounds as IEEE 754
// says. Throws Error{misuse} for a size that makes no matrix.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/sparse_matrix.hpp"

namespace strata::bench {

/// Which neighbours a point of a grid has.
enum class Stencil : std::uint8_t {
  points5,   ///< of a square: left and right, above and below
  points7,   ///< of a cube: along each axis
  points27,  ///< of a cube: along edges and diagonals, too
};

/// A Laplacian on side² or side³ points, x first, then y, then z, zero around them: −1 for each
/// neighbour, on the diagonal as many as a point inside has (4, 6 or 26).
[[nodiscard]] SparseMatrix stencil_matrix(Stencil stencil, std::int64_t side);

/// The seven-point Laplacian on side³ points.
[[nodiscard]] inline SparseMatrix laplacian_matrix(std::int64_t side) {
  return stencil_matrix(Stencil::points7, side);
}

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

/// Stiffness of a cube of side³ of these elements, of the same material, whose nodes with x = 0 do
/// not move and have no unknowns: order 3·side·(side + 1)². Nodes are numbered along x first, then
/// y, then z, and unknowns as above.
[[nodiscard]] SparseMatrix elastic_cube_matrix(std::int64_t side);

/// A matrix by its name: "2d5:N" and "3d7:N", "3d27:N" (stencil_matrix), "hex:N"
/// (elastic_cube_matrix). None if the name begins with none of these families. Throws
/// Error{misuse} for an N that is no number above 0, or too large for 2³¹ − 1 rows.
[[nodiscard]] std::optional<SparseMatrix> generated_matrix(const std::string& name);

/// Names of `count` such matrices, the families in turn, each from small to large: none takes more
/// than about a second to factor on one core.
[[nodiscard]] std::vector<std::string> matrix_collection(std::int64_t count);

/// The diagonal and what is below it; of a matrix that has entries only above the diagonal, those
/// transposed. Throws Error{input} naming two entries of both triangles that differ.
[[nodiscard]] SparseMatrix lower_triangle(const SparseMatrix& a);

/// D·A·D of a lower triangle, D diagonal, random by `seed` and within 5 % of the identity.
[[nodiscard]] SparseMatrix rescaled(const SparseMatrix& lower, std::uint64_t seed);

}  // namespace strata::bench
