#pragma once
// invert_factor and multiply_inverse: the solve X·Lᵀ = W as a product with the inverse.
//
// Why: a triangular solve leaves the tensor cores idle. Where the solution is rounded to few bits
// anyway, three products of binary16 planes are as good and several times as fast.
//
// Contract: invert_factor: U ← L⁻ᵀ, operands U (n × n, fp16x2, written; zero below the diagonal)
// and L (n × n, fp64, its lower triangle). multiply_inverse: W ← W·U, operands W (m × n, fp64 or
// fp32) and U. W is taken in fp16x2, too; of the products of planes the one of the two second ones
// is left out; sums are in fp32. Values of both: TileScales, of which U holds 2^inverse times the
// inverse and W is scaled by 2^sum. What is larger than binary16 holds makes W infinite or NaN,
// never wrong. The error is that of the precision times |W|·|L⁻ᵀ|, which the condition of L may
// make larger than that of a solve by substitution.

#include "kernels/dense/tile_scales.hpp"

namespace strata {

inline constexpr Operation invert_factor{.name = "invert_factor",
                                         .operands = 2,
                                         .access = {Access::write, Access::read},
                                         .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                           const auto n = static_cast<double>(x[0].cols);
                                           return n * n * n;
                                         }};

inline constexpr Operation multiply_inverse{
    .name = "multiply_inverse",
    .operands = 2,
    .access = {Access::read_write, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      const auto n = static_cast<double>(x[0].cols);
      return static_cast<double>(x[0].rows) * n * n;
    }};

/// In plain loops, in fp64.
void invert_factor_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
/// By BLAS.
void invert_factor_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// By the fused tile kernel.
void invert_factor_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

/// The same. T, of W: double, float.
template <class T>
void multiply_inverse_reference(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters);
template <class T>
void multiply_inverse_host(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);
/// By tensor cores.
template <class T>
void multiply_inverse_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);

}  // namespace strata
