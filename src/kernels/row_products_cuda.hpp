#pragma once
// What is done to the rows of tall matrices in fp64 on the tensor cores. Contract: included by
// *_cuda.cu only; the bits are those of a chain of fused multiply-adds.

#include "kernels/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// The most columns of tensor_solve().
inline constexpr std::int64_t kTensorSolveColumns = 128;

/// to ← x·R⁻¹ as gram.hpp has it; `to` may be where x is.
void tensor_solve(cudaStream_t stream, const Columns<double>& x, const double* r, std::int64_t r_ld,
                  double* to, std::int64_t to_ld);

/// y (x.rows × cols) ← y − x·S, S x.cols × cols, columns of x in ascending order, each product
/// subtracted by a fused multiply-add. x has no scales and does not overlap y.
void tensor_update(cudaStream_t stream, const Columns<double>& x, const double* s,
                   std::int64_t s_ld, double* y, std::int64_t y_ld, std::int64_t cols);

}  // namespace strata::gram_gpu
