#pragma once
// Products of tiles in one or two planes of binary16, by cuBLAS. Only for *_cuda.cu.

#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/kernel_table.hpp"

namespace strata::blas {

/// A tile of one or two planes of binary16.
struct Planes {
  const __half* plane[2] = {nullptr, nullptr};
  std::int64_t ld = 1;
};

[[nodiscard]] inline Planes planes_of(const BlockView& x) {
  const auto* hi = static_cast<const __half*>(x.data);
  return {{hi, x.element == Element::fp16x2 ? hi + x.rows * x.cols : nullptr}, x.ld};
}

/// C ← β·C + α·A·op(B) in fp32, over all pairs of planes, the smaller terms first; the product of
/// two second planes only if `all`, that of two first ones, where there are second ones, in sums no
/// longer than `longest`. Throws Error{device}.
inline void multiply_planes(CudaStream& stream, float alpha, const Planes& a, const Planes& b,
                            cublasOperation_t op_b, float beta, MatrixView<float> c,
                            std::int64_t inner, bool all, std::int64_t longest) {
  const auto add_piece = [&](const __half* of_a, const __half* of_b, std::int64_t first,
                             std::int64_t length) {
    require_blas(
        cublasGemmEx_64(stream.blas(), CUBLAS_OP_N, op_b, c.rows, c.cols, length, &alpha,
                        of_a + first * a.ld, CUDA_R_16F, a.ld,
                        of_b + (op_b == CUBLAS_OP_N ? first : first * b.ld), CUDA_R_16F, b.ld,
                        &beta, c.data, CUDA_R_32F, c.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
    beta = 1;
  };
  const bool two = a.plane[1] != nullptr || b.plane[1] != nullptr;
  if (all && a.plane[1] != nullptr && b.plane[1] != nullptr)
    add_piece(a.plane[1], b.plane[1], 0, inner);
  if (b.plane[1] != nullptr) add_piece(a.plane[0], b.plane[1], 0, inner);
  if (a.plane[1] != nullptr) add_piece(a.plane[1], b.plane[0], 0, inner);
  const std::int64_t piece = two ? longest : inner;
  for (std::int64_t first = 0; first < inner; first += piece)
    add_piece(a.plane[0], b.plane[0], first, std::min(piece, inner - first));
}

}  // namespace strata::blas
