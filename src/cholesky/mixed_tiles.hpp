#pragma once
// The families of blocks of a mixed-precision factorization, beside those of tile_cholesky.hpp.

#include "cholesky/tile_cholesky.hpp"

namespace strata::mixed {

/// The sum A(m,k) − Σ L(m,j)·L(k,j)ᵀ, where its element is not that of L(m,k); temporary.
inline constexpr int kSums = 3;
/// How large each finished tile is, before it is rounded: a TileNorm (kernels/dense/tile_norm.hpp).
inline constexpr int kNorms = 4;
/// What solves in less than fp64 take in place of diagonal tile k, as block (k, 0): where "fp32" is
/// fp32 the tile in fp32, where it is fp16x2 the transposed inverse (tile_inverse.hpp); temporary.
inline constexpr int kSolvers = 5;
/// L(m,k) in another precision than it is kept in, for products; temporary. One family each for
/// fp64, fp32, fp16, fp8.
inline constexpr int kForms = 6;

}  // namespace strata::mixed
