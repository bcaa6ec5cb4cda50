#pragma once
// What is done to the rows of tall matrices in fp64 on the tensor cores. Contract: included by
// *_cuda.cu only; the bits are those of a chain of fused multiply-adds.

#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// The most columns of tensor_rotate().
inline constexpr std::int64_t kTensorRotateColumns = 896;

/// The most columns of tensor_solve_twice() that do not go to memory between.
inline constexpr std::int64_t kTwiceColumns = 64;

/// What tensor_solve() takes of device memory for so many columns.
[[nodiscard]] std::int64_t tensor_solve_bytes(std::int64_t cols);

/// to ← x·R⁻¹ as gram.hpp has it; `to` may be where x is, and overlaps it in no other way.
/// `memory`: tensor_solve_bytes(x.cols) bytes on the device, for this call alone.
void tensor_solve(cudaStream_t stream, const Columns<double>& x, const double* r, std::int64_t r_ld,
                  double* to, std::int64_t to_ld, void* memory);

/// to ← (x·R⁻¹)·diag(scales)·S⁻¹, the bits of two such solves; `memory`: twice as much.
void tensor_solve_twice(cudaStream_t stream, const Columns<double>& x, const double* r,
                        std::int64_t r_ld, const double* scales, const double* s, std::int64_t s_ld,
                        double* to, std::int64_t to_ld, void* memory);

/// y (x.rows × cols) ← y − x·S, S x.cols × cols, columns of x in ascending order, each product
/// subtracted by a fused multiply-add. x has no scales and does not overlap y.
void tensor_update(cudaStream_t stream, const Columns<double>& x, const double* s,
                   std::int64_t s_ld, double* y, std::int64_t y_ld, std::int64_t cols);

/// The first q columns of v (rows × p) ← v·S, S p × q, q <= p: sums by fused multiply-adds from 0,
/// columns of v in ascending order. p is at most kTensorRotateColumns.
void tensor_rotate(cudaStream_t stream, double* v, std::int64_t ld, std::int64_t rows,
                   const double* s, std::int64_t s_ld, std::int64_t p, std::int64_t q);

}  // namespace strata::gram_gpu
