#pragma once
// Large fp32 products as products of fp16 numbers on tensor cores.
//
// Method: each number is the sum of two of fp16, x = h + l, after scaling by a power of two. h·h',
// h·l' and l·h' of (h + l)·(h' + l') are summed in fp32, as one product with three times the inner
// extent. What is left out and rounded is below 2⁻²¹ of |x|·|x'| where both are within 2⁻¹⁰ of the
// largest of their matrices, and else below 2⁻³³ of that largest one times the other factor's
// (Markidis and others, "NVIDIA tensor core programmability, performance and precision", 2018;
// Ootomo and Yokota, "Recovering single precision accuracy from tensor cores", 2022).

#include "device/device_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::blas {

/// C ← C − A·B, k the inner extent and |A| <= 1, if they are so large that it pays. Returns false,
/// and does nothing, if not. Takes the stream's operands(). What is not finite in A or B makes
/// elements of C that are not. Throws Error{device}.
bool gemm_minus_by_halves(CudaStream& stream, std::int64_t k, MatrixView<const float> a,
                          MatrixView<const float> b, MatrixView<float> c);

}  // namespace strata::blas
