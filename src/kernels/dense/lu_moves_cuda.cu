// Row exchanges of LU: see lu_moves_cuda.hpp.
//
// Method: where rows end up is found out first, with numbers of rows. Then a thread block moves the
// rows of a column, or of some: it reads all elements that change places, then writes them. For the
// columns on the left of many panels the exchanges of all of them are put together to one order, so
// that each column is read and written once, from top to bottom, and not in pieces at random places
// for each panel.

#include "kernels/dense/lu_moves_cuda.hpp"

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"

namespace strata::lu_cuda {
namespace {

constexpr int kMost = static_cast<int>(kMovesMost);
constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // elements of a thread
static_assert(kMost == kThreads * kAtOnce);

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
  }
}

/// A thread block takes kAtOnce / kRows columns at once, each thread kRows rows of each.
template <class T, int kRows>
__global__ void __launch_bounds__(kThreads)
    run_moves(const RowMoves* moves, int first, int count, T* x, std::int64_t ld, std::int64_t cols,
              bool back) {
  constexpr int kColumns = kAtOnce / kRows;
  int near_from[kRows];
  int near_to[kRows];
  int far_from[kRows];
  int far_to[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int j = static_cast<int>(threadIdx.x) + kThreads * i;
    near_from[i] = near_to[i] = far_from[i] = far_to[i] = -1;
    if (j >= count) continue;
    near_from[i] = back ? first + j : moves->top[j];
    near_to[i] = back ? moves->top[j] : first + j;
    if (moves->far[j] < 0) continue;
    far_from[i] = back ? moves->far[j] : first + j;
    far_to[i] = back ? first + j : moves->far[j];
  }
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kColumns;
  for (std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kColumns; c < cols; c += step) {
    T near[kColumns][kRows];
    T away[kColumns][kRows];
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const T* column = x + (c + n) * ld;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (c + n < cols && near_from[i] >= 0) near[n][i] = column[near_from[i]];
        if (c + n < cols && far_from[i] >= 0) away[n][i] = column[far_from[i]];
      }
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      T* column = x + (c + n) * ld;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (c + n < cols && near_to[i] >= 0) column[near_to[i]] = near[n][i];
        if (c + n < cols && far_to[i] >= 0) column[far_to[i]] = away[n][i];
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) identity(int* from, int* at, int rows) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i < rows) from[i] = at[i] = i;
}

/// One thread block.
__global__ void __launch_bounds__(kMost)
    put_moves_before(const RowMoves* moves, int first, int count, int* from, int* at) {
  const int t = static_cast<int>(threadIdx.x);
  int near = -1;
  int away = -1;
  if (t < count) {
    near = at[first + t];
    if (moves->far[t] >= 0) away = at[moves->far[t]];
  }
  __syncthreads();
  if (near >= 0) {
    from[near] = moves->top[t];
    at[moves->top[t]] = near;
  }
  if (away >= 0) {
    from[away] = first + t;
    at[first + t] = away;
  }
}

constexpr int kOrderThreads = 1024;

/// A thread block a column, which it copies to a place of its own first.
template <class T>
__global__ void __launch_bounds__(kOrderThreads)
    run_order(const int* from, int first, int rows, T* x, std::int64_t ld, std::int64_t cols,
              T* copies) {
  T* copy = copies + static_cast<std::int64_t>(blockIdx.x) * rows;
  for (std::int64_t c = blockIdx.x; c < cols; c += gridDim.x) {
    T* column = x + first + c * ld;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < rows; i += kOrderThreads) copy[i] = column[i];
    __syncthreads();
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < rows; i += kOrderThreads)
      column[i] = copy[from[first + i] - first];
    __syncthreads();
  }
}

}  // namespace

void make_moves(const CudaStream& stream, const std::int64_t* pivots, std::int64_t first,
                std::int64_t count, RowMoves* moves) {
  if (count == 0) return;
  const auto threads = static_cast<unsigned>((count + 31) / 32 * 32);
  find_moves<<<1, threads, 0, stream.get()>>>(pivots, static_cast<int>(first),
                                              static_cast<int>(count), moves);
  blas::require_launched("row moves");
}

template <class T>
void move_rows(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
               std::int64_t count, MatrixView<T> x, MoveDirection direction) {
  if (x.cols == 0 || count == 0) return;
  constexpr std::int64_t kBlocksMost = 2048;
  const auto launch = [&](auto kernel, int columns) {
    const auto blocks =
        static_cast<unsigned>(std::min((x.cols + columns - 1) / columns, kBlocksMost));
    kernel<<<blocks, kThreads, 0, stream.get()>>>(moves, static_cast<int>(first),
                                                  static_cast<int>(count), x.data, x.ld, x.cols,
                                                  direction == MoveDirection::back);
  };
  if (count <= kThreads)
    launch(run_moves<T, 1>, kAtOnce);
  else if (count <= 2 * kThreads)
    launch(run_moves<T, 2>, kAtOnce / 2);
  else
    launch(run_moves<T, kAtOnce>, 1);
  blas::require_launched("row exchanges");
}

void start_order(const CudaStream& stream, const RowOrder& order) {
  if (order.rows == 0) return;
  identity<<<static_cast<unsigned>((order.rows + kThreads - 1) / kThreads), kThreads, 0,
             stream.get()>>>(order.from, order.at, static_cast<int>(order.rows));
  blas::require_launched("order of rows");
}

void put_before(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
                std::int64_t count, const RowOrder& order) {
  put_moves_before<<<1, kMost, 0, stream.get()>>>(moves, static_cast<int>(first),
                                                  static_cast<int>(count), order.from, order.at);
  blas::require_launched("order of rows");
}

template <class T>
void reorder_rows(const CudaStream& stream, const RowOrder& order, std::int64_t first,
                  MatrixView<T> x, void* scratch, std::int64_t scratch_bytes) {
  const std::int64_t rows = order.rows - first;
  if (x.cols == 0 || rows <= 1) return;
  const std::int64_t places = scratch_bytes / (rows * static_cast<std::int64_t>(sizeof(T)));
  const auto blocks =
      static_cast<unsigned>(std::min({x.cols, places, std::int64_t{2} * multiprocessors()}));
  run_order<T><<<blocks, kOrderThreads, 0, stream.get()>>>(order.from, static_cast<int>(first),
                                                           static_cast<int>(rows), x.data, x.ld,
                                                           x.cols, static_cast<T*>(scratch));
  blas::require_launched("order of rows");
}

#define STRATA_INSTANTIATE(T)                                                                    \
  template void move_rows<T>(const CudaStream&, const RowMoves*, std::int64_t, std::int64_t,     \
                             MatrixView<T>, MoveDirection);                                      \
  template void reorder_rows<T>(const CudaStream&, const RowOrder&, std::int64_t, MatrixView<T>, \
                                void*, std::int64_t);
STRATA_INSTANTIATE(double)
STRATA_INSTANTIATE(float)
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::lu_cuda
