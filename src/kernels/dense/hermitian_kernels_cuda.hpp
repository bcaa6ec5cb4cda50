#pragma once
// The operations of Cholesky's factorization and its solves for Hermitian matrices on the GPU.
//
// Contract: as potrf.hpp, potrf_batched.hpp, trsm.hpp, trmm.hpp, syrk.hpp and gemm.hpp have them;
// what these transpose is conjugated, too. In solves the bits of a column may depend on those
// beside it. T is std::complex of double or float.

#include "kernels/backend/kernel_table.hpp"

namespace strata::hermitian {

template <class T>
void potrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void potrf_batched_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void trsm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void trmm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void syrk_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void gemm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata::hermitian
