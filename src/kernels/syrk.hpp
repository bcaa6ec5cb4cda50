#pragma once
// syrk: C ← C − A·Aᵀ, the update of a diagonal block.
//
// Contract: `out` = C is n × n, of which only the lower triangle is read and written; input 0 = A
// is n × k. T is double or float.

#include "kernels/kernel_table.hpp"

namespace strata {

template <class T>
void syrk_reference(Queue& queue, const KernelArguments& arguments);
template <class T>
void syrk_host(Queue& queue, const KernelArguments& arguments);
template <class T>
void syrk_cuda(Queue& queue, const KernelArguments& arguments);

}  // namespace strata
