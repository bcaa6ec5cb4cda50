#pragma once
// How cuBLAS is told what a factor of LU enters as, and solves with its triangles. Only for
// *_cuda.cu.

#include <cublas_v2.h>

#include <cstdint>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/solve_columns_cuda.hpp"
#include "scalar/complex.hpp"

namespace strata::blas {

/// What a factor of LU enters as in a variant of lu_update and lu_back.
template <class T>
[[nodiscard]] inline cublasOperation_t op_of_factor(std::uint32_t variant) {
  if (variant == 0) return CUBLAS_OP_N;
  return (variant & kAdjointFactor) != 0 && is_complex_v<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
}

/// Whether a solve with so many columns is one launch of solve_columns_cuda.hpp.
template <class T>
[[nodiscard]] inline bool is_few_columns(std::int64_t columns) {
  return !is_complex_v<T> && columns <= few_columns::kMostColumns;
}

/// X ← op(A)⁻¹·X for the triangle of A that `fill` names.
template <class T>
void solve_factor(CudaQueue& queue, cublasFillMode_t fill, cublasOperation_t op,
                  cublasDiagType_t diagonal, MatrixView<const T> a, MatrixView<T> x) {
  if constexpr (!is_complex_v<T>) {
    if (is_few_columns<T>(x.cols)) {
      void* scratch = queue.scratch(few_columns::scratch_bytes(x.rows, x.cols));
      few_columns::solve<T>(queue.stream(), a, x,
                            {.upper = fill == CUBLAS_FILL_MODE_UPPER,
                             .transposed = op != CUBLAS_OP_N,
                             .unit = diagonal == CUBLAS_DIAG_UNIT},
                            scratch);
      return;
    }
  }
  solve_triangle(queue.main(), fill, op, diagonal, a, x);
}

}  // namespace strata::blas
