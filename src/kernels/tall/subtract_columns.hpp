#pragma once
// subtract_columns: X ← X − Y·S, for rows of two blocks of columns of a tall matrix.
//
// Contract: operands X (h × p), Y (h × q), both in fp64 or both in fp32, and S (q × p, fp64). Each
// element is computed in fp64, a chain of fused multiply-adds over the columns of Y in ascending
// order, x ← fma(−s_ik, y_ri, x), and rounded to the element of X last; so all backends give the
// same bits.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr Operation subtract_columns{
    .name = "subtract_columns",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work =
        [](std::span<const BlockExtent> x, std::uint32_t) {
          return 2 * static_cast<double>(x[0].rows) * static_cast<double>(x[0].cols) *
                 static_cast<double>(x[1].cols);
        },
    .nominal_cost = 2};

inline constexpr Elements kSubtractColumnsElements[] = {
    {Element::fp64, Element::fp64, Element::fp64}, {Element::fp32, Element::fp32, Element::fp64}};

inline void add_subtract_columns(KernelTable& table, KernelFunction kernel) {
  for (const Elements& elements : kSubtractColumnsElements)
    table.set(subtract_columns, elements, kernel);
}

/// In plain loops.
void subtract_columns_reference(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters);
/// For the CPU: 32 rows at a time in vectors; fp32 as the reference.
void subtract_columns_host(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);
/// For a GPU.
void subtract_columns_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);

}  // namespace strata
