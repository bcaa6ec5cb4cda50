#pragma once
// The sums of gram.hpp over units, in fp64 on the tensor cores. Contract: included by *_cuda.cu
// only; the bits are those of a chain of fused multiply-adds.

#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// units[u · pairs + pair] ← the sum of unit u, `tiles_of_unit` tiles high (1, 2, 4 or 8), of xᵀx
/// for i <= j; or of xᵀy, x and y of equally many rows. T is double or float.
template <class T>
void tensor_unit_sums(cudaStream_t stream, const Columns<T>& x, int tiles_of_unit, double* units);
template <class T>
void tensor_unit_sums(cudaStream_t stream, const Columns<T>& x, const Columns<T>& y,
                      int tiles_of_unit, double* units);

/// The most columns of solved_unit_sums(), and what it takes of device memory.
inline constexpr std::int64_t kSolvedSumsColumns = 64;
[[nodiscard]] std::int64_t solved_sums_bytes();

/// The same of X·R⁻¹ with itself, of units of gram.hpp, rounded to doubles and not stored: V is
/// read once. R as solve_right takes it.
void solved_unit_sums(cudaStream_t stream, const Columns<double>& x, const double* r,
                      std::int64_t r_ld, void* memory, double* units);

}  // namespace strata::gram_gpu
