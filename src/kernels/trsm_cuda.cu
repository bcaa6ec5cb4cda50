// trsm on the GPU: right side, lower, transposed.
//
// Method: the fused tile kernel (fused_cuda.cu), all but the solves with tiles on the diagonal
// being products of tiles. cuBLAS solves in steps that each fill little of the GPU: 9.5 TFLOP/s at
// order 2048 on an H200, and half of that beside other work.

#include <cstddef>

#include "kernels/blas_cuda.hpp"
#include "kernels/fused_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/trsm.hpp"

namespace strata {

template <class T>
void trsm_cuda(Queue& queue, const KernelArguments& arguments) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  const auto l = matrix_of<const T>(arguments.inputs[0]);
  const auto x = matrix_of<T>(arguments.out);
  // The tiles of a row wait for each other: more than a few blocks a row would only keep the
  // multiprocessors from other work.
  constexpr std::int64_t kBlocksPerRow = 3;
  const int tile = x.rows * x.cols < 2048 * 1024 ? 64 : 128;
  const int blocks = tile == 64 ? 0 : static_cast<int>((x.rows + tile - 1) / tile * kBlocksPerRow);
  const fused::Shape shape{.tile = tile, .ib = 8, .blocks = blocks};
  const std::int64_t bytes = fused::zeroed_bytes(x.rows, shape.tile);
  void* scratch = cuda.scratch(bytes);
  require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(bytes), cuda.stream()),
               "cudaMemsetAsync");
  fused::solve(cuda.stream(), l, x, shape, scratch);
}

template void trsm_cuda<double>(Queue&, const KernelArguments&);
template void trsm_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
