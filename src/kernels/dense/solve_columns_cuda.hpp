#pragma once
// X ← L⁻¹·X or L⁻ᵀ·X in one launch, for few columns of X and a lower or an upper triangle L. For
// trsm_cuda.cu, lu_update_cuda.cu and lu_back_cuda.cu.
//
// Contract: matrices are column-major in device memory, with any leading dimension; only the
// triangle of L is read. The calls enqueue and return. The bits of a column depend on L and on that
// column alone: not on the columns beside it, nor on what runs beside. T is double or float.

#include "device/device_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::few_columns {

/// The most columns for which this is meant: L is read once for every eight.
inline constexpr std::int64_t kMostColumns = 64;

/// Device memory that a solve needs beside the matrices, used by nothing else until it is over.
[[nodiscard]] std::int64_t scratch_bytes(std::int64_t rows, std::int64_t cols);

/// Which triangle of L, how it is taken, and whether its diagonal is ones, whatever is there.
struct TriangleOf {
  bool upper = false;
  bool transposed = false;
  bool unit = false;
};

/// X, rows × cols, becomes L⁻¹·X, or L⁻ᵀ·X if `transposed`. Throws Error{device}.
template <class T>
void solve(cudaStream_t stream, MatrixView<const T> l, MatrixView<T> x, const TriangleOf& of,
           void* scratch);

}  // namespace strata::few_columns
