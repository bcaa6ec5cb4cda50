// invert_factor and multiply_inverse on a GPU. The inverse is the solution of X·Lᵀ = I by the fused
// tile kernel, on all of the GPU: the whole column of tiles waits for it.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/backend/planes_cuda.hpp"
#include "kernels/dense/formats_cuda.hpp"
#include "kernels/dense/fused_cuda.hpp"
#include "kernels/dense/tile_inverse.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) identity_kernel(MatrixView<double> x) {
  for (std::int64_t j = blockIdx.x; j < x.cols; j += gridDim.x) {
    for (std::int64_t i = threadIdx.x; i < x.rows; i += kThreads)
      x.data[i + j * x.ld] = i == j ? 1.0 : 0.0;
  }
}

/// What a solve of other numbers may leave below the diagonal.
__global__ void __launch_bounds__(kThreads) clear_below_kernel(MatrixView<double> x) {
  for (std::int64_t j = blockIdx.x; j < x.cols; j += gridDim.x) {
    for (std::int64_t i = j + 1 + threadIdx.x; i < x.rows; i += kThreads) x.data[i + j * x.ld] = 0;
  }
}

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

unsigned blocks_for(std::int64_t cols) {
  return static_cast<unsigned>(std::min<std::int64_t>(cols, 65535));
}

}  // namespace

void invert_factor_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(invert_factor, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const TileScales scales{.fp16 = scales_of(parameters).inverse};
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& u = calls[c][0];
    const std::int64_t n = u.cols;
    if (n == 0) continue;
    const fused_kernel::Shape shape{.tile = n < 1024 ? 64 : 128, .ib = 8};
    const std::int64_t zeroed = rounded_up(fused_kernel::zeroed_bytes(n, shape.tile));
    auto* scratch = static_cast<char*>(cuda.scratch(zeroed + 8 * n * n));
    BlockView wide = u;
    wide.element = Element::fp64;
    wide.data = scratch + zeroed;
    wide.ld = n;
    const auto x = matrix_of<double>(wide);
    require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(zeroed), cuda.stream()),
                 "cudaMemsetAsync");
    identity_kernel<<<blocks_for(n), kThreads, 0, cuda.stream()>>>(x);
    require_cuda(cudaGetLastError(), "identity");
    fused_kernel::solve(cuda.stream(), matrix_of<const double>(calls[c][1]), x, shape, scratch);
    clear_below_kernel<<<blocks_for(n), kThreads, 0, cuda.stream()>>>(x);
    require_cuda(cudaGetLastError(), "clear_below");
    formats::convert_tile(cuda.stream(), u, wide, scales);
  }
}

template <class T>
void multiply_inverse_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(multiply_inverse, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const TileScales scales = scales_of(parameters);
  const auto alpha = static_cast<float>(std::ldexp(1.0, -(scales.sum + scales.inverse)));
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& w = calls[c][0];
    const std::int64_t size = w.rows * w.cols;
    if (size == 0) continue;
    const std::int64_t planes = rounded_up(4 * size);
    auto* scratch =
        static_cast<char*>(cuda.scratch(planes + (w.element == Element::fp64 ? 4 * size : 0)));
    BlockView rounded = w;
    rounded.element = Element::fp16x2;
    rounded.data = scratch;
    rounded.ld = w.rows;
    formats::convert_tile(cuda.stream(), rounded, w, {.fp16 = scales.sum});
    BlockView product = w;
    product.element = Element::fp32;
    if (w.element == Element::fp64) {
      product.data = scratch + planes;
      product.ld = w.rows;
    }
    blas::multiply_planes(cuda.main(), alpha, blas::planes_of(rounded),
                          blas::planes_of(calls[c][1]), CUBLAS_OP_N, 0, matrix_of<float>(product),
                          w.cols, false, scales.longest);
    if (w.element == Element::fp64) formats::convert_tile(cuda.stream(), w, product, {});
  }
}

template void multiply_inverse_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void multiply_inverse_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
