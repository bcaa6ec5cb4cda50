#pragma once
// potrf of small blocks on the GPU, by the kernel of batches (potrf_batched_cuda.cu).
//
// Why: one warp is as fast as the fused kernel there, and eliminates column by column with roots to
// the last bit, where that one multiplies with inverses of 8 × 8 blocks.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/dense/potrf_batched.hpp"

namespace strata {

inline constexpr std::int64_t kSmallOrderMax = 64;

/// A matrix with its status, which lies in memory that the GPU reaches.
struct SmallMatrix {
  BatchEntry entry;
  PivotStatus* status;
};

/// Each matrix (of order 1 … kSmallOrderMax) as potrf has it; the same bits alone and among others.
/// The list is read before the call returns. Throws Error{device}.
template <class T>
void potrf_small(cudaStream_t stream, std::span<const SmallMatrix> matrices);

}  // namespace strata
