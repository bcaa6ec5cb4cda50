// Solves and products of LU: see lu_columns_cuda.hpp.
//
// Method: solves by lu_solve_cuda.hpp, kSolveMost rows at a time; they read their rows from where
// these were before the exchanges. Products by cuBLAS.

#include "kernels/dense/lu_columns_cuda.hpp"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/gemm_parts_cuda.hpp"
#include "kernels/dense/lu_solve_cuda.hpp"

namespace strata::lu_cuda {
namespace {

static_assert(kSolveMost == kSolvedAtOnce);
constexpr int kEach = kSolveMost / 32;  // rows of a lane

/// A thread block takes kSolveColumns columns.
template <class T>
__global__ void __launch_bounds__(kSolveThreads)
    run_solve(const RowMoves* moves, int first, const T* l, std::int64_t ldl, int order, T* x,
              std::int64_t ld, std::int64_t cols) {
  extern __shared__ __align__(16) unsigned char bytes[];
  constexpr int kColumns = kSolveColumns<T>;
  constexpr int kStride = kSolveStride<T>;
  const SolveMemory<T> memory(bytes, order);
  const int padded = SolveMemory<T>::rows_of(order);
  const std::int64_t c0 = static_cast<std::int64_t>(blockIdx.x) * kColumns;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  constexpr int kWarpColumns = kColumns / kSolveWarps;
  T near[kWarpColumns][kEach];
  T away[kWarpColumns][kEach];
  int far[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int j = lane + 32 * i;
    const bool moved = moves != nullptr && j < order;
    const int top = moved ? moves->top[j] : first + j;
    far[i] = moved ? moves->far[j] : -1;
#pragma unroll
    for (int n = 0; n < kWarpColumns; ++n) {
      const std::int64_t c = c0 + n * kSolveWarps + warp;
      const T* column = x + c * ld;
      near[n][i] = c < cols && j < order ? column[top] : T{};
      away[n][i] = c < cols && far[i] >= 0 ? column[first + j] : T{};
    }
  }
  __syncwarp();
#pragma unroll
  for (int n = 0; n < kWarpColumns; ++n) {
    const std::int64_t c = c0 + n * kSolveWarps + warp;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = lane + 32 * i;
      if (j < padded) memory.x[j * kStride + n * kSolveWarps + warp] = near[n][i];
      if (c < cols && far[i] >= 0) x[far[i] + c * ld] = away[n][i];
    }
  }
  solve_in_shared(l, ldl, order, memory);
  for (int c = warp; c < kColumns && c0 + c < cols; c += kSolveWarps)
    for (int j = lane; j < order; j += 32) x[first + j + (c0 + c) * ld] = memory.x[j * kStride + c];
}

/// Rows first … first + l.cols − 1 of x ← L⁻¹·these, at most kSolveMost, after the exchanges of
/// `moves`, unless it is null. l is those rows of the panel.
template <class T>
void solve(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
           MatrixView<const T> l, MatrixView<T> x) {
  const int order = static_cast<int>(l.cols);
  require_cuda(cudaFuncSetAttribute(run_solve<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    SolveMemory<T>::bytes(kSolveMost)),
               "cudaFuncSetAttribute");
  const auto blocks = static_cast<unsigned>((x.cols + kSolveColumns<T> - 1) / kSolveColumns<T>);
  run_solve<T>
      <<<blocks, kSolveThreads, static_cast<std::size_t>(SolveMemory<T>::bytes(order)),
         stream.get()>>>(moves, static_cast<int>(first), l.data, l.ld, order, x.data, x.ld, x.cols);
  blas::require_launched("unit lower solve");
}

}  // namespace

template <class T>
void solve_by_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first,
                    const RowMoves* moves, MatrixView<T> x) {
  const std::int64_t end = l.cols;
  if (x.cols == 0 || first >= end) return;
  const bool in_solve = end - first <= kSolveMost;
  if (moves != nullptr && !in_solve)
    move_rows(stream, moves, first, end - first, x, MoveDirection::forward);
  for (std::int64_t c = first; c < end; c += kSolveMost) {
    const std::int64_t width = std::min<std::int64_t>(kSolveMost, end - c);
    solve(stream, in_solve ? moves : nullptr, c, l.block(c, c, width, width), x);
    if (c + width < end)
      blas::gemm_minus(stream, CUBLAS_OP_N, CUBLAS_OP_N, width,
                       l.block(c + width, c, end - c - width, width),
                       MatrixView<const T>(x.block(c, 0, width, x.cols)),
                       x.block(c + width, 0, end - c - width, x.cols));
  }
}

template <class T>
void subtract_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first, MatrixView<T> x,
                    bool halves) {
  const std::int64_t end = l.cols;
  if (x.cols == 0 || first >= end || end >= l.rows) return;
  const auto below = l.block(end, first, l.rows - end, end - first);
  const MatrixView<const T> rows(x.block(first, 0, end - first, x.cols));
  const auto rest = x.block(end, 0, l.rows - end, x.cols);
  if constexpr (std::is_same_v<T, float>)
    if (halves && blas::gemm_minus_by_halves(stream, end - first, below, rows, rest)) return;
  blas::gemm_minus(stream, CUBLAS_OP_N, CUBLAS_OP_N, end - first, below, rows, rest);
}

template <class T>
void apply_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first,
                 const RowMoves* moves, MatrixView<T> x, bool halves) {
  solve_by_panel(stream, l, first, moves, x);
  subtract_panel(stream, l, first, x, halves);
}

#define STRATA_INSTANTIATE(T)                                                                      \
  template void solve_by_panel<T>(CudaStream&, MatrixView<const T>, std::int64_t, const RowMoves*, \
                                  MatrixView<T>);                                                  \
  template void subtract_panel<T>(CudaStream&, MatrixView<const T>, std::int64_t, MatrixView<T>,   \
                                  bool);                                                           \
  template void apply_panel<T>(CudaStream&, MatrixView<const T>, std::int64_t, const RowMoves*,    \
                               MatrixView<T>, bool);
STRATA_INSTANTIATE(double)
STRATA_INSTANTIATE(float)
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::lu_cuda
