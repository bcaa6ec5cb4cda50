#pragma once
// laset: X ← the block of the identity at its place, ones where the row and the column in the whole
// matrix are the same, else zeros.
//
// Contract: one operand, X (any extents), written. T is double or float. A unit of work is an
// element; writing takes the time.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr Operation laset{.name = "laset",
                                 .operands = 1,
                                 .access = {Access::write},
                                 .work =
                                     [](std::span<const BlockExtent> x, std::uint32_t) {
                                       return static_cast<double>(x[0].rows) *
                                              static_cast<double>(x[0].cols);
                                     },
                                 .flops_per_work = 0,
                                 .nominal_cost = 10};

template <class T>
void laset_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void laset_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void laset_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
