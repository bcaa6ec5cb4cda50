#pragma once
// The four operations of a triangular solve with many right-hand sides, X being n × r.
//
// Contract:
// * trsm_left             X ← L⁻¹·X      input 0 = L, n × n, lower triangle read, not checked
// * trsm_left_transposed  X ← L⁻ᵀ·X      the same L
// * gemm_left             X ← X − A·Y    input 0 = A, n × k; input 1 = Y, k × r
// * gemm_left_transposed  X ← X − Aᵀ·Y   input 0 = A, k × n; input 1 = Y, k × r
// T is double or float.

#include "kernels/kernel_table.hpp"

namespace strata {

template <class T>
void trsm_left_reference(Queue& queue, const KernelArguments& arguments);
template <class T>
void trsm_left_transposed_reference(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_left_reference(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_left_transposed_reference(Queue& queue, const KernelArguments& arguments);

template <class T>
void trsm_left_host(Queue& queue, const KernelArguments& arguments);
template <class T>
void trsm_left_transposed_host(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_left_host(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_left_transposed_host(Queue& queue, const KernelArguments& arguments);

template <class T>
void trsm_left_cuda(Queue& queue, const KernelArguments& arguments);
template <class T>
void trsm_left_transposed_cuda(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_left_cuda(Queue& queue, const KernelArguments& arguments);
template <class T>
void gemm_left_transposed_cuda(Queue& queue, const KernelArguments& arguments);

}  // namespace strata
