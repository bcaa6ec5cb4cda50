#pragma once
// The kernels of householder.hpp on a GPU. Contract: as there; for any of its elements. Included by
// .cu files only.

#include "kernels/tall/householder.hpp"

namespace strata {

void householder_r_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void householder_q_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void stacked_r_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void stacked_q_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
