#pragma once
// The families of blocks of a mixed-precision factorization, beside those of tile_cholesky.hpp.

#include "cholesky/tile_cholesky.hpp"

namespace strata::mixed {

/// The sum A(m,k) − Σ L(m,j)·L(k,j)ᵀ, where its element is not that of L(m,k); temporary.
inline constexpr int kSums = 3;
/// How large each finished tile is, before it is rounded: a TileNorm (kernels/tile_norm.hpp).
inline constexpr int kNorms = 4;
/// Diagonal tile k as block (k, 0) in fp32, for the solves of sums in fp32; temporary.
inline constexpr int kSolvers = 5;
/// L(m,k) in another precision than it is kept in, for products; temporary. One family each for
/// fp64, fp32, fp16, fp8.
inline constexpr int kForms = 6;

}  // namespace strata::mixed
