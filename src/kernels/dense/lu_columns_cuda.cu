// Row exchanges, solves and products of LU: see lu_columns_cuda.hpp.
//
// Method: where rows end up is found out first, with numbers of rows. Then a warp moves the rows of
// a column at once: it reads all elements that change places, then writes them. Solves take what
// was read from shared memory, without writing it in between (solve_in_shared()); they substitute,
// and no inverse of a triangle is made: with inverses the residual would grow with their condition
// (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, section 14.2).

#include "kernels/dense/lu_columns_cuda.hpp"

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"

namespace strata::lu_cuda {
namespace {

constexpr int kMost = static_cast<int>(kPanelColumns);
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kEach = kMost / 32;  // rows of a lane

/// A thread follows one of the panel's upper rows through all exchanges. Where none of them ends up
/// comes a row from below: that of the pivot, which was in no exchange before.
__global__ void __launch_bounds__(kMost)
    find_moves(const std::int64_t* pivots, int first, int count, RowMoves* moves) {
  __shared__ int pivot[kMost];
  __shared__ int top[kMost];
  const int t = static_cast<int>(threadIdx.x);
  const int end = first + count;
  if (t < count) pivot[t] = static_cast<int>(pivots[first + t]);
  __syncthreads();
  int row = first + t;
  if (t < count) top[t] = pivot[t];
#pragma unroll 8
  for (int j = 0; j < count; ++j) {
    const int other = pivot[j];
    row = row == first + j ? other : row == other ? first + j : row;
  }
  __syncthreads();
  if (t < count && row < end) top[row - first] = first + t;
  __syncthreads();
  if (t < count) {
    moves->top[t] = top[t];
    moves->far[t] = row >= end ? row : -1;
    moves->far_from[t] = first + t;
  }
}

/// A warp a column.
template <class T>
__global__ void __launch_bounds__(kThreads)
    run_moves(const RowMoves* moves, int first, int count, T* x, std::int64_t ld, std::int64_t cols,
              bool back) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  for (std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; c < cols;
       c += step) {
    T* column = x + c * ld;
    T near[kEach];
    T away[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = lane + 32 * i;
      if (j >= count) continue;
      const int far = moves->far[j];
      near[i] = column[back ? first + j : moves->top[j]];
      if (far >= 0) away[i] = column[back ? far : moves->far_from[j]];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = lane + 32 * i;
      if (j >= count) continue;
      const int far = moves->far[j];
      column[back ? moves->top[j] : first + j] = near[i];
      if (far >= 0) column[back ? moves->far_from[j] : far] = away[i];
    }
  }
}

template <class T>
inline constexpr int kSolveColumns = sizeof(T) == 16 ? 16 : 32;

template <class T>
constexpr int solve_bytes(int order) {
  return (order * row_stride<T>(kSolveColumns<T>) + kSolveRows * kSolveRows) *
         static_cast<int>(sizeof(T));
}

/// A thread block takes kSolveColumns columns.
template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    run_solve(const RowMoves* moves, int first, const T* l, std::int64_t ldl, int order, T* x,
              std::int64_t ld, std::int64_t cols) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kColumns = kSolveColumns<T>;
  constexpr int kStride = row_stride<T>(kColumns);
  T* u = reinterpret_cast<T*>(memory);
  T* triangle = u + order * kStride;
  const std::int64_t c0 = static_cast<std::int64_t>(blockIdx.x) * kColumns;
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int c = static_cast<int>(threadIdx.x / 32); c < kColumns; c += kWarps) {
    T* column = x + (c0 + c) * ld;
    const bool here = c0 + c < cols;
    T away[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = lane + 32 * i;
      if (j >= order) continue;
      T near{};
      if (here) near = column[moves == nullptr ? first + j : moves->top[j]];
      u[j * kStride + c] = near;
      if (here && moves != nullptr && moves->far[j] >= 0) away[i] = column[moves->far_from[j]];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = lane + 32 * i;
      if (here && moves != nullptr && j < order && moves->far[j] >= 0)
        column[moves->far[j]] = away[i];
    }
  }
  solve_in_shared<T, kColumns, kThreads>(l, ldl, order, u, triangle);
  for (int c = static_cast<int>(threadIdx.x / 32); c < kColumns && c0 + c < cols; c += kWarps)
    for (int j = lane; j < order; j += 32) x[first + j + (c0 + c) * ld] = u[j * kStride + c];
}

}  // namespace

