#pragma once
// potrf of a small block on the GPU, by the kernel of batches (potrf_batched_cuda.cu).
//
// Why: one warp is as fast as the fused kernel there, and eliminates column by column with roots to
// the last bit, where that one multiplies with inverses of 8 × 8 blocks.

#include <cuda_runtime_api.h>

#include "kernels/kernel_table.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

inline constexpr std::int64_t kSmallOrderMax = 64;

/// The lower triangle of A (order <= kSmallOrderMax) ← its Cholesky factor; *status, in memory that
/// the GPU reaches, as in KernelArguments. Throws Error{device}.
template <class T>
void potrf_small(cudaStream_t stream, MatrixView<T> a, PivotStatus* status);

}  // namespace strata
