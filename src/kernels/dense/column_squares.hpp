#pragma once
// column_squares: s_j ← s_j + Σ_i w_ij², the squared lengths of the columns of a block.
//
// Contract: operands S (r × 1, always double) and W (m × r, of type T). Squares and sums are double
// whatever T. The order of the sum follows from m alone, so that a column gives the same bits in a
// block of any width. A unit of work is a floating-point operation; reading W is what takes time.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr Operation column_squares{.name = "column_squares",
                                          .operands = 2,
                                          .access = {Access::read_write, Access::read},
                                          .work =
                                              [](std::span<const BlockExtent> x, std::uint32_t) {
                                                return 2 * static_cast<double>(x[1].rows) *
                                                       static_cast<double>(x[1].cols);
                                              },
                                          .nominal_cost = 25};

/// In plain loops, from the first row to the last. T: double, float.
template <class T>
void column_squares_reference(Queue& queue, const KernelCalls& calls,
                              const KernelParameters& parameters);
/// For the CPU. T: double, float.
template <class T>
void column_squares_host(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters);
/// For a GPU, see column_squares_cuda.cu. T: double, float.
template <class T>
void column_squares_cuda(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters);

}  // namespace strata
