// Elimination of stripes by pairs on the GPU.
//
// Method: the panel of some columns, U's triangle upon the rows of X, is put together in scratch
// memory and factored as a panel is (getrf_cuda.cu); the columns behind, and blocks beside, take
// its exchanges, its triangle and its products.

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/stripe_cuda.hpp"
#include "kernels/dense/stripe_pair.hpp"

namespace strata {
namespace {

using lu_cuda::Findings;
using lu_cuda::kFindingsBytes;
using stripe_cuda::kThreads;

/// Rows j of `upper` and pivots[j] of both, upper rows first: a thread a column.
template <class T>
__global__ void __launch_bounds__(kThreads)
    exchange_rows_of_pair(const std::int64_t* pivots, std::int64_t w, T* upper,
                          std::int64_t ld_upper, T* lower, std::int64_t ld_lower, std::int64_t cols,
                          bool back) {
  for (std::int64_t c = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; c < cols;
       c += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    for (std::int64_t s = 0; s < w; ++s) {
      const std::int64_t j = back ? w - 1 - s : s;
      const std::int64_t p = pivots[j];
      if (p == j) continue;
      T& x = upper[j + c * ld_upper];
      T& y = lower[p - w + c * ld_lower];
      const T kept = x;
      x = y;
      y = kept;
    }
  }
}

/// The panel of columns first … first + w − 1: (w + r) × w, packed.
template <class T>
__global__ void __launch_bounds__(kThreads)
    put_panel(const T* u, std::int64_t ld_u, const T* x, std::int64_t ld_x, std::int64_t w,
              std::int64_t r, T* panel) {
  const std::int64_t rows = w + r;
  for (std::int64_t e = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       e < rows * w; e += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const std::int64_t i = e % rows;
    const std::int64_t j = e / rows;
    panel[e] = i >= w ? x[i - w + j * ld_x] : i <= j ? u[i + j * ld_u] : T(0);
  }
}

/// What was factored, to U, X and W, of which all rows are written.
template <class T>
__global__ void __launch_bounds__(kThreads)
    take_panel(const T* panel, std::int64_t w, std::int64_t r, T* u, std::int64_t ld_u, T* x,
               std::int64_t ld_x, T* triangle, std::int64_t ld_w, std::int64_t rows_w) {
  const std::int64_t rows = w + r;
  for (std::int64_t e = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       e < rows * w; e += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const std::int64_t i = e % rows;
    const std::int64_t j = e / rows;
    if (i >= w)
      x[i - w + j * ld_x] = panel[e];
    else if (i <= j)
      u[i + j * ld_u] = panel[e];
    if (i < w) triangle[i + j * ld_w] = i > j ? panel[e] : T(0);
  }
  for (std::int64_t e = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       e < (rows_w - w) * w; e += static_cast<std::int64_t>(gridDim.x) * kThreads)
    triangle[w + e % (rows_w - w) + e / (rows_w - w) * ld_w] = T(0);
}

/// What some columns of a pair do to others.
template <class T>
void apply(CudaStream& stream, MatrixView<const T> w, MatrixView<const T> x,
           const std::int64_t* pivots, bool adjoint, MatrixView<T> upper, MatrixView<T> lower) {
  if (upper.cols == 0) return;
  const auto exchange = [&] {
    exchange_rows_of_pair<T><<<stripe_cuda::blocks_for(upper.cols), kThreads, 0, stream.get()>>>(
        pivots, upper.rows, upper.data, upper.ld, lower.data, lower.ld, upper.cols, adjoint);
    blas::require_launched("exchanges of a pair");
  };
  if (!adjoint) {
    exchange();
    blas::solve_triangle<T>(stream, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, w,
                            upper);
    stripe_cuda::subtract<T>(stream, x, upper, lower);
    return;
  }
  constexpr cublasOperation_t kAdjoint = is_complex_v<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
  if (lower.rows > 0)
    blas::gemm_minus<T>(stream, kAdjoint, CUBLAS_OP_N, lower.rows, x, lower, upper);
  blas::solve_triangle<T>(stream, CUBLAS_FILL_MODE_LOWER, kAdjoint, CUBLAS_DIAG_UNIT, w, upper);
  exchange();
}

template <class T>
void apply_all(CudaStream& stream, MatrixView<const T> w, MatrixView<const T> x,
               const std::int64_t* pivots, bool adjoint, MatrixView<T> y, MatrixView<T> z) {
  const std::int64_t panels = (x.cols + w.rows - 1) / w.rows;
  for (std::int64_t p = 0; p < panels; ++p) {
    const std::int64_t first = (adjoint ? panels - 1 - p : p) * w.rows;
    const std::int64_t width = std::min(w.rows, x.cols - first);
    apply<T>(stream, w.block(0, first, width, width), x.block(0, first, x.rows, width),
             pivots + first, adjoint, y.block(first, 0, width, y.cols), z);
  }
}

template <class T>
void factor_pair(CudaQueue& queue, MatrixView<T> d, MatrixView<T> x, MatrixView<T> w,
                 std::int64_t* pivots, std::byte* scratch) {
  auto* memory = reinterpret_cast<T*>(scratch);
  const std::int64_t all = (w.rows + x.rows) * w.rows * static_cast<std::int64_t>(sizeof(T));
  CudaStream& stream = queue.main();
  for (std::int64_t first = 0; first < x.cols; first += w.rows) {
    const std::int64_t width = std::min(w.rows, x.cols - first);
    const std::int64_t rows = width + x.rows;
    const std::int64_t right = x.cols - first - width;
    const MatrixView<T> panel{memory, rows, width, rows};
    const MatrixView<T> u = d.block(first, first, width, width);
    const MatrixView<T> of_x = x.block(0, first, x.rows, width);
    const MatrixView<T> of_w = w.block(0, first, w.rows, width);
    const unsigned blocks = stripe_cuda::blocks_for(rows * width);
    put_panel<T><<<blocks, kThreads, 0, stream.get()>>>(u.data, u.ld, of_x.data, of_x.ld, width,
                                                        x.rows, memory);
    blas::require_launched("panel of a pair");
    lu_cuda::eliminate(queue, panel, pivots + first, false, scratch + (all + 15) / 16 * 16);
    take_panel<T><<<blocks, kThreads, 0, stream.get()>>>(
        memory, width, x.rows, u.data, u.ld, of_x.data, of_x.ld, of_w.data, of_w.ld, w.rows);
    blas::require_launched("panel of a pair");
    apply<T>(stream, w.block(0, first, width, width), of_x, pivots + first, false,
             d.block(first, first + width, width, right), x.block(0, first + width, x.rows, right));
  }
}

/// What a status has of `x`, beside what it had before.
template <class T>
void note_in_status(CudaQueue& queue, MatrixView<const T> x, PanelStatus* status) {
  auto* findings = static_cast<Findings*>(queue.scratch(kFindingsBytes));
  lu_cuda::start_findings(queue.main(), findings);
  stripe_cuda::note_earlier<<<1, 1, 0, queue.stream()>>>(status, findings);
  stripe_cuda::note<T>(queue.main(), x, findings);
  stripe_cuda::put_block_status(queue.main(), findings, status);
}

}  // namespace

template <class T>
void stripe_pair_factor_cuda(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(stripe_pair_factor, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* b = calls[i];
    const auto d = matrix_of<T>(b[0]);
    const auto x = matrix_of<T>(b[2]);
    const auto w = matrix_of<T>(b[3]);
    if (x.cols == 0) continue;
    const std::int64_t rows = w.rows + x.rows;
    const std::int64_t panel =
        (rows * w.rows * static_cast<std::int64_t>(sizeof(T)) + 15) / 16 * 16;
    const std::int64_t bytes =
        lu_cuda::elimination_bytes(cuda, MatrixView<T>{nullptr, rows, w.rows, rows});
    auto* scratch = static_cast<std::byte*>(cuda.scratch(kFindingsBytes + panel + bytes));
    factor_pair(cuda, d, x, w, static_cast<std::int64_t*>(b[4].data), scratch + kFindingsBytes);
    auto* findings = reinterpret_cast<Findings*>(scratch);
    auto* of_u = static_cast<PanelStatus*>(b[1].data);
    lu_cuda::start_findings(cuda.main(), findings);
    stripe_cuda::note_earlier<<<1, 1, 0, cuda.stream()>>>(of_u, findings);
    lu_cuda::look<T>(cuda.main(), d, 0, true, findings);
    lu_cuda::put_status(cuda.main(), findings, of_u);
    lu_cuda::start_findings(cuda.main(), findings);
    lu_cuda::look<T>(cuda.main(), w, 0, false, findings);
    stripe_cuda::note<T>(cuda.main(), x, findings);
    stripe_cuda::put_block_status(cuda.main(), findings, static_cast<PanelStatus*>(b[5].data));
  }
}

template <class T>
void stripe_pair_row_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(stripe_pair_row, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* b = calls[i];
    const auto y = matrix_of<T>(b[0]);
    apply_all<T>(cuda.main(), matrix_of<const T>(b[3]), matrix_of<const T>(b[4]),
                 static_cast<const std::int64_t*>(b[5].data), false, y, matrix_of<T>(b[1]));
    note_in_status<T>(cuda, y, static_cast<PanelStatus*>(b[2].data));
  }
}

template <class T>
void stripe_pair_update_cuda(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(stripe_pair_update, parameters.variant, kAdjointFactor);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* b = calls[i];
    apply_all<T>(cuda.main(), matrix_of<const T>(b[2]), matrix_of<const T>(b[3]),
                 static_cast<const std::int64_t*>(b[4].data), parameters.variant == kAdjointFactor,
                 matrix_of<T>(b[0]), matrix_of<T>(b[1]));
  }
}

#define STRATA_STRIPE_PAIR(T)                                                                    \
  template void stripe_pair_factor_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&); \
  template void stripe_pair_row_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);    \
  template void stripe_pair_update_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_STRIPE_PAIR(double)
STRATA_STRIPE_PAIR(float)
STRATA_STRIPE_PAIR(std::complex<double>)
STRATA_STRIPE_PAIR(std::complex<float>)
#undef STRATA_STRIPE_PAIR

}  // namespace strata
