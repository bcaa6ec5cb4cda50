#pragma once
// The sums of gram.hpp over units, in double-double. Contract: included by *_cuda.cu only; V in
// fp64, read from global memory once, sums by extraction.

#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// units[u · pairs + pair] ← the sum of unit u, `tiles_of_unit` tiles high (1, 2, 4 or 8), of xᵀx,
/// for i <= j. variant: kExtraction, or in a shape (shaped_extraction()); throws Error{device} if
/// that does not fit.
void wide_unit_sums(cudaStream_t stream, const Columns<double>& x, int tiles_of_unit,
                    DoubleDouble* units, std::uint32_t variant = kExtraction);

}  // namespace strata::gram_gpu
