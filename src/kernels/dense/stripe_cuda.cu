// Elimination by stripes on the GPU.
//
// Method: a substripe's own block is factored as a panel is (getrf_cuda.cu), then its exchanges and
// its triangle go through the rest of its rows, and rows below take quotients and products by
// cuBLAS. Without exchanges blocks are halved until one thread block eliminates them.

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_moves_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "kernels/dense/stripe.hpp"
#include "kernels/dense/stripe_cuda.hpp"

namespace strata {
namespace {

using lu_cuda::Findings;
using lu_cuda::kFindingsBytes;
using lu_cuda::RowMoves;

/// Order of a block that one thread block eliminates, a thread an element.
constexpr int kLeaf = 32;

template <class T>
__global__ void __launch_bounds__(kLeaf* kLeaf) eliminate_leaf(T* a, std::int64_t ld, int n) {
  __shared__ __align__(16) unsigned char memory[kLeaf * (kLeaf + 1) * sizeof(T)];
  auto* s = reinterpret_cast<T*>(memory);
  const int i = static_cast<int>(threadIdx.x);
  const int k = static_cast<int>(threadIdx.y);
  const auto place = [](int row, int column) { return row + column * (kLeaf + 1); };
  const bool mine = i < n && k < n;
  if (mine) s[place(i, k)] = a[i + k * ld];
  for (int j = 0; j < n; ++j) {
    __syncthreads();
    const T pivot = s[place(j, j)];
    if (lu_cuda::size_of(pivot) == 0) continue;  // for all threads alike
    if (mine && i > j && k == j) s[place(i, j)] = lu_cuda::Quotient<T>(pivot)(s[place(i, j)]);
    __syncthreads();
    if (mine && i > j && k > j)
      lu_cuda::subtract_product(s[place(i, k)], s[place(i, j)], s[place(j, k)]);
  }
  __syncthreads();
  if (mine) a[i + k * ld] = s[place(i, k)];
}

/// pivots[j] ← j, or pivots[j] + first.
__global__ void number_pivots(std::int64_t* pivots, std::int64_t count, std::int64_t first,
                              bool searched) {
  for (std::int64_t j = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; j < count;
       j += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    pivots[j] = searched ? pivots[j] + first : j;
}

void number(const CudaStream& stream, std::int64_t* pivots, std::int64_t count, std::int64_t first,
            bool searched) {
  number_pivots<<<stripe_cuda::blocks_for(count), stripe_cuda::kThreads, 0, stream.get()>>>(
      pivots, count, first, searched);
  blas::require_launched("pivots of a stripe");
}

/// Rows exchanged as pivots[0 … count − 1] say, counted from the first row of x.
template <class T>
void exchange(const CudaStream& stream, const std::int64_t* pivots, std::int64_t count,
              MatrixView<T> x, RowMoves* moves) {
  if (x.cols == 0) return;
  for (std::int64_t from = 0; from < count; from += lu_cuda::kMovesMost) {
    const std::int64_t width = std::min(lu_cuda::kMovesMost, count - from);
    lu_cuda::make_moves(stream, pivots, from, width, moves);
    lu_cuda::move_rows(stream, moves, from, width, x, lu_cuda::MoveDirection::forward);
  }
}

template <class T>
void solve_lower(CudaStream& stream, MatrixView<const T> l, MatrixView<T> x) {
  if (x.rows == 0 || x.cols == 0) return;
  blas::solve_triangle<T>(stream, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, l, x);
}

template <class T>
void eliminate_without_search(CudaStream& stream, MatrixView<T> a) {
  if (a.rows <= kLeaf) {
    eliminate_leaf<T>
        <<<1, dim3(kLeaf, kLeaf), 0, stream.get()>>>(a.data, a.ld, static_cast<int>(a.rows));
    blas::require_launched("elimination of a block");
    return;
  }
  const std::int64_t h = (a.rows / 2 + kLeaf - 1) / kLeaf * kLeaf;
  const std::int64_t rest = a.rows - h;
  const MatrixView<T> own = a.block(0, 0, h, h);
  eliminate_without_search(stream, own);
  solve_lower<T>(stream, own, a.block(0, h, h, rest));
  stripe_cuda::solve_upper_on_right<T>(stream, own, a.block(h, 0, rest, h));
  stripe_cuda::subtract<T>(stream, a.block(h, 0, rest, h), a.block(0, h, h, rest),
                           a.block(h, h, rest, rest));
  eliminate_without_search(stream, a.block(h, h, rest, rest));
}

/// Rows first … first + s − 1, and what they do to those below.
template <class T>
void factor_substripe(CudaQueue& queue, MatrixView<T> d, std::int64_t first, std::int64_t s,
                      std::int64_t* pivots, RowMoves* moves, std::byte* scratch) {
  const std::int64_t right = d.cols - first - s;
  const std::int64_t below = d.rows - first - s;
  const MatrixView<T> own = d.block(first, first, s, s);
  const MatrixView<T> beside = d.block(first, first + s, s, right);
  const MatrixView<T> under = d.block(first + s, first, below, s);
  lu_cuda::eliminate(queue, own, pivots, false, scratch);
  exchange(queue.main(), pivots, s, d.block(first, 0, s, first), moves);
  exchange(queue.main(), pivots, s, beside, moves);
  if (right > 0) {
    solve_lower<T>(queue.main(), own, beside);
    stripe_cuda::solve_upper_on_right<T>(queue.main(), own, under);
    stripe_cuda::subtract<T>(queue.main(), under, beside,
                             d.block(first + s, first + s, below, right));
  }
  number(queue.main(), pivots, s, first, true);
}

}  // namespace

template <class T>
void stripe_factor_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    const auto d = matrix_of<T>(x[0]);
    auto* pivots = static_cast<std::int64_t*>(x[1].data);
    if (d.cols == 0) continue;
    const std::int64_t s = std::min<std::int64_t>(parameters.variant, d.cols);
    constexpr std::int64_t kMovesBytes = sizeof(RowMoves);
    const std::int64_t bytes =
        s > 0 ? lu_cuda::elimination_bytes(cuda, d.block(0, 0, s, s)) : std::int64_t{0};
    auto* scratch = static_cast<std::byte*>(cuda.scratch(kFindingsBytes + kMovesBytes + bytes));
    auto* findings = reinterpret_cast<Findings*>(scratch);
    auto* moves = reinterpret_cast<RowMoves*>(scratch + kFindingsBytes);
    lu_cuda::start_findings(cuda.main(), findings);
    lu_cuda::look<T>(cuda.main(), d, 0, false, findings);
    if (s == 0) {
      eliminate_without_search(cuda.main(), d);
      number(cuda.main(), pivots, d.cols, 0, false);
    }
    for (std::int64_t first = 0; s > 0 && first < d.cols; first += s)
      factor_substripe(cuda, d, first, std::min(s, d.cols - first), pivots + first, moves,
                       scratch + kFindingsBytes + kMovesBytes);
    lu_cuda::look<T>(cuda.main(), d, 0, true, findings);
    lu_cuda::put_status(cuda.main(), findings, static_cast<PanelStatus*>(x[2].data));
  }
}

