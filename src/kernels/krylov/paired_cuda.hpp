#pragma once
// The kernels of paired.hpp on a GPU. Contract: as there. Included by .cu files only.

#include "kernels/krylov/paired.hpp"

namespace strata {

void paired_quotient_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
void paired_start_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void paired_gather_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void paired_excess_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void paired_dots_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void paired_sum_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void paired_subtract_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);

}  // namespace strata
