#pragma once
// The kernels of gram.hpp on a GPU. Contract: as there; for any of its elements. Included by .cu
// files only.

#include "kernels/tall/gram.hpp"

namespace strata {

void gram_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void apply_gram_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void solve_right_gram_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);
void solve_right_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void solve_right_twice_cuda(Queue& queue, const KernelCalls& calls,
                            const KernelParameters& parameters);
void inner_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void gram_sum_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void column_max_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void column_dots_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void column_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
