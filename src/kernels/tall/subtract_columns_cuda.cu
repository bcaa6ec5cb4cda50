// subtract_columns on a GPU.
//
// Method: in fp64 on the tensor cores (row_products_cuda.cu). In fp32 a thread for each element of
// X; neighbouring threads have neighbouring rows, so Y is read in whole lines and S once for a
// warp.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/tall/row_products_cuda.hpp"
#include "kernels/tall/subtract_columns.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    subtract(float* x, std::int64_t x_ld, std::int64_t rows, std::int64_t cols, const float* y,
             std::int64_t y_ld, std::int64_t y_cols, const double* s, std::int64_t s_ld) {
  const std::int64_t r = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (r >= rows) return;
  for (std::int64_t k = blockIdx.y; k < cols; k += gridDim.y) {
    auto value = static_cast<double>(x[r + k * x_ld]);
    for (std::int64_t i = 0; i < y_cols; ++i)
      value = fused(-s[i + k * s_ld], static_cast<double>(y[r + i * y_ld]), value);
    x[r + k * x_ld] = static_cast<float>(value);
  }
}

void subtract_floats(cudaStream_t stream, const BlockView* x) {
  const dim3 grid(static_cast<unsigned>((x[0].rows + kThreads - 1) / kThreads),
                  static_cast<unsigned>(std::min<std::int64_t>(x[0].cols, 65535)));
  subtract<<<grid, kThreads, 0, stream>>>(static_cast<float*>(x[0].data), x[0].ld, x[0].rows,
                                          x[0].cols, static_cast<const float*>(x[1].data), x[1].ld,
                                          x[1].cols, static_cast<const double*>(x[2].data),
                                          x[2].ld);
  require_cuda(cudaGetLastError(), "subtract_columns");
}

}  // namespace

void subtract_columns_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(subtract_columns, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[0].rows == 0 || x[0].cols == 0) continue;
    if (x[0].element == Element::fp32) {
      subtract_floats(stream, x);
      continue;
    }
    gram_gpu::tensor_update(stream, gram_gpu::columns_of<double>(x[1], nullptr),
                            static_cast<const double*>(x[2].data), x[2].ld,
                            static_cast<double*>(x[0].data), x[0].ld, x[0].cols);
  }
}

}  // namespace strata
