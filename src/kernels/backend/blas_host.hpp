#pragma once
// The few calls of BLAS and LAPACK that the host kernels need, one name for all four elements.
//
// Contract: column-major, lower triangle, not unit. Extents are those of a tile and fit 32 bits.
// The functions are those of blas_table(), which is loaded on first use. Only for *_host.cpp.

#include <cblas.h>

#include <type_traits>

#include "kernels/backend/blas_table.hpp"
#include "scalar/complex.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

inline int narrow(std::int64_t extent) { return static_cast<int>(extent); }

/// What an operand that enters transposed is: Xᴴ, which of real numbers is Xᵀ.
template <class T>
inline constexpr CBLAS_TRANSPOSE kAdjoint = is_complex_v<T> ? CblasConjTrans : CblasTrans;

/// The one of four functions that is for T.
template <class T, class Double, class Single, class DoubleComplex, class SingleComplex>
auto for_type(Double fp64, Single fp32, DoubleComplex complex128, SingleComplex complex64) {
  if constexpr (std::is_same_v<T, double>)
    return fp64;
  else if constexpr (std::is_same_v<T, float>)
    return fp32;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return complex128;
  else
    return complex64;
}

/// A scalar as BLAS takes it: a complex one by its address.
template <class T>
auto scalar(const T& value) {
  if constexpr (is_complex_v<T>)
    return static_cast<const void*>(&value);
  else
    return value;
}

/// C ← C − op(A)·op(B); k is the inner extent.
template <class T>
void gemm_minus(CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, std::int64_t k, MatrixView<const T> a,
                MatrixView<const T> b, MatrixView<T> c) {
  const BlasTable& blas = blas_table();
  const auto call = for_type<T>(blas.dgemm, blas.sgemm, blas.zgemm, blas.cgemm);
  const T minus_one{-1};
  const T one{1};
  call(CblasColMajor, op_a, op_b, narrow(c.rows), narrow(c.cols), narrow(k), scalar(minus_one),
       a.data, narrow(a.ld), b.data, narrow(b.ld), scalar(one), c.data, narrow(c.ld));
}

/// X ← op(L)⁻¹·X (left) or X·op(L)⁻¹ (right).
template <class T>
void trsm(CBLAS_SIDE side, CBLAS_TRANSPOSE op, MatrixView<const T> l, MatrixView<T> x) {
  const BlasTable& blas = blas_table();
  const auto call = for_type<T>(blas.dtrsm, blas.strsm, blas.ztrsm, blas.ctrsm);
  const T one{1};
  call(CblasColMajor, side, CblasLower, op, CblasNonUnit, narrow(x.rows), narrow(x.cols),
       scalar(one), l.data, narrow(l.ld), x.data, narrow(x.ld));
}

/// As trsm, by halves: all but the diagonal blocks of order 64 is GEMM. OpenBLAS 0.3.21 solves with
/// a triangle of order 512 at 19 GFLOP/s on a core where its GEMM runs at 49; so divided it takes
/// half the time.
template <class T>
void trsm_by_halves(CBLAS_SIDE side, CBLAS_TRANSPOSE op, MatrixView<const T> l, MatrixView<T> x) {
  constexpr std::int64_t kLeaf = 64;
  const std::int64_t n = l.rows;
  if (n <= kLeaf) return trsm(side, op, l, x);
  const std::int64_t h = (n / 2 + kLeaf - 1) / kLeaf * kLeaf;
  const MatrixView<const T> l11 = l.block(0, 0, h, h);
  const MatrixView<const T> l21 = l.block(h, 0, n - h, h);
  const MatrixView<const T> l22 = l.block(h, h, n - h, n - h);
  if (side == CblasRight) {  // X = [X1 X2], op is the adjoint
    const MatrixView<T> x1 = x.block(0, 0, x.rows, h);
    const MatrixView<T> x2 = x.block(0, h, x.rows, n - h);
    trsm_by_halves(side, op, l11, x1);
    gemm_minus<T>(CblasNoTrans, kAdjoint<T>, h, x1, l21, x2);
    return trsm_by_halves(side, op, l22, x2);
  }
  const MatrixView<T> x1 = x.block(0, 0, h, x.cols);
  const MatrixView<T> x2 = x.block(h, 0, n - h, x.cols);
  if (op == CblasNoTrans) {
    trsm_by_halves(side, op, l11, x1);
    gemm_minus<T>(CblasNoTrans, CblasNoTrans, h, l21, x1, x2);
    trsm_by_halves(side, op, l22, x2);
  } else {
    trsm_by_halves(side, op, l22, x2);
    gemm_minus<T>(kAdjoint<T>, CblasNoTrans, n - h, l21, x2, x1);
    trsm_by_halves(side, op, l11, x1);
  }
}

