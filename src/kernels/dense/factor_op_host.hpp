#pragma once
// How BLAS is told what a factor of LU enters as.

#include "kernels/backend/blas_host.hpp"
#include "kernels/dense/lu_update.hpp"

namespace strata::blas {

/// What a factor of LU enters as in a variant of lu_update and lu_back.
template <class T>
[[nodiscard]] inline CBLAS_TRANSPOSE op_of_factor(std::uint32_t variant) {
  if (variant == 0) return CblasNoTrans;
  return (variant & kAdjointFactor) != 0 ? kAdjoint<T> : CblasTrans;
}

}  // namespace strata::blas
