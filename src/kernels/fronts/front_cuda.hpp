#pragma once
// The kernels of front.hpp on GPUs.
//
// Contract: as front.hpp has it; a branch has to have a program (front_program.hpp).

#include "kernels/fronts/front.hpp"

namespace strata {

/// T: double, float.
template <class T>
void scatter_entries_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);
template <class T>
void clear_block_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);
template <class T>
void add_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);
template <class T>
void factor_front_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);
template <class T>
void factor_branch_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);
template <class T>
void factor_shared_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);

template <class T>
void sweep_branch_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);

template <class T>
void sweep_range_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);

template <class T>
void take_rows_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);
template <class T>
void put_rows_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p);

}  // namespace strata
