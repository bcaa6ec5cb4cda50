#pragma once
// Tensor maps of matrices of doubles: what the tensor memory accelerator (TMA) has to know to copy
// boxes of them to shared memory (cp.async.bulk.tensor).
//
// Contract: column-major, in device memory. Only for *_cuda.cu.

#include <cuda.h>

#include "strata/matrix_view.hpp"

namespace strata {

/// Of one matrix and size of boxes; a parameter of a kernel, __grid_constant__, not a copy of it.
using TensorMap = CUtensorMap;

/// Boxes of box_rows × box_cols (at most 256 each; columns of a multiple of 16 bytes). The matrix
/// and its columns begin at multiples of 16 bytes; what is outside of it is copied as zeros. Throws
/// Error{device}.
[[nodiscard]] TensorMap make_tensor_map(MatrixView<const double> matrix, int box_rows,
                                        int box_cols);

}  // namespace strata
