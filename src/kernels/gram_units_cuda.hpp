#pragma once
// The sums of gram.hpp over units, V read from global memory once. Contract: included by
// gram_cuda.cu only; V in fp64, sums in fp64 or dd by extraction.

#include "kernels/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// units[u · pairs + pair] ← the sum of unit u of xᵀx, for i <= j; pairs.count() of them each.
void unit_sums(cudaStream_t stream, const Columns<double>& x, double* units);
void unit_sums(cudaStream_t stream, const Columns<double>& x, DoubleDouble* units);

}  // namespace strata::gram_gpu
