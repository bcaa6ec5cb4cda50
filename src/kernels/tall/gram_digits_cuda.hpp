#pragma once
// The sums of gram.hpp over units, in double-double by digits. Contract: included by *_cuda.cu
// only; V in fp64, kDigitSums of gram.hpp.

#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// units[u · pairs + pair] ← the sum of unit u, `tiles_of_unit` tiles high (1, 2, 4 or 8), of xᵀx,
/// for i <= j.
void digit_unit_sums(cudaStream_t stream, const Columns<double>& x, int tiles_of_unit,
                     DoubleDouble* units);

}  // namespace strata::gram_gpu
