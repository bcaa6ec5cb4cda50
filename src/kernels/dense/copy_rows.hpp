#pragma once
// copy_rows: Y ← rows of X, as a block of their own.
//
// Contract: operands X (read) and Y (written), of the same columns; the rows of Y, which the row of
// its view and their number say, are among those of X. T is double or float, or std::complex of one
// of them. A unit of work is an element that is copied.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr Operation copy_rows{.name = "copy_rows",
                                     .operands = 2,
                                     .access = {Access::read, Access::write},
                                     .work =
                                         [](std::span<const BlockExtent> x, std::uint32_t) {
                                           return static_cast<double>(x[1].rows) *
                                                  static_cast<double>(x[1].cols);
                                         },
                                     .flops_per_work = 0,
                                     .nominal_cost = 10};

template <class T>
void copy_rows_reference(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters);
template <class T>
void copy_rows_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void copy_rows_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