/// X ← op(R)⁻¹·X of any triangle R, by halves as trsm_by_halves.
template <class T>
void solve_triangle(CBLAS_UPLO uplo, CBLAS_TRANSPOSE op, CBLAS_DIAG diagonal, MatrixView<const T> r,
                    MatrixView<T> x) {
  constexpr std::int64_t kLeaf = 64;
  const std::int64_t n = r.rows;
  if (n <= kLeaf) {
    const BlasTable& blas = blas_table();
    const auto call = for_type<T>(blas.dtrsm, blas.strsm, blas.ztrsm, blas.ctrsm);
    const T one{1};
    return call(CblasColMajor, CblasLeft, uplo, op, diagonal, narrow(n), narrow(x.cols),
                scalar(one), r.data, narrow(r.ld), x.data, narrow(x.ld));
  }
  const std::int64_t h = (n / 2 + kLeaf - 1) / kLeaf * kLeaf;
  const MatrixView<const T> r11 = r.block(0, 0, h, h);
  const MatrixView<const T> r22 = r.block(h, h, n - h, n - h);
  const MatrixView<const T> off =
      uplo == CblasLower ? r.block(h, 0, n - h, h) : r.block(0, h, h, n - h);
  const MatrixView<T> x1 = x.block(0, 0, h, x.cols);
  const MatrixView<T> x2 = x.block(h, 0, n - h, x.cols);
  if ((uplo == CblasLower) == (op == CblasNoTrans)) {
    solve_triangle(uplo, op, diagonal, r11, x1);
    gemm_minus<T>(op, CblasNoTrans, h, off, x1, x2);
    solve_triangle(uplo, op, diagonal, r22, x2);
  } else {
    solve_triangle(uplo, op, diagonal, r22, x2);
    gemm_minus<T>(op, CblasNoTrans, n - h, off, x2, x1);
    solve_triangle(uplo, op, diagonal, r11, x1);
  }
}

/// X ← X·U⁻¹ of an upper triangle U, by halves as trsm_by_halves.
template <class T>
void solve_upper_on_right(MatrixView<const T> u, MatrixView<T> x) {
  constexpr std::int64_t kLeaf = 64;
  const std::int64_t n = u.rows;
  if (n <= kLeaf) {
    const BlasTable& blas = blas_table();
    const auto call = for_type<T>(blas.dtrsm, blas.strsm, blas.ztrsm, blas.ctrsm);
    const T one{1};
    return call(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, narrow(x.rows),
                narrow(n), scalar(one), u.data, narrow(u.ld), x.data, narrow(x.ld));
  }
  const std::int64_t h = (n / 2 + kLeaf - 1) / kLeaf * kLeaf;
  const MatrixView<T> x1 = x.block(0, 0, x.rows, h);
  const MatrixView<T> x2 = x.block(0, h, x.rows, n - h);
  solve_upper_on_right<T>(u.block(0, 0, h, h), x1);
  gemm_minus<T>(CblasNoTrans, CblasNoTrans, h, x1, u.block(0, h, h, n - h), x2);
  solve_upper_on_right<T>(u.block(h, h, n - h, n - h), x2);
}

/// X ← −op(L)·X.
template <class T>
void trmm_minus(CBLAS_TRANSPOSE op, MatrixView<const T> l, MatrixView<T> x) {
  const BlasTable& blas = blas_table();
  const auto call = for_type<T>(blas.dtrmm, blas.strmm, blas.ztrmm, blas.ctrmm);
  const T minus_one{-1};
  call(CblasColMajor, CblasLeft, CblasLower, op, CblasNonUnit, narrow(x.rows), narrow(x.cols),
       scalar(minus_one), l.data, narrow(l.ld), x.data, narrow(x.ld));
}

/// C ← C − A·Aᴴ, lower triangle: of complex numbers BLAS's herk, whose scalars are real.
template <class T>
void syrk_minus(MatrixView<const T> a, MatrixView<T> c) {
  const BlasTable& blas = blas_table();
  const auto call = for_type<T>(blas.dsyrk, blas.ssyrk, blas.zherk, blas.cherk);
  call(CblasColMajor, CblasLower, CblasNoTrans, narrow(c.cols), narrow(a.cols), RealOf<T>{-1},
       a.data, narrow(a.ld), RealOf<T>{1}, c.data, narrow(c.ld));
}

/// LAPACK's info: 0, or 1 + the column where it stopped.
template <class T>
std::int64_t potrf(MatrixView<T> a) {
  const BlasTable& blas = blas_table();
  const int n = narrow(a.cols);
  const int ld = narrow(a.ld);
  int info = 0;
  for_type<T>(blas.dpotrf, blas.spotrf, blas.zpotrf, blas.cpotrf)("L", &n, a.data, &ld, &info, 1);
  return info;
}

}  // namespace strata::blas
