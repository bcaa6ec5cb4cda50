#pragma once
// Products of tiles in fp8 by cuBLASLt.

#include "device/device_cuda.hpp"
#include "kernels/backend/kernel_table.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

/// C ← β·C + α·A·Bᵀ, C (m × n, fp32, ld), A and B in fp8, packed row by row, with `inner` columns;
/// added up in fp32 (not by the fast accumulation of fewer bits, whose truncation was measured to
/// bias sums of one sign by 0.26). Returns false, and does nothing, if the extents or the GPU have
/// no such kernel. Throws Error{device}.
bool fp8_product(CudaStream& stream, float alpha, const BlockView& a, const BlockView& b,
                 float beta, MatrixView<float> c, std::int64_t inner);

}  // namespace strata::blas
