#pragma once
// trsm: X ← op(L)⁻¹·X, or X ← X·op(L)⁻¹, op(L) being L or Lᴴ, of real numbers Lᵀ.
//
// Contract: operands X (m × n) and L (square, of order m on the left and n on the right; its lower
// triangle is read and not checked). The variant says the side and whether L enters transposed. T
// is double or float, or std::complex of one of them. On a GPU, of real numbers solved with from
// the left, the bits of a column of X depend on L and that column alone, among at most kMostColumns
// (solve_columns_cuda.hpp).

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// Variant bits of triangular solves.
inline constexpr std::uint32_t kTransposeL = 1;
inline constexpr std::uint32_t kRightSide = 2;

inline constexpr Operation trsm{.name = "trsm",
                                .operands = 2,
                                .access = {Access::read_write, Access::read},
                                .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                  return static_cast<double>(x[0].rows) *
                                         static_cast<double>(x[0].cols) *
                                         static_cast<double>(x[1].cols);
                                }};

template <class T>
void trsm_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void trsm_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void trsm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
