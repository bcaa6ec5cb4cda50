#pragma once
// C ← C − op(A)·op(B), A in few bits, for few columns of C: many such products in a launch. For
// mixed_products_cuda.cu.
//
// Contract: C and B in fp64, column-major with any leading dimension; A in fp16x2, fp16 or fp8, as
// tile_scales.hpp says; all in device memory. The call enqueues and returns. The arithmetic is that
// of doubles. The bits of a column of C depend on A, on that column and on the column of op(B)
// alone: not on the columns beside it, nor on what runs beside.

#include <span>

#include "device/device_cuda.hpp"
#include "kernels/dense/tile_scales.hpp"

namespace strata::few_columns {

/// The most columns of C for which this is meant: A is read once for every 32. As many as a solve
/// takes (solve_columns_cuda.hpp).
inline constexpr std::int64_t kMostColumnsOfProducts = 64;

/// Operands of one product, as gemm has them.
struct ProductOperands {
  BlockView c;
  BlockView a;
  BlockView b;
};

/// All at once: no C is an operand of another product, and A has the same element in all.
/// `variant`: as in gemm. Throws Error{device}, also for an element that is not listed.
void subtract_products(cudaStream_t stream, std::span<const ProductOperands> operands,
                       const TileScales& scales, std::uint32_t variant);

}  // namespace strata::few_columns
