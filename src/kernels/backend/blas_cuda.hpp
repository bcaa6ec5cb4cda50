#pragma once
// The few calls of cuBLAS that the CUDA kernels need, one name for both precisions.
//
// Contract: column-major, lower triangle, not unit; 64-bit extents. The calls go to a
// stream with its own handle and workspace: with one workspace a stream cuBLAS promises
// the same bits for the same call, whatever the other streams do (cuBLAS manual, "Results
// reproducibility"). Throw Error{device}. Only for *_cuda.cu.

#include <type_traits>

#include "device/device_cuda.hpp"
#include "kernels/backend/gemm_large_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

/// Throws Error{device} if the launch just made was refused.
inline void require_launched(const char* kernel) { require_cuda(cudaGetLastError(), kernel); }

/// C ← C − op(A)·op(B); k is the inner extent.
template <class T>
void gemm_minus(CudaStream& stream, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t k,
                MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
  const T minus_one{-1};
  const T one{1};
  if constexpr (std::is_same_v<T, double>) {
    if (op_a == CUBLAS_OP_N && op_b == CUBLAS_OP_T && gemm_minus_large(stream, k, a, b, c)) return;
    require_blas(cublasDgemm_64(stream.blas(), op_a, op_b, c.rows, c.cols, k, &minus_one, a.data,
                                a.ld, b.data, b.ld, &one, c.data, c.ld),
                 "cublasDgemm");
  } else {
    require_blas(cublasSgemm_64(stream.blas(), op_a, op_b, c.rows, c.cols, k, &minus_one, a.data,
                                a.ld, b.data, b.ld, &one, c.data, c.ld),
                 "cublasSgemm");
  }
  require_launched("gemm");
}

/// X ← op(L)⁻¹·X (left) or X·op(L)⁻¹ (right).
template <class T>
void trsm(CudaStream& stream, cublasSideMode_t side, cublasOperation_t op, MatrixView<const T> l,
          MatrixView<T> x) {
  const T one{1};
  if constexpr (std::is_same_v<T, double>) {
    require_blas(
        cublasDtrsm_64(stream.blas(), side, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_NON_UNIT,
                       x.rows, x.cols, &one, l.data, l.ld, x.data, x.ld),
        "cublasDtrsm");
  } else {
    require_blas(
        cublasStrsm_64(stream.blas(), side, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_NON_UNIT,
                       x.rows, x.cols, &one, l.data, l.ld, x.data, x.ld),
        "cublasStrsm");
  }
  require_launched("trsm");
}

/// X ← −op(L)·X.
template <class T>
void trmm_minus(CudaStream& stream, cublasOperation_t op, MatrixView<const T> l, MatrixView<T> x) {
  const T minus_one{-1};
  if constexpr (std::is_same_v<T, double>) {
    require_blas(cublasDtrmm_64(stream.blas(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, op,
                                CUBLAS_DIAG_NON_UNIT, x.rows, x.cols, &minus_one, l.data, l.ld,
                                x.data, x.ld, x.data, x.ld),
                 "cublasDtrmm");
  } else {
    require_blas(cublasStrmm_64(stream.blas(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, op,
                                CUBLAS_DIAG_NON_UNIT, x.rows, x.cols, &minus_one, l.data, l.ld,
                                x.data, x.ld, x.data, x.ld),
                 "cublasStrmm");
  }
  require_launched("trmm");
}

/// C ← C − A·Aᵀ, lower triangle.
template <class T>
void syrk_minus(CudaStream& stream, MatrixView<const T> a, MatrixView<T> c) {
  const T minus_one{-1};
  const T one{1};
  if constexpr (std::is_same_v<T, double>) {
    require_blas(cublasDsyrk_64(stream.blas(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, c.cols, a.cols,
                                &minus_one, a.data, a.ld, &one, c.data, c.ld),
                 "cublasDsyrk");
  } else {
    require_blas(cublasSsyrk_64(stream.blas(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, c.cols, a.cols,
                                &minus_one, a.data, a.ld, &one, c.data, c.ld),
                 "cublasSsyrk");
  }
  require_launched("syrk");
}

}  // namespace strata::blas