void make_moves(const CudaStream& stream, const std::int64_t* pivots, std::int64_t first,
                std::int64_t count, RowMoves* moves) {
  find_moves<<<1, kMost, 0, stream.get()>>>(pivots, static_cast<int>(first),
                                            static_cast<int>(count), moves);
  blas::require_launched("row moves");
}

template <class T>
void move_rows(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
               std::int64_t count, MatrixView<T> x, MoveDirection direction) {
  if (x.cols == 0 || count == 0) return;
  constexpr std::int64_t kBlocksMost = 4096;
  const auto blocks = static_cast<unsigned>(std::min((x.cols + kWarps - 1) / kWarps, kBlocksMost));
  run_moves<T><<<blocks, kThreads, 0, stream.get()>>>(moves, static_cast<int>(first),
                                                      static_cast<int>(count), x.data, x.ld, x.cols,
                                                      direction == MoveDirection::back);
  blas::require_launched("row exchanges");
}

template <class T>
void move_and_solve(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
                    MatrixView<const T> l, MatrixView<T> x) {
  if (x.cols == 0 || l.cols == 0) return;
  const int order = static_cast<int>(l.cols);
  require_cuda(cudaFuncSetAttribute(run_solve<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    solve_bytes<T>(kMost)),
               "cudaFuncSetAttribute");
  const auto blocks = static_cast<unsigned>((x.cols + kSolveColumns<T> - 1) / kSolveColumns<T>);
  run_solve<T><<<blocks, kThreads, static_cast<std::size_t>(solve_bytes<T>(order)), stream.get()>>>(
      moves, static_cast<int>(first), l.data, l.ld, order, x.data, x.ld, x.cols);
  blas::require_launched("unit lower solve");
}

template <class T>
void apply_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first,
                 const RowMoves* moves, MatrixView<T> x) {
  if (x.cols == 0) return;
  const std::int64_t end = l.cols;
  const bool one = end - first <= kPanelColumns;
  if (!one) {
    for (std::int64_t c = first; c < end; c += kPanelColumns)
      move_rows(stream, moves + (c - first) / kPanelColumns, c, std::min(kPanelColumns, end - c), x,
                MoveDirection::forward);
  }
  for (std::int64_t c = first; c < end; c += kPanelColumns) {
    const std::int64_t width = std::min(kPanelColumns, end - c);
    move_and_solve(stream, one ? moves : nullptr, c, l.block(c, c, width, width), x);
    if (c + width < end)
      blas::gemm_minus(stream, CUBLAS_OP_N, CUBLAS_OP_N, width,
                       l.block(c + width, c, end - c - width, width),
                       MatrixView<const T>(x.block(c, 0, width, x.cols)),
                       x.block(c + width, 0, end - c - width, x.cols));
  }
  if (end < l.rows)
    blas::gemm_minus(stream, CUBLAS_OP_N, CUBLAS_OP_N, end - first,
                     l.block(end, first, l.rows - end, end - first),
                     MatrixView<const T>(x.block(first, 0, end - first, x.cols)),
                     x.block(end, 0, l.rows - end, x.cols));
}

#define STRATA_INSTANTIATE(T)                                                                   \
  template void move_rows<T>(const CudaStream&, const RowMoves*, std::int64_t, std::int64_t,    \
                             MatrixView<T>, MoveDirection);                                     \
  template void move_and_solve<T>(const CudaStream&, const RowMoves*, std::int64_t,             \
                                  MatrixView<const T>, MatrixView<T>);                          \
  template void apply_panel<T>(CudaStream&, MatrixView<const T>, std::int64_t, const RowMoves*, \
                               MatrixView<T>);
STRATA_INSTANTIATE(double)
STRATA_INSTANTIATE(float)
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::lu_cuda
