#pragma once
// One launch that factors, or solves with, a matrix of any order: tiles in the order of their
// dependences. For potrf_cuda.cu and trsm_cuda.cu.
//
// Contract: matrices are column-major in device memory, with any leading dimension; calls enqueue
// and return. Equal inputs give equal bits, whatever runs beside. T is double or float.

#include "device/device_cuda.hpp"
#include "kernels/dense/potrf.hpp"
#include "strata/matrix_view.hpp"

namespace strata::fused_kernel {

/// How the kernel is built; what PotrfOptions calls recnb and ib.
struct Shape {
  int tile = 128;          ///< 64 or 128
  int ib = 8;              ///< 4 or 8
  int blocks = 0;          ///< thread blocks at most; 0: as many as the GPU holds
  bool exclusive = false;  ///< factor(): a launch a column of tiles
};

/// What a factorization found, in device memory; all zero before its first launch.
struct Verdict {
  int failed;
  std::int64_t bad_column;
  double bad_pivot;
};

/// Device memory that a factorization of rows × cols needs beside the matrix: a multiple of 128.
/// Used by nothing else until the launch is over.
[[nodiscard]] std::int64_t scratch_bytes(std::int64_t rows, std::int64_t cols, int tile);

/// How much of it, from its beginning, is to be zero at the launch; all that a solve needs.
[[nodiscard]] std::int64_t zeroed_bytes(std::int64_t rows, int tile);

/// The first cols columns of A (rows × cols, rows >= cols) become L: A₁₁ = L₁₁·L₁₁ᵀ and
/// A₂₁ ← A₂₁·L₁₁⁻ᵀ. Strictly above the diagonal nothing is written. cols is a multiple of the tile,
/// or equal to rows. A bad pivot goes to *verdict, with first_column added to its column, unless
/// there is one already. Throws Error{device}.
template <class T>
void factor(cudaStream_t stream, MatrixView<T> a, Shape shape, std::int64_t first_column,
            Verdict* verdict, void* scratch);

/// The lower triangle of C ← C − A·Aᵀ, where A is the `inner` columns of the same rows of the same
/// matrix which begin `left` columns left of C; both are multiples of 128. Throws Error{device}.
template <class T>
void update_triangle(cudaStream_t stream, MatrixView<T> c, std::int64_t left, std::int64_t inner);

/// *status ← the verdict, and the log-determinant from the diagonal of L.
template <class T>
void report(cudaStream_t stream, MatrixView<const T> l, const Verdict* verdict,
            PivotStatus* status);

/// X ← X·L⁻ᵀ for X rows × cols and L cols × cols.
template <class T>
void solve(cudaStream_t stream, MatrixView<const T> l, MatrixView<T> x, Shape shape, void* scratch);

}  // namespace strata::fused_kernel
