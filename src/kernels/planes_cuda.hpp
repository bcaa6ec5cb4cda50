#pragma once
// Products of tiles in one or two planes of binary16, by cuBLAS. Only for *_cuda.cu.

#include <cuda_fp16.h>

#include "kernels/blas_cuda.hpp"
#include "kernels/kernel_table.hpp"

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
/// two second planes only if `all`. Throws Error{device}.
inline void multiply_planes(CudaStream& stream, float alpha, const Planes& a, const Planes& b,
                            cublasOperation_t op_b, float beta, MatrixView<float> c,
                            std::int64_t inner, bool all) {
  const auto add_term = [&](int of_a, int of_b) {
    require_blas(
        cublasGemmEx_64(stream.blas(), CUBLAS_OP_N, op_b, c.rows, c.cols, inner, &alpha,
                        a.plane[of_a], CUDA_R_16F, a.ld, b.plane[of_b], CUDA_R_16F, b.ld, &beta,
                        c.data, CUDA_R_32F, c.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
    beta = 1;
  };
  if (all && a.plane[1] != nullptr && b.plane[1] != nullptr) add_term(1, 1);
  if (b.plane[1] != nullptr) add_term(0, 1);
  if (a.plane[1] != nullptr) add_term(1, 0);
  add_term(0, 0);
}

}  // namespace strata::blas
