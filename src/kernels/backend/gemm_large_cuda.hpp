#pragma once
// Large fp64 products by the algorithm that cuBLAS itself keeps for the largest.
//
// Why: what bounds fp64 products on an H200 for longer than a moment is its power limit. cuBLAS 13
// works in blocks of 64 × 64 unless C is 16384² or so. They take more energy: 48 to 50 TFLOP/s
// sustained where blocks of 128 × 128 reach 56 (docs/design/0009-products-by-energy.md).

#include "device/device_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

/// C ← C − A·op(B), A rows × k, op(B) B or Bᵀ, if C is large enough to fill the GPU with blocks of
/// 128 × 128 and all are aligned to 16 bytes, columns too. Returns false, and does nothing, if not.
/// The algorithm follows from the GPU and the version of cuBLAS, not from the operands. Throws
/// Error{device}.
bool gemm_minus_large(CudaStream& stream, cublasOperation_t op_b, std::int64_t k,
                      MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c);

/// C ← C − A·B by products with Bᵀ, which is laid out in the stream's operands(): cuBLAS has blocks
/// of 128 × 128 for these alone. Does nothing and returns false if C is too small for that to pay.
/// Takes B in parts whose extents follow from k. Throws Error{device}.
bool gemm_minus_by_transposed(CudaStream& stream, std::int64_t k, MatrixView<const double> a,
                              MatrixView<const double> b, MatrixView<double> c);

}  // namespace strata::blas
