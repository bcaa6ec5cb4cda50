#pragma once
// trsm: A ← A·L⁻ᵀ, a block below the diagonal.
//
// Contract: `out` = A is m × n, input 0 = L is n × n of which only the lower triangle is read; its
// diagonal is not checked. T is double or float.

#include "kernels/kernel_table.hpp"

namespace strata {

template <class T>
void trsm_reference(Queue& queue, const KernelArguments& arguments);
template <class T>
void trsm_host(Queue& queue, const KernelArguments& arguments);
template <class T>
void trsm_cuda(Queue& queue, const KernelArguments& arguments);

}  // namespace strata
