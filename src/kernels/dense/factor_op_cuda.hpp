#pragma once
// How cuBLAS is told what a factor of LU enters as. Only for *_cuda.cu.

#include <cublas_v2.h>

#include <cstdint>

#include "kernels/dense/lu_update.hpp"
#include "scalar/complex.hpp"

namespace strata::blas {

/// What a factor of LU enters as in a variant of lu_update and lu_back.
template <class T>
[[nodiscard]] inline cublasOperation_t op_of_factor(std::uint32_t variant) {
  if (variant == 0) return CUBLAS_OP_N;
  return (variant & kAdjointFactor) != 0 && is_complex_v<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
}

}  // namespace strata::blas
