// Fronts on the GPU, but for branches (front_branch_cuda.cu).

#include <algorithm>
#include <array>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/even_calls.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "kernels/fronts/front_cuda.hpp"
#include "kernels/fronts/front_program.hpp"
#include "kernels/fronts/front_sweep.hpp"

namespace strata {
namespace {

constexpr int kPlainThreads = 256;

/// Calls on small fronts, as the parameter of one launch; of more than 32 KiB there is none.
template <int kMost>
struct CallPack {
  BlockView view[kMost][3];
};
static_assert(sizeof(CallPack<192>) < 32764);

/// Calls launch(pack, count) for the calls from `first` on, `count` in all. A launch takes the
/// longer the larger its parameter is, so that few calls come in a small one.
template <class Launch>
void launch_in_packs(const KernelCalls& calls, std::int64_t first, std::int64_t count,
                     const Launch& launch) {
  const auto put = [&]<int kMost>(std::int64_t begin) {
    CallPack<kMost> pack;
    const std::int64_t some = std::min<std::int64_t>(kMost, count - begin);
    for (std::int64_t c = 0; c < some; ++c)
      std::copy_n(calls[first + begin + c], calls.operands, pack.view[c]);
    launch(pack, static_cast<unsigned>(some));
    blas::require_launched("small fronts");
    return begin + some;
  };
  for (std::int64_t begin = 0; begin < count;) {
    const std::int64_t left = count - begin;
    begin = left <= 2    ? put.template operator()<2>(begin)
            : left <= 20 ? put.template operator()<20>(begin)
                         : put.template operator()<192>(begin);
  }
}

bool is_small(const BlockView& x) { return x.rows * x.cols <= kSmallFront * kSmallFront; }

/// How many calls from `first` on are such that one launch may take them together.
template <class Together>
std::int64_t count_together(const KernelCalls& calls, std::int64_t first,
                            const Together& together) {
  std::int64_t count = 0;
  while (first + count < calls.count() && together(calls[first + count])) ++count;
  return count;
}

/// A block for each call: X ← 0, but values at places, if there are any.
template <class T, class Pack>
__global__ void __launch_bounds__(kPlainThreads)
    scatter_small_kernel(const __grid_constant__ Pack pack, bool has_values) {
  const BlockView* v = pack.view[blockIdx.x];
  auto* x = static_cast<T*>(v[0].data);
  const int own = static_cast<int>(threadIdx.x);
  const int elements = static_cast<int>(v[0].rows * v[0].cols);
  for (int k = own; k < elements; k += kPlainThreads) x[k] = 0;
  if (!has_values) return;
  __syncthreads();
  const auto* values = static_cast<const T*>(v[1].data);
  const auto* places = static_cast<const std::int32_t*>(v[2].data);
  for (int k = own; k < v[1].rows; k += kPlainThreads) x[places[k]] = values[k];
}

/// A block for each front of order up to kSmallFront, eliminated column by column in shared memory.
/// Columns stay as they were before they are scaled: one barrier each.
template <class T, class Pack>
__global__ void __launch_bounds__(kPlainThreads)
    factor_small_kernel(const __grid_constant__ Pack pack) {
  __shared__ T x[kSmallFront * (kSmallFront + 1)];
  constexpr int kWarps = kPlainThreads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const BlockView* v = pack.view[blockIdx.x];
  const int width = static_cast<int>(v[0].cols);
  const int order = width + static_cast<int>(v[1].rows);
  const int ld = order | 1;
  auto* panel = static_cast<T*>(v[0].data);   // (w + r) × w
  auto* update = static_cast<T*>(v[1].data);  // r × r
  for (int j = warp; j < order; j += kWarps) {
    const T* from = j < width ? panel + j * v[0].ld : update + (j - width) * v[1].ld - width;
    for (int i = j + lane; i < order; i += 32) x[i + j * ld] = from[i];
  }
  PivotStatus status;
  __syncthreads();
  for (int c = 0; c < width; ++c) {
    const T* column = x + c * ld;
    const T pivot = column[c];
    const bool good = pivot > 0 && !isinf(pivot);
    if (!good && status.bad_column < 0) {
      status.bad_column = c;
      status.bad_pivot = static_cast<double>(pivot);
    }
    const T inverse = good ? T{1} / pivot : T{0};
    for (int j = c + 1 + warp; j < order; j += kWarps) {
      const T factor = column[j] * inverse;
      for (int i = j + lane; i < order; i += 32) x[i + j * ld] -= column[i] * factor;
    }
    __syncthreads();
  }
  for (int j = warp; j < order; j += kWarps) {
    T* to = j < width ? panel + j * v[0].ld : update + (j - width) * v[1].ld - width;
    const T pivot = x[j + j * ld];
    const T root = pivot > 0 ? sqrt(pivot) : T{0};
    const T inverse = j < width ? (root > 0 ? T{1} / root : T{0}) : T{1};
    for (int i = j + lane; i < order; i += 32)
      to[i] = i == j && j < width ? root : x[i + j * ld] * inverse;
  }
  if (threadIdx.x > 0) return;
  for (int c = 0; c < width; ++c)
    status.log_determinant += 2 * log(static_cast<double>(sqrt(x[c + c * ld])));
  *static_cast<PivotStatus*>(v[2].data) = status;
}

template <class T>
__global__ void __launch_bounds__(kPlainThreads)
    scatter_kernel(T* x, const T* values, const std::int32_t* places, std::int64_t count) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * kPlainThreads + threadIdx.x;
  if (k < count) x[places[k]] = values[k];
}

template <class T>
void clear(cudaStream_t stream, const BlockView& x) {
  require_cuda(
      cudaMemsetAsync(x.data, 0, static_cast<std::size_t>(x.rows * x.cols) * sizeof(T), stream),
      "cudaMemsetAsync");
}

/// First of `count` ascending numbers that is at least `bound`.
__device__ inline int lower_bound(const std::int32_t* list, int count, std::int64_t bound) {
  int from = 0;
  while (count > 0) {
    const int half = count / 2;
    if (list[from + half] < bound) {
      from += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return from;
}

/// One update, or one tile of one: a block takes every `step`-th of its columns.
template <class T>
__device__ void add_update_to(const BlockView& x, const BlockView& u, const std::int32_t* list,
                              bool is_tile, int first_column, int step) {
  const int count = list[0];
  const int begin = list[1];
  const std::int32_t* places = list + 2 + count;
  const T* data = static_cast<const T*>(u.data);
  auto* target = static_cast<T*>(x.data);
  for (int n = 0; n < count; ++n) {
    const int order = list[2 + n];
    const int row = is_tile ? static_cast<int>(u.row) - begin : 0;
    const int col = is_tile ? static_cast<int>(u.col) - begin : 0;
    const int rows = is_tile ? static_cast<int>(u.rows) : order;
    const int cols = is_tile ? static_cast<int>(u.cols) : order;
    const std::int64_t ld = is_tile ? u.ld : order;
    const int first = lower_bound(places + row, rows, x.row);
    const int last = lower_bound(places + row, rows, x.row + x.rows);
    for (int j = first_column; j < cols; j += step) {
      const std::int64_t column = places[col + j] - x.col;
      if (column < 0 || column >= x.cols) continue;
      const int from = max(first, col + j - row);
      T* to = target + column * x.ld - x.row;
      for (int i = from + static_cast<int>(threadIdx.x); i < last; i += kPlainThreads)
        to[places[row + i]] += data[i + j * ld];
    }
    data += static_cast<std::int64_t>(order) * order;
    places += order;
    // Another update of the list may meet the same elements; it has the same columns only if the
    // launch has one block.
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kPlainThreads)
    add_update_kernel(BlockView x, BlockView u, const std::int32_t* list, bool is_tile) {
  add_update_to<T>(x, u, list, is_tile, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

/// One thread block for each call.
template <class T, class Pack>
__global__ void __launch_bounds__(kPlainThreads)
    add_small_kernel(const __grid_constant__ Pack pack, bool is_tile) {
  const BlockView* v = pack.view[blockIdx.x];
  add_update_to<T>(v[0], v[1], static_cast<const std::int32_t*>(v[2].data), is_tile, 0, 1);
}

/// X ← rows of B, or back; B has `columns` columns.
template <class T, bool kBack>
__global__ void __launch_bounds__(kPlainThreads)
    order_rows_kernel(BlockView x, T* b, std::int64_t columns, std::int64_t ld,
                      const std::int32_t* order, std::int64_t to_x, std::int64_t to_b) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kPlainThreads + threadIdx.x;
  if (n >= x.rows * x.cols) return;
  const std::int64_t i = n / x.rows;
  const std::int64_t r = n % x.rows;
  const std::int64_t call = blockIdx.y;
  T& here = static_cast<T*>(x.data)[n + call * to_x];
  if (r >= columns) {
    if (!kBack) here = 0;
    return;
  }
  T& there = b[(order != nullptr ? order[i] : i) + r * ld + call * to_b];
  kBack ? there = here : here = there;
}

/// Calls whose operands lie evenly by one launch.
template <class T, bool kBack>
void order_rows(Queue& queue, const KernelCalls& calls) {
  constexpr std::int64_t kRows = 32768;  // of a grid
  constexpr std::int64_t kSize = sizeof(T);
  constexpr int kX = kBack ? 1 : 0;
  for (std::int64_t c = 0; c < calls.count();) {
    const BlockView* x = calls[c];
    EvenCalls even = even_calls(calls, c, kRows);
    if (even.stride[2] != 0) even = {.first = c, .count = 1};  // other orders
    c += even.count;
    const std::int64_t elements = x[kX].rows * x[kX].cols;
    if (elements == 0) continue;
    const ColumnsOfRows columns(x[1 - kX], x[kX].cols);
    const auto* order = x[2].rows > 0 ? static_cast<const std::int32_t*>(x[2].data) : nullptr;
    const dim3 grid(static_cast<unsigned>((elements + kPlainThreads - 1) / kPlainThreads),
                    static_cast<unsigned>(even.count));
    order_rows_kernel<T, kBack>
        <<<grid, kPlainThreads, 0, static_cast<CudaQueue&>(queue).stream()>>>(
            x[kX], static_cast<T*>(x[1 - kX].data), columns.count, columns.ld, order,
            even.stride[kX] / kSize, even.stride[1 - kX] / kSize);
    blas::require_launched("order_rows");
  }
}

}  // namespace

template <class T>
void scatter_entries_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(scatter_entries, p.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count();) {
    const std::int64_t small =
        count_together(calls, c, [](const BlockView* x) { return is_small(x[0]); });
    launch_in_packs(calls, c, small, [&](const auto& pack, unsigned count) {
      scatter_small_kernel<T><<<count, kPlainThreads, 0, stream>>>(pack, true);
    });
    c += small;
    if (c == calls.count()) return;
    const BlockView* x = calls[c++];
    clear<T>(stream, x[0]);
    if (x[1].rows == 0) continue;
    const auto blocks = static_cast<unsigned>((x[1].rows + kPlainThreads - 1) / kPlainThreads);
    scatter_kernel<T><<<blocks, kPlainThreads, 0, stream>>>(
        static_cast<T*>(x[0].data), static_cast<const T*>(x[1].data),
        static_cast<const std::int32_t*>(x[2].data), x[1].rows);
    blas::require_launched("scatter_entries");
  }
}

template <class T>
void clear_block_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(clear_block, p.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count();) {
    const std::int64_t small =
        count_together(calls, c, [](const BlockView* x) { return is_small(x[0]); });
    launch_in_packs(calls, c, small, [&](const auto& pack, unsigned count) {
      scatter_small_kernel<T><<<count, kPlainThreads, 0, stream>>>(pack, false);
    });
    c += small;
    if (c < calls.count()) clear<T>(stream, calls[c++][0]);
  }
}

template <class T>
void add_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(add_update, p.variant, kTileOfUpdate);
  const bool is_tile = (p.variant & kTileOfUpdate) != 0;
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  constexpr unsigned kBlocksMax = 1024;
  for (std::int64_t c = 0; c < calls.count();) {
    // What is small is a block's; only with others beside it does that make up for what a few
    // columns would gain from blocks of their own.
    const std::int64_t small = count_together(
        calls, c, [](const BlockView* x) { return is_small(x[0]) && is_small(x[1]); });
    const std::int64_t together = small > 1 ? small : 0;
    launch_in_packs(calls, c, together, [&](const auto& pack, unsigned count) {
      add_small_kernel<T><<<count, kPlainThreads, 0, stream>>>(pack, is_tile);
    });
    c += together;
    if (c == calls.count()) return;
    const BlockView* x = calls[c++];
    // A list of several updates: columns of different ones may meet, so they take turns.
    const bool one = is_tile || x[1].cols > 1;
    const auto blocks =
        one ? static_cast<unsigned>(std::clamp<std::int64_t>(x[1].cols, 1, kBlocksMax)) : 1U;
    add_update_kernel<T><<<blocks, kPlainThreads, 0, stream>>>(
        x[0], x[1], static_cast<const std::int32_t*>(x[2].data), is_tile);
    blas::require_launched("add_update");
  }
}

template <class T>
void factor_front_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(factor_front, p.variant, 0);
  for (std::int64_t c = 0; c < calls.count();) {
    const std::int64_t small =
        count_together(calls, c, [](const BlockView* x) { return x[0].rows <= kSmallFront; });
    launch_in_packs(calls, c, small, [&](const auto& pack, unsigned count) {
      factor_small_kernel<T>
          <<<count, kPlainThreads, 0, static_cast<CudaQueue&>(queue).stream()>>>(pack);
    });
    c += small;
    if (c == calls.count()) return;
    const BlockView* x = calls[c++];
    const std::int64_t w = x[0].cols;
    BlockView corner = x[0];
    corner.rows = w;
    BlockView below = x[0];
    below.rows = x[1].rows;
    below.data = static_cast<T*>(x[0].data) + w;
    const std::array<BlockView, 2> factored{corner, x[2]};
    potrf_cuda<T>(queue, {factored, 2}, {});
    if (below.rows == 0) continue;
    const std::array<BlockView, 2> solved{below, corner};
    trsm_cuda<T>(queue, {solved, 2}, {.variant = kRightSide | kTransposeL});
    const std::array<BlockView, 2> updated{x[1], below};
    syrk_cuda<T>(queue, {updated, 2}, {});
  }
}

template <class T>
void take_rows_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(take_rows, p.variant, 0);
  order_rows<T, false>(queue, calls);
}
template <class T>
void put_rows_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(put_rows, p.variant, 0);
  order_rows<T, true>(queue, calls);
}

template void take_rows_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void take_rows_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void put_rows_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void put_rows_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void scatter_entries_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void scatter_entries_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void clear_block_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void clear_block_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void add_update_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void add_update_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void factor_front_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void factor_front_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
