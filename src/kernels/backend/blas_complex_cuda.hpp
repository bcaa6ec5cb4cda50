#pragma once
// The calls of cuBLAS that Hermitian matrices need.
//
// Contract: as blas_cuda.hpp. T is std::complex of double or float.

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/gemm_complex_cuda.hpp"
#include "scalar/complex.hpp"

namespace strata::blas {

/// C ← C − A·Aᴴ, lower triangle.
template <class T>
void herk_minus(CudaStream& stream, MatrixView<const T> a, MatrixView<T> c) {
  if (c.cols == 0 || a.cols == 0) return;
  const RealOf<T> minus_one = -1;
  const RealOf<T> one = 1;
  const auto call = [&](auto herk, const char* name) {
    require_blas(herk(stream.blas(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, c.cols, a.cols,
                      &minus_one, of_blas(a.data), a.ld, &one, of_blas(c.data), c.ld),
                 name);
  };
  if constexpr (sizeof(T) == 16)
    call(cublasZherk_64, "cublasZherk");
  else
    call(cublasCherk_64, "cublasCherk");
  require_launched("herk");
}

/// C ← C − A·Bᴴ.
template <class T>
void gemm_minus_adjoint(CudaStream& stream, MatrixView<const T> a, MatrixView<const T> b,
                        MatrixView<T> c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
  if constexpr (sizeof(T) == 16) {
    if (gemm_minus_adjoint_by_parts(stream, a, b, c)) return;
  }
  gemm_minus(stream, CUBLAS_OP_N, CUBLAS_OP_C, a.cols, a, b, c);
}

/// X ← L⁻¹·X or L⁻ᴴ·X, L lower triangular.
template <class T>
void solve_lower(CudaStream& stream, cublasOperation_t op, MatrixView<const T> l, MatrixView<T> x) {
  solve_triangle(stream, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_NON_UNIT, l, x);
}

/// X ← X·L⁻¹.
template <class T>
void solve_lower_on_the_right(CudaStream& stream, MatrixView<const T> l, MatrixView<T> x) {
  const T one{1};
  const auto call = [&](auto trsm, const char* name) {
    require_blas(trsm(stream.blas(), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                      CUBLAS_DIAG_NON_UNIT, x.rows, x.cols, of_blas(&one), of_blas(l.data), l.ld,
                      of_blas(x.data), x.ld),
                 name);
  };
  if constexpr (sizeof(T) == 16)
    call(cublasZtrsm_64, "cublasZtrsm");
  else
    call(cublasCtrsm_64, "cublasCtrsm");
  require_launched("trsm");
}

/// X ← −op(L)·X.
template <class T>
void multiply_lower_minus(CudaStream& stream, cublasOperation_t op, MatrixView<const T> l,
                          MatrixView<T> x) {
  const T minus_one{-1};
  const auto call = [&](auto trmm, const char* name) {
    require_blas(trmm(stream.blas(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, op,
                      CUBLAS_DIAG_NON_UNIT, x.rows, x.cols, of_blas(&minus_one), of_blas(l.data),
                      l.ld, of_blas(x.data), x.ld, of_blas(x.data), x.ld),
                 name);
  };
  if constexpr (sizeof(T) == 16)
    call(cublasZtrmm_64, "cublasZtrmm");
  else
    call(cublasCtrmm_64, "cublasCtrmm");
  require_launched("trmm");
}

}  // namespace strata::blas
