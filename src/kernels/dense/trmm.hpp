#pragma once
// trmm: X ← −op(L)·X, the product with a triangle in place, op(L) being L or Lᴴ.
//
// Contract: operands X (m × n) and L (m × m; its lower triangle is read and not checked). The sign
// is that of gemm, so that a sum of both is −(L·X). The variant is 0 or kTransposeL. T is double or
// float, or std::complex of one of them.

#include "kernels/backend/kernel_table.hpp"
#include "kernels/dense/trsm.hpp"

namespace strata {

inline constexpr Operation trmm{.name = "trmm",
                                .operands = 2,
                                .access = {Access::read_write, Access::read},
                                .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                  return static_cast<double>(x[0].rows) *
                                         static_cast<double>(x[0].cols) *
                                         static_cast<double>(x[1].cols);
                                }};

template <class T>
void trmm_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void trmm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void trmm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
