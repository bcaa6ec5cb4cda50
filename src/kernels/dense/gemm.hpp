#pragma once
// gemm: C ← C − op(A)·op(B), op(X) being X or its conjugate transpose Xᴴ, of real numbers Xᵀ.
//
// Contract: operands C (m × n), A (m × k, or k × m if it enters transposed), B (k × n, or n × k).
// The variant says which enter transposed. T is double or float, or std::complex of one of them, or
// the operands are in elements of few bits (mixed_products.hpp), with C in fp64 or fp32.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// Variant bits of products.
inline constexpr std::uint32_t kTransposeA = 1;
inline constexpr std::uint32_t kTransposeB = 2;

inline constexpr Operation gemm{
    .name = "gemm",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t variant) {
      const std::int64_t inner = (variant & kTransposeA) != 0 ? x[1].rows : x[1].cols;
      return 2 * static_cast<double>(x[0].rows) * static_cast<double>(x[0].cols) *
             static_cast<double>(inner);
    }};

template <class T>
void gemm_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void gemm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void gemm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
