#pragma once
// Blocks of a Hermitian factorization on the GPU: its diagonal blocks, what they solve, its status.
//
// Contract: column-major in device memory; only lower triangles are read and written. T is
// std::complex of double or float. Only for *_cuda.cu.

#include <cstdint>

#include "device/device_cuda.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "strata/matrix_view.hpp"

namespace strata::hermitian {

/// The largest diagonal block of one launch.
inline constexpr std::int64_t kBlockMost = 64;

/// The first bad pivot of a matrix; none at first (start_verdict()).
struct Verdict {
  int bad_column;
  double bad_pivot;
};

void start_verdict(const CudaStream& stream, Verdict* verdict);

/// A ← L, of order kBlockMost at most, whose columns are those from `first` on of the matrix. From
/// a bad pivot on, its column and those behind it are zeros.
template <class T>
void factor_block(const CudaStream& stream, MatrixView<T> a, std::int64_t first, Verdict* verdict);

/// X ← X·L⁻ᴴ, L of order kBlockMost at most, its diagonal real or complex. What a zero there
/// divides becomes zero.
template <class T>
void solve_block(const CudaStream& stream, MatrixView<const T> l, MatrixView<T> x);

/// C ← C − A·Aᴴ, lower triangle, by halves: cuBLAS's herk is slow.
template <class T>
void update_triangle(CudaStream& stream, MatrixView<const T> a, MatrixView<T> c);

/// X ← X·L⁻ᴴ for any order, by blocks.
template <class T>
void solve_right(CudaStream& stream, MatrixView<const T> l, MatrixView<T> x);

/// The status of a whole matrix.
template <class T>
void report(const CudaStream& stream, MatrixView<const T> l, const Verdict* verdict,
            PivotStatus* status);

/// Matrices of a batch whose order is kBlockMost at most, a thread block each.
template <class T>
void factor_small(const CudaStream& stream, const BatchEntry* entries, PivotStatus* statuses,
                  std::int64_t count);

}  // namespace strata::hermitian
