#pragma once
// gemm: C ← C − A·Bᵀ, the update of a block below the diagonal.
//
// Contract: `out` = C is m × n, input 0 = A is m × k, input 1 = B is n × k. T is double or float.

#include "kernels/kernel_table.hpp"

namespace strata {

template <class T>
void gemm_reference(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_host(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_cuda(Queue& queue, const KernelArguments& arguments);

}  // namespace strata
