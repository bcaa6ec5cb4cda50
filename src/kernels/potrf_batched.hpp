#pragma once
// potrf of a batch: A_i ← L_i with L_i·L_iᵀ = A_i for many small matrices.
//
// Contract: each matrix as potrf.hpp has it for one block, with a status of its own: a failure of
// one leaves the others as they are. Orders may differ and be 0. The matrices do not overlap. T is
// double or float.

#include "kernels/kernel_table.hpp"

namespace strata {

/// One after another, each as potrf_reference does it.
template <class T>
void potrf_batched_reference(Queue& queue, const BatchArguments& arguments);
/// LAPACK, one after another.
template <class T>
void potrf_batched_host(Queue& queue, const BatchArguments& arguments);
/// A few launches for all of them, sorted by order.
template <class T>
void potrf_batched_cuda(Queue& queue, const BatchArguments& arguments);

}  // namespace strata
