#pragma once
// The sums of gram.hpp over units, in fp64 on the tensor cores. Contract: included by *_cuda.cu
// only; the bits are those of a chain of fused multiply-adds.

#include "kernels/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// units[u · pairs + pair] ← the sum of unit u, `tiles_of_unit` tiles high (1, 2, 4 or 8), of xᵀx
/// for i <= j; or of xᵀy, x and y of equally many rows. T is double or float.
template <class T>
void tensor_unit_sums(cudaStream_t stream, const Columns<T>& x, int tiles_of_unit, double* units);
template <class T>
void tensor_unit_sums(cudaStream_t stream, const Columns<T>& x, const Columns<T>& y,
                      int tiles_of_unit, double* units);

}  // namespace strata::gram_gpu
