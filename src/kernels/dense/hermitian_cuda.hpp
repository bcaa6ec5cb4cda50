#pragma once
// Pieces of a Hermitian factorization on the GPU: panels, triangles, solves, its status.
//
// Contract: column-major in device memory; only lower triangles are read and written. T is
// std::complex of double or float. Only for *_cuda.cu.

#include <cstdint>

#include "device/device_cuda.hpp"
#include "kernels/dense/fused_cuda.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "strata/matrix_view.hpp"

namespace strata::hermitian {

/// The largest triangle of a solve, and matrix of a batch, of one launch.
inline constexpr std::int64_t kBlockMost = 64;

/// Most columns of a panel.
inline constexpr std::int64_t kPanelMost = 512;

/// Device memory for a panel's launches, beside the matrix.
[[nodiscard]] std::int64_t panel_scratch_bytes();

/// The first cols columns of A (rows × cols, cols at most kPanelMost) become L: A₁₁ = L₁₁·L₁₁ᴴ and
/// A₂₁ ← A₂₁·L₁₁⁻ᴴ. A bad pivot goes to *verdict, whose columns are counted twice, with 2·first
/// added. Takes the stream's operands(), too.
template <class T>
void factor_panel(CudaStream& stream, MatrixView<T> a, std::int64_t first,
                  fused_kernel::Verdict* verdict, void* scratch);

/// C ← C − A·Aᴴ, lower triangle, by halves: cuBLAS's herk is slow.
template <class T>
void update_triangle(CudaStream& stream, MatrixView<const T> a, MatrixView<T> c);

/// X ← X·L⁻ᴴ by blocks of kBlockMost, the diagonal of L real or complex. What a zero there divides
/// becomes zero.
template <class T>
void solve_right(CudaStream& stream, MatrixView<const T> l, MatrixView<T> x);

/// The status of a whole matrix.
template <class T>
void report(const CudaStream& stream, MatrixView<const T> l, const fused_kernel::Verdict* verdict,
            PivotStatus* status);

/// Matrices of a batch whose order is kBlockMost at most, a thread block each.
template <class T>
void factor_small(const CudaStream& stream, const BatchEntry* entries, PivotStatus* statuses,
                  std::int64_t count);

}  // namespace strata::hermitian
