// trsm on the GPU.
//
// Method: X·L⁻ᵀ, the solve of a factorization, by the fused tile kernel (fused_cuda.cu), all but
// the solves with tiles on the diagonal being products of tiles. cuBLAS solves in steps that each
// fill little of the GPU: 9.5 TFLOP/s at order 2048 on an H200, and half of that beside other work.
// L⁻¹·X and L⁻ᵀ·X with few columns, the solves with a factor, by one launch
// (solve_columns_cuda.cu): cuBLAS takes as many steps as for many columns. The others by cuBLAS.

#include <cstddef>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/fused_cuda.hpp"
#include "kernels/dense/solve_columns_cuda.hpp"
#include "kernels/dense/trsm.hpp"

namespace strata {
namespace {

template <class T>
void solve_fused(CudaQueue& cuda, MatrixView<const T> l, MatrixView<T> x) {
  // The tiles of a row wait for each other: more than a few blocks a row would only keep the
  // multiprocessors from other work.
  constexpr std::int64_t kBlocksPerRow = 3;
  const int tile = x.rows * x.cols < 2048 * 1024 ? 64 : 128;
  const int blocks = tile == 64 ? 0 : static_cast<int>((x.rows + tile - 1) / tile * kBlocksPerRow);
  const fused_kernel::Shape shape{.tile = tile, .ib = 8, .blocks = blocks};
  const std::int64_t bytes = fused_kernel::zeroed_bytes(x.rows, shape.tile);
  void* scratch = cuda.scratch(bytes);
  require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(bytes), cuda.stream()),
               "cudaMemsetAsync");
  fused_kernel::solve(cuda.stream(), l, x, shape, scratch);
}

}  // namespace

template <class T>
void trsm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trsm, parameters.variant, kTransposeL | kRightSide);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const bool transposed = (parameters.variant & kTransposeL) != 0;
  const bool right = (parameters.variant & kRightSide) != 0;
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const auto x = matrix_of<T>(calls[i][0]);
    const auto l = matrix_of<const T>(calls[i][1]);
    if (right && transposed) {
      solve_fused(cuda, l, x);
    } else if (!right && x.cols <= few_columns::kMostColumns) {
      void* scratch = cuda.scratch(few_columns::scratch_bytes(x.rows, x.cols));
      few_columns::solve(cuda.stream(), l, x, {.transposed = transposed}, scratch);
    } else {
      blas::trsm(cuda.main(), right ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT,
                 transposed ? CUBLAS_OP_T : CUBLAS_OP_N, l, x);
    }
  }
}

template void trsm_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void trsm_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
