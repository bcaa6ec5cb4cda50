// potrf on the GPU: recursive, with kernels of our own for 64 columns.
//
// Method: split the columns in two, A = [A11 ·; A21 A22]. Factor A11 = L11·L11ᵀ, solve
// L21 = A21·L11⁻ᵀ, update A22 ← A22 − L21·L21ᵀ, factor A22 (Gustavson, "Recursion leads to
// automatic variable blocking for dense linear-algebra algorithms", 1997). The panel solve splits
// the columns of L11 in the same way. At 64 columns one thread block factors the diagonal block in
// registers, and each row of the panel is one thread's forward substitution. Recursion, because
// half of the arithmetic is then one product with k = n/2, where cuBLAS is fastest, and nothing has
// to be tuned; kernels of our own at the end, because the pivots must be seen and a failure must
// keep its column and value.
//
// A bad pivot: its column and all later ones of the diagonal block are multiplied by zero instead
// of 1/√pivot, and what follows in the tile computes with whatever it finds. No branch or loop
// depends on those values, so nothing hangs; the status keeps the first failure because later ones
// look before they write. Kernels of one stream see each other's writes to the status.

#include <cmath>

#include "kernels/blas_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/potrf.hpp"

namespace strata {
namespace {

constexpr int kPanel = 64;              // columns of a diagonal block
constexpr int kSide = 16;               // its thread block is 16 × 16
constexpr int kPatch = kPanel / kSide;  // each thread holds 4 × 4 elements
constexpr int kSolveRows = 64;          // rows of the panel a thread block solves
constexpr int kSolveColumns = 16;       // of them in registers at a time
constexpr int kReportThreads = 256;

/// patch[u][v] ← A(x + 16u, y + 16v) where that lies in the lower triangle, else zero.
template <class T>
__device__ void load_patch(T (&patch)[kPatch][kPatch], const T* a, int n, std::int64_t ld, int x,
                           int y) {
#pragma unroll
  for (int v = 0; v < kPatch; ++v) {
#pragma unroll
    for (int u = 0; u < kPatch; ++u) {
      const int i = x + kSide * u;
      const int j = y + kSide * v;
      patch[u][v] = i < n && j <= i ? a[i + j * ld] : T{0};
    }
  }
}

/// The way back, lower triangle only.
template <class T>
__device__ void store_patch(const T (&patch)[kPatch][kPatch], T* a, int n, std::int64_t ld, int x,
                            int y) {
#pragma unroll
  for (int v = 0; v < kPatch; ++v) {
#pragma unroll
    for (int u = v; u < kPatch; ++u) {
      const int i = x + kSide * u;
      const int j = y + kSide * v;
      if (i < n && j <= i) a[i + j * ld] = patch[u][v];
    }
  }
}

/// Factors a diagonal block of n <= 64 columns. Thread (x, y) holds the elements
/// (x + 16u, y + 16v), so that all threads have work until the last columns. One barrier a column:
/// its owners publish it, unscaled, in one of two buffers in turn.
template <class T>
__global__ void __launch_bounds__(kSide* kSide)
    factor_block(T* a, int n, std::int64_t ld, std::int64_t first_column, PivotStatus* status) {
  __shared__ T published[2][kPanel];
  const int x = static_cast<int>(threadIdx.x) % kSide;
  const int y = static_cast<int>(threadIdx.x) / kSide;
  const bool reporter = threadIdx.x == 0;
  if (reporter && first_column == 0) *status = PivotStatus{};

  T patch[kPatch][kPatch];
  load_patch(patch, a, n, ld, x, y);

  bool failed = false;  // the same in all threads
#pragma unroll
  for (int w = 0; w < kPatch; ++w) {  // column k = z + 16w is patch[·][w] of the threads y == z
    for (int z = 0; z < kSide; ++z) {
      const int k = z + kSide * w;
      if (k >= n) break;
      T* column = published[k % 2];
      if (y == z) {
#pragma unroll
        for (int u = 0; u < kPatch; ++u) column[x + kSide * u] = patch[u][w];
      }
      __syncthreads();

      const T pivot = column[k];
      if (!failed && (!(pivot > T{0}) || isinf(pivot))) {
        failed = true;
        if (reporter && status->bad_column < 0) {
          status->bad_column = first_column + k;
          status->bad_pivot = static_cast<double>(pivot);
        }
      }
      const T root = failed ? pivot : sqrt(pivot);
      const T scale = failed ? T{0} : T{1} / root;

      T below[kPatch];  // L(x + 16u, k)
#pragma unroll
      for (int u = w; u < kPatch; ++u) below[u] = column[x + kSide * u] * scale;
      if (y == z) {
#pragma unroll
        for (int u = w; u < kPatch; ++u) {
          patch[u][w] = u == w && x == z ? root : below[u];  // rows above k are never stored
        }
      }
#pragma unroll
      for (int v = w; v < kPatch; ++v) {
        if (v > w || y > z) {                              // columns right of k
          const T across = column[y + kSide * v] * scale;  // L(y + 16v, k)
#pragma unroll
          for (int u = v; u < kPatch; ++u) patch[u][v] -= below[u] * across;
        }
      }
    }
  }

  store_patch(patch, a, n, ld, x, y);
}

/// B ← B·L⁻ᵀ for B rows × n, n <= 64: one thread a row. L waits in shared memory (all threads of a
/// warp read the same element of it), 16 columns of the row are in registers at a time; the solved
/// columns before them are read back from B, which only this thread has written.
template <class T>
__global__ void __launch_bounds__(kSolveRows)
    solve_rows(T* b, std::int64_t rows, std::int64_t ldb, const T* l, int n, std::int64_t ldl) {
  __shared__ T lower[kPanel][kPanel];  // lower[k][j] = L(j, k), zero outside the triangle
  __shared__ T inverse[kPanel];        // 1 / L(j, j), zero past n
  const int thread = static_cast<int>(threadIdx.x);
  for (int k = 0; k < kPanel; ++k) {
    for (int j = thread; j < kPanel; j += kSolveRows) {
      lower[k][j] = k <= j && j < n ? l[j + k * ldl] : T{0};
    }
  }
  for (int j = thread; j < kPanel; j += kSolveRows) {
    inverse[j] = j < n ? T{1} / l[j + j * ldl] : T{0};
  }
  __syncthreads();

  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kSolveRows + thread;
  if (i >= rows) return;
  T* row = b + i;  // row[j * ldb] = B(i, j)
  for (int first = 0; first < n; first += kSolveColumns) {
    T value[kSolveColumns];  // B(i, first + c)
#pragma unroll
    for (int c = 0; c < kSolveColumns; ++c) {
      value[c] = first + c < n ? row[(first + c) * ldb] : T{0};
    }
#pragma unroll 4
    for (int k = 0; k < first; ++k) {
      const T solved = row[k * ldb];
#pragma unroll
      for (int c = 0; c < kSolveColumns; ++c) value[c] -= solved * lower[k][first + c];
    }
#pragma unroll
    for (int k = 0; k < kSolveColumns; ++k) {
      value[k] *= inverse[first + k];
#pragma unroll
      for (int c = k + 1; c < kSolveColumns; ++c) {
        value[c] -= value[k] * lower[first + k][first + c];
      }
    }
#pragma unroll
    for (int c = 0; c < kSolveColumns; ++c) {
      if (first + c < n) row[(first + c) * ldb] = value[c];
    }
  }
}

/// log det = Σ 2·log L_jj by one thread block, always in the same order.
template <class T>
__global__ void __launch_bounds__(kReportThreads)
    report_log_determinant(const T* a, std::int64_t n, std::int64_t ld, PivotStatus* status) {
  __shared__ double sums[kReportThreads];
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (std::int64_t j = thread; j < n; j += kReportThreads) {
    sum += 2 * log(static_cast<double>(a[j + j * ld]));
  }
  sums[thread] = sum;
  for (int half = kReportThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) status->log_determinant = status->bad_column < 0 ? sums[0] : 0.0;
}

/// Where n > 64 columns are cut: a multiple of 64, near the middle.
std::int64_t cut(std::int64_t n) { return (n / kPanel + 1) / 2 * kPanel; }

template <class T>
void solve_panel(CudaQueue& queue, MatrixView<const T> l, MatrixView<T> b) {
  if (b.cols <= kPanel) {
    const auto blocks = static_cast<unsigned>((b.rows + kSolveRows - 1) / kSolveRows);
    solve_rows<T><<<blocks, kSolveRows, 0, queue.stream()>>>(b.data, b.rows, b.ld, l.data,
                                                             static_cast<int>(b.cols), l.ld);
    blas::require_launched("potrf: solve_rows");
    return;
  }
  const std::int64_t n1 = cut(b.cols);
  const std::int64_t n2 = b.cols - n1;
  const MatrixView<T> b1 = b.block(0, 0, b.rows, n1);
  const MatrixView<T> b2 = b.block(0, n1, b.rows, n2);
  solve_panel<T>(queue, l.block(0, 0, n1, n1), b1);
  blas::gemm_minus<T>(queue, CUBLAS_OP_N, CUBLAS_OP_T, n1, b1, l.block(n1, 0, n2, n1), b2);
  solve_panel<T>(queue, l.block(n1, n1, n2, n2), b2);
}

template <class T>
void factor(CudaQueue& queue, MatrixView<T> a, std::int64_t first_column, PivotStatus* status) {
  if (a.cols <= kPanel) {
    factor_block<T><<<1, kSide * kSide, 0, queue.stream()>>>(a.data, static_cast<int>(a.cols), a.ld,
                                                             first_column, status);
    blas::require_launched("potrf: factor_block");
    return;
  }
  const std::int64_t n1 = cut(a.cols);
  const std::int64_t n2 = a.cols - n1;
  const MatrixView<T> a11 = a.block(0, 0, n1, n1);
  const MatrixView<T> a21 = a.block(n1, 0, n2, n1);
  const MatrixView<T> a22 = a.block(n1, n1, n2, n2);
  factor(queue, a11, first_column, status);
  solve_panel<T>(queue, a11, a21);
  blas::syrk_minus<T>(queue, a21, a22);
  factor(queue, a22, first_column + n1, status);
}

}  // namespace

template <class T>
void potrf_cuda(Queue& queue, const KernelArguments& arguments) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  const auto a = matrix_of<T>(arguments.out);
  factor(cuda, a, 0, arguments.status);
  report_log_determinant<T>
      <<<1, kReportThreads, 0, cuda.stream()>>>(a.data, a.cols, a.ld, arguments.status);
  blas::require_launched("potrf: report_log_determinant");
}

template void potrf_cuda<double>(Queue&, const KernelArguments&);
template void potrf_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
