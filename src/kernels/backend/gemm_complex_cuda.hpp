#pragma once
// Large products of complex128 as products of real numbers.
//
// Why: cuBLAS multiplies complex128 in blocks of 32 × 32, at 37 to 42 TFLOP/s on an H200 where real
// products of the same work run at 46 to 50 (bench/results/2026-12-01-h200-lu.md). In memory B and
// C are real matrices with twice the rows already, and only A has to be laid out anew. Its column a
// becomes the columns a and i·a of a real matrix of twice the rows. Re b and Im b, which lie one
// after the other in B, multiply these. No operation is saved or added.

#include <complex>
#include <cstdint>

#include "device/device_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

/// C ← C − A·B, k the inner extent, if they are so large that it pays. Returns false, and does
/// nothing, if not. Every element is a sum of real products: Re a·Re b, −Im a·Im b of the first
/// column of A and so forth. Throws Error{device}.
bool gemm_minus_by_parts(CudaStream& stream, std::int64_t k,
                         MatrixView<const std::complex<double>> a,
                         MatrixView<const std::complex<double>> b,
                         MatrixView<std::complex<double>> c);

/// C ← C − A·Bᴴ in the same way; B, n × k, is laid out anew, too.
bool gemm_minus_adjoint_by_parts(CudaStream& stream, MatrixView<const std::complex<double>> a,
                                 MatrixView<const std::complex<double>> b,
                                 MatrixView<std::complex<double>> c);

}  // namespace strata::blas
