// gemm and syrk with operands of few bits on a GPU.
//
// Method: products of binary16 planes by cuBLAS on the tensor cores, which multiply exactly and add
// up in fp32; of fp8 tiles by cuBLASLt. A number in two planes, hi + lo, is multiplied as hi·hi +
// hi·lo + lo·hi, the smaller terms first; lo·lo is added where all have one sign, on the diagonal
// (syrk). Where C is fp64 the product is formed in fp32 beside it and subtracted. syrk forms the
// whole square: the tensor cores know no triangle. Where a shape has no kernel in fp8 (a last tile
// of odd extents) the operands are widened to binary16. Where B is fp64, products with few columns
// are one launch (multiply_columns_cuda.cu), and for many A is widened.

#include <algorithm>
#include <vector>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/backend/planes_cuda.hpp"
#include "kernels/dense/formats_cuda.hpp"
#include "kernels/dense/fp8_product_cuda.hpp"
#include "kernels/dense/mixed_products.hpp"
#include "kernels/dense/multiply_columns_cuda.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;

/// C ← C + P; `lower`: only on and below the diagonal.
__global__ void __launch_bounds__(kThreads)
    add_kernel(MatrixView<double> c, const float* p, bool lower) {
  for (std::int64_t j = blockIdx.y; j < c.cols; j += gridDim.y) {
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
         i < c.rows; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
      if (!lower || i >= j) c.data[i + j * c.ld] += static_cast<double>(p[i + j * c.rows]);
    }
  }
}

void add(cudaStream_t stream, MatrixView<double> c, const float* p, bool lower) {
  const dim3 blocks(static_cast<unsigned>((c.rows + kThreads - 1) / kThreads),
                    static_cast<unsigned>(std::min<std::int64_t>(c.cols, 65535)));
  add_kernel<<<blocks, kThreads, 0, stream>>>(c, p, lower);
  require_cuda(cudaGetLastError(), "adding a product");
}

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// C ← β·C − A·Bᵀ in fp32, A and B in fp16x2, fp16 or fp8. `scratch`: for two widened operands.
void subtract_product(CudaQueue& cuda, const BlockView& a, const BlockView& b, float beta,
                      MatrixView<float> c, const TileScales& scales, bool all, char* scratch) {
  const auto alpha = static_cast<float>(-1 / (scales.of(a.element) * scales.of(b.element)));
  const std::int64_t inner = a.cols;
  const std::int64_t longest = all ? kLongestDiagonalSum : scales.longest;
  if (a.element != Element::fp8) {
    return blas::multiply_planes(cuda.main(), alpha, blas::planes_of(a), blas::planes_of(b),
                                 CUBLAS_OP_T, beta, c, inner, all, longest);
  }
  if (blas::fp8_product(cuda.main(), alpha, a, b, beta, c, inner)) return;
  // The same numbers in binary16, which holds those of fp8 as they are.
  const auto widen = [&](const BlockView& x, void* to) {
    BlockView wide = x;
    wide.data = to;
    wide.element = Element::fp16;
    wide.ld = std::max<std::int64_t>(x.rows, 1);
    formats::convert_tile(cuda.stream(), wide, x, {.fp16 = scales.fp8, .fp8 = scales.fp8});
    return wide;
  };
  const BlockView wide_a = widen(a, scratch);
  const BlockView wide_b = widen(b, scratch + rounded_up(2 * a.rows * a.cols));
  blas::multiply_planes(cuda.main(), alpha, blas::planes_of(wide_a), blas::planes_of(wide_b),
                        CUBLAS_OP_T, beta, c, inner, all, longest);
}

std::int64_t widened_bytes(const BlockView& a, const BlockView& b) {
  if (a.element != Element::fp8) return 0;
  return rounded_up(2 * a.rows * a.cols) + rounded_up(2 * b.rows * b.cols);
}

/// C ← C − A·Bᵀ.
void update(CudaQueue& cuda, const BlockView& c, const BlockView& a, const BlockView& b,
            const TileScales& scales, bool lower) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
  const std::int64_t beside = c.element == Element::fp64 ? rounded_up(4 * c.rows * c.cols) : 0;
  auto* scratch =
      static_cast<char*>(cuda.scratch(std::max<std::int64_t>(beside + widened_bytes(a, b), 1)));
  if (c.element == Element::fp32)
    return subtract_product(cuda, a, b, 1, matrix_of<float>(c), scales, lower, scratch);
  const MatrixView<float> product{reinterpret_cast<float*>(scratch), c.rows, c.cols, c.rows};
  subtract_product(cuda, a, b, 0, product, scales, lower, scratch + beside);
  add(cuda.stream(), matrix_of<double>(c), product.data, lower);
}

/// C ← C − op(A)·op(B) in fp64, with A widened.
void update_wide(CudaQueue& cuda, const BlockView* x, const TileScales& scales,
                 std::uint32_t variant) {
  const bool transposed = (variant & kTransposeA) != 0;
  BlockView wide = x[1];
  wide.element = Element::fp64;
  wide.ld = std::max<std::int64_t>(wide.rows, 1);
  wide.data = cuda.scratch(std::max<std::int64_t>(8 * wide.rows * wide.cols, 1));
  formats::convert_tile(cuda.stream(), wide, x[1], scales);
  const auto a = matrix_of<const double>(wide);
  blas::gemm_minus(cuda.main(), transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                   (variant & kTransposeB) != 0 ? CUBLAS_OP_T : CUBLAS_OP_N,
                   transposed ? a.rows : a.cols, a, matrix_of<const double>(x[2]),
                   matrix_of<double>(x[0]));
}

}  // namespace

void gemm_mixed_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  const TileScales scales = scales_of(parameters);
  std::vector<few_columns::ProductOperands> narrow;
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    if (x[2].element != Element::fp64) {
      require_variant(gemm, parameters.variant ^ kTransposeB, 0);  // it is always set
      update(cuda, x[0], x[1], x[2], scales, false);
      continue;
    }
    require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
    if (x[0].cols <= few_columns::kMostColumnsOfProducts) {
      narrow.push_back({x[0], x[1], x[2]});
    } else {
      update_wide(cuda, x, scales, parameters.variant);
    }
  }
  few_columns::subtract_products(cuda.stream(), narrow, scales, parameters.variant);
}

void syrk_mixed_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const TileScales scales = scales_of(parameters);
  for (std::int64_t i = 0; i < calls.count(); ++i)
    update(cuda, calls[i][0], calls[i][1], calls[i][1], scales, true);
}

}  // namespace strata