template <class T>
void stripe_row_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(stripe_row, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* b = calls[i];
    const auto x = matrix_of<T>(b[0]);
    const auto d = matrix_of<const T>(b[2]);
    auto* scratch = static_cast<std::byte*>(
        cuda.scratch(kFindingsBytes + static_cast<std::int64_t>(sizeof(RowMoves))));
    auto* findings = reinterpret_cast<Findings*>(scratch);
    lu_cuda::start_findings(cuda.main(), findings);
    stripe_cuda::note<T>(cuda.main(), x, findings);
    exchange(cuda.main(), static_cast<const std::int64_t*>(b[3].data), d.cols, x,
             reinterpret_cast<RowMoves*>(scratch + kFindingsBytes));
    solve_lower<T>(cuda.main(), d, x);
    stripe_cuda::note<T>(cuda.main(), x, findings);
    stripe_cuda::put_block_status(cuda.main(), findings, static_cast<PanelStatus*>(b[1].data));
  }
}

template <class T>
void stripe_column_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(stripe_column, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* b = calls[i];
    const auto x = matrix_of<T>(b[0]);
    auto* findings = static_cast<Findings*>(cuda.scratch(kFindingsBytes));
    lu_cuda::start_findings(cuda.main(), findings);
    stripe_cuda::solve_upper_on_right<T>(cuda.main(), matrix_of<const T>(b[2]), x);
    stripe_cuda::note<T>(cuda.main(), x, findings);
    stripe_cuda::put_block_status(cuda.main(), findings, static_cast<PanelStatus*>(b[1].data));
  }
}

#define STRATA_STRIPE(T)                                                                    \
  template void stripe_factor_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&); \
  template void stripe_row_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);    \
  template void stripe_column_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_STRIPE(double)
STRATA_STRIPE(float)
STRATA_STRIPE(std::complex<double>)
STRATA_STRIPE(std::complex<float>)
#undef STRATA_STRIPE

}  // namespace strata
