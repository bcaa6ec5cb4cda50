#pragma once
// The few calls of cuBLAS that the CUDA kernels need, one name for both precisions.
//
// Contract: column-major; 64-bit extents. T is double or float, of products and solve_triangle()
// std::complex of one of them, too. The calls go to a stream with its own handle and workspace:
// with one workspace a stream cuBLAS promises the same bits for the same call, whatever the other
// streams do (cuBLAS manual, "Results reproducibility"). Throw Error{device}. Only for *_cuda.cu.

#include <complex>
#include <cstdint>
#include <type_traits>

#include "device/device_cuda.hpp"
#include "kernels/backend/gemm_complex_cuda.hpp"
#include "kernels/backend/gemm_large_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

/// Throws Error{device} if the launch just made was refused.
inline void require_launched(const char* kernel) { require_cuda(cudaGetLastError(), kernel); }

/// Complex numbers as cuBLAS has them.
inline cuDoubleComplex* of_blas(std::complex<double>* x) {
  return reinterpret_cast<cuDoubleComplex*>(x);
}
inline const cuDoubleComplex* of_blas(const std::complex<double>* x) {
  return reinterpret_cast<const cuDoubleComplex*>(x);
}
inline cuComplex* of_blas(std::complex<float>* x) { return reinterpret_cast<cuComplex*>(x); }
inline const cuComplex* of_blas(const std::complex<float>* x) {
  return reinterpret_cast<const cuComplex*>(x);
}

/// C ← C − op(A)·op(B); k is the inner extent.
template <class T>
void gemm_minus(CudaStream& stream, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t k,
                MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
  const T minus_one{-1};
  const T one{1};
  const auto call = [&](auto gemm, const char* name, auto* alpha, auto* x, auto* y, auto* beta,
                        auto* z) {
    require_blas(
        gemm(stream.blas(), op_a, op_b, c.rows, c.cols, k, alpha, x, a.ld, y, b.ld, beta, z, c.ld),
        name);
  };
  if constexpr (std::is_same_v<T, double>) {
    if (op_a == CUBLAS_OP_N && op_b == CUBLAS_OP_N && gemm_minus_by_transposed(stream, k, a, b, c))
      return;
    if (op_a == CUBLAS_OP_N && gemm_minus_large(stream, op_b, k, a, b, c)) return;
    call(cublasDgemm_64, "cublasDgemm", &minus_one, a.data, b.data, &one, c.data);
  } else if constexpr (std::is_same_v<T, float>) {
    call(cublasSgemm_64, "cublasSgemm", &minus_one, a.data, b.data, &one, c.data);
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    if (op_a == CUBLAS_OP_N && op_b == CUBLAS_OP_N && gemm_minus_by_parts(stream, k, a, b, c))
      return;
    call(cublasZgemm_64, "cublasZgemm", of_blas(&minus_one), of_blas(a.data), of_blas(b.data),
         of_blas(&one), of_blas(c.data));
  } else {
    call(cublasCgemm_64, "cublasCgemm", of_blas(&minus_one), of_blas(a.data), of_blas(b.data),
         of_blas(&one), of_blas(c.data));
  }
  require_launched("gemm");
}

/// X ← op(A)⁻¹·X for the triangle of A that `fill` names.
template <class T>
void solve_triangle(CudaStream& stream, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, MatrixView<const T> a, MatrixView<T> x) {
  const T one{1};
  const auto call = [&](auto solve, const char* name, auto* alpha, auto* triangle, auto* columns) {
    require_blas(solve(stream.blas(), CUBLAS_SIDE_LEFT, fill, op, diagonal, x.rows, x.cols, alpha,
                       triangle, a.ld, columns, x.ld),
                 name);
  };
  if constexpr (std::is_same_v<T, double>) {
    call(cublasDtrsm_64, "cublasDtrsm", &one, a.data, x.data);
  } else if constexpr (std::is_same_v<T, float>) {
    call(cublasStrsm_64, "cublasStrsm", &one, a.data, x.data);
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    call(cublasZtrsm_64, "cublasZtrsm", of_blas(&one), of_blas(a.data), of_blas(x.data));
  } else {
    call(cublasCtrsm_64, "cublasCtrsm", of_blas(&one), of_blas(a.data), of_blas(x.data));
  }
  require_launched("trsm");
}

/// X ← op(L)⁻¹·X (left) or X·op(L)⁻¹ (right), L lower triangular.
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
