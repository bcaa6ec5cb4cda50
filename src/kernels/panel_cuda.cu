// Steps of Krylov methods on a GPU, with the bits of the CPU.
//
// Method: a row of spmv has four neighbouring threads, one for each of its lanes, so entries of a
// row are read side by side, and rows that follow each other by the same warp; the lanes are added
// by shuffles. An update has a thread for each row, which holds up to eight columns of Y in
// registers while it reads X once; S lies in shared memory. Everything is bound by memory. Sums
// over rows, and substitution, are those of gram_cuda.cu.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/gram_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/panel_cuda.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(std::int64_t count, std::int64_t of_block) {
  return static_cast<unsigned>((count + of_block - 1) / of_block);
}

struct Product {
  std::int64_t rows;
  const std::int32_t* start;
  const std::int32_t* column;
  const double* value;
  const double* x;
  const double* from;
  const double* halo;
  const double* before;
  double* to;
  const double* k;  ///< α, β, γ
};

__global__ void __launch_bounds__(kThreads) multiply_rows(Product p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  const int lane = static_cast<int>(thread % kSpmvLanes);
  const std::int64_t row = thread / kSpmvLanes;
  double sum = 0;
  if (row < p.rows) {
    const std::int32_t end = p.start[row + 1];
    for (std::int32_t e = p.start[row]; e < end; e += kSpmvLanes) {
      double a = 0;
      double with = 0;
      if (e + lane < end) {
        const std::int32_t j = p.column[e + lane];
        a = p.value[e + lane];
        with = j < p.rows ? p.x[j] : p.halo[j - p.rows];
      }
      sum = fused(a, with, sum);
    }
  }
  // (0 + 1) + (2 + 3), in lane 0; a sum of two has the same bits in either order.
  sum = rounded_sum(sum, __shfl_xor_sync(0xffffffffU, sum, 1));
  sum = rounded_sum(sum, __shfl_xor_sync(0xffffffffU, sum, 2));
  if (row >= p.rows || lane != 0) return;
  double t = fused(-p.k[0], p.from[row], sum);
  if (p.k[1] != 0) t = fused(-p.k[1], p.before[row], t);
  p.to[row] = rounded_product(p.k[2], t);
}

__global__ void __launch_bounds__(kThreads)
    gather(double* to, const double* from, const std::int32_t* index, std::int64_t count) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i < count) to[i] = from[index == nullptr ? i : index[i]];
}

// ---- few sums in fp64, all chunks at once

constexpr std::int64_t kPartsBytesMax = std::int64_t{64} << 20;
constexpr int kPairsOfBlock = kThreads / kGramLanes;

/// parts[(tile · pairs + pair) · 4 + lane], pair = i + j·p: what a tile of 128 rows adds.
__global__ void __launch_bounds__(kThreads)
    tile_sums(const double* x, const double* y, std::int64_t ld, std::int64_t rows, std::int64_t p,
              std::int64_t pairs, double* parts) {
  const std::int64_t pair = blockIdx.y * std::int64_t{kPairsOfBlock} + threadIdx.x / kGramLanes;
  if (pair >= pairs) return;
  const int lane = static_cast<int>(threadIdx.x) % kGramLanes;
  const std::int64_t first = blockIdx.x * std::int64_t{kGramTileRows} + lane;
  const double* xi = x + pair % p * ld;
  const double* yj = y + pair / p * ld;
  double sum = 0;
#pragma unroll 8
  for (int k = 0; k < kGramLaneRows; ++k) {
    const std::int64_t r = first + k * kGramLanes;
    sum = fused(r < rows ? xi[r] : 0.0, r < rows ? yj[r] : 0.0, sum);
  }
  parts[(blockIdx.x * pairs + pair) * kGramLanes + lane] = sum;
}

/// The tiles of each chunk in their order, then its lanes as (0 + 1) + (2 + 3).
__global__ void __launch_bounds__(kThreads)
    fold_chunks(const double* parts, std::int64_t tiles, std::int64_t tiles_of_chunk,
                std::int64_t p, std::int64_t pairs, double* b, std::int64_t ld) {
  const std::int64_t pair = blockIdx.y * std::int64_t{kPairsOfBlock} + threadIdx.x / kGramLanes;
  const int lane = static_cast<int>(threadIdx.x) % kGramLanes;
  const std::int64_t begin = blockIdx.x * tiles_of_chunk;
  const std::int64_t end = begin + tiles_of_chunk < tiles ? begin + tiles_of_chunk : tiles;
  double sum = 0;
  for (std::int64_t tile = begin; pair < pairs && tile < end; ++tile)
    sum = rounded_sum(sum, parts[(tile * pairs + pair) * kGramLanes + lane]);
  sum = rounded_sum(sum, __shfl_xor_sync(0xffffffffU, sum, 1));
  sum = rounded_sum(sum, __shfl_xor_sync(0xffffffffU, sum, 2));
  // Columns of B: those of the chunk, then those of the pair in it.
  if (pair < pairs && lane == 0) b[pair % p + (blockIdx.x * (pairs / p) + pair / p) * ld] = sum;
}

/// False where there are too many parts.
bool sum_at_once(CudaQueue& queue, const BlockView& b, const BlockView& v,
                 const PanelColumns& columns) {
  const std::int64_t tiles = (v.rows + kGramTileRows - 1) / kGramTileRows;
  const std::int64_t tiles_of_chunk = (std::int64_t{1} << columns.third) / kGramTileRows;
  if (b.element != Element::fp64 || tiles == 0 || tiles_of_chunk == 0 || b.rows == 0) return false;
  const std::int64_t chunks = (tiles + tiles_of_chunk - 1) / tiles_of_chunk;
  const std::int64_t pairs = b.rows * (b.cols / chunks);
  const std::int64_t bytes = tiles * pairs * kGramLanes * std::int64_t{sizeof(double)};
  if (pairs == 0 || bytes > kPartsBytesMax) return false;
  auto* parts = static_cast<double*>(queue.scratch(bytes));
  const unsigned groups = blocks_for(pairs, kPairsOfBlock);
  const auto* data = static_cast<const double*>(v.data);
  const dim3 of_tiles(static_cast<unsigned>(tiles), groups);
  tile_sums<<<of_tiles, kThreads, 0, queue.stream()>>>(data + columns.first * v.ld,
                                                       data + columns.second * v.ld, v.ld, v.rows,
                                                       b.rows, pairs, parts);
  const dim3 of_chunks(static_cast<unsigned>(chunks), groups);
  fold_chunks<<<of_chunks, kThreads, 0, queue.stream()>>>(
      parts, tiles, tiles_of_chunk, b.rows, pairs, static_cast<double*>(b.data), b.ld);
  require_cuda(cudaGetLastError(), "panel_inner");
  return true;
}

__device__ double sum_of(double a, double b) { return rounded_sum(a, b); }
__device__ DoubleDouble sum_of(const DoubleDouble& a, const DoubleDouble& b) { return a + b; }

/// A thread for each element of S.
template <class W>
__global__ void __launch_bounds__(kThreads)
    sum_chunks(W* s, std::int64_t s_ld, const W* b, std::int64_t b_ld, std::int64_t rows,
               std::int64_t cols, std::int64_t chunks, bool fresh) {
  const std::int64_t element = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (element >= rows * cols) return;
  const std::int64_t i = element % rows;
  const std::int64_t j = element / rows;
  std::int64_t k = 0;
  W sum = fresh ? b[i + j * b_ld] : s[i + j * s_ld];
  if (fresh) k = 1;
  for (; k < chunks; ++k) sum = sum_of(sum, b[i + (k * cols + j) * b_ld]);
  s[i + j * s_ld] = sum;
}

constexpr int kColumns = 8;   // of Y in registers
constexpr int kFactors = 64;  // rows of S in shared memory at a time

/// Columns of Y beyond `cols` are neither read nor written.
__global__ void __launch_bounds__(kThreads)
    update_rows(const double* x, double* y, std::int64_t ld, std::int64_t rows, const double* s,
                std::int64_t s_ld, std::int64_t p, std::int64_t cols) {
  __shared__ double factor[kFactors][kColumns];
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  double sum[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sum[c] = row < rows && c < cols ? y[row + c * ld] : 0.0;
  for (std::int64_t first = 0; first < p; first += kFactors) {
    __syncthreads();
    for (int f = static_cast<int>(threadIdx.x); f < kFactors * kColumns; f += kThreads) {
      const std::int64_t i = first + f / kColumns;
      const std::int64_t c = f % kColumns;
      factor[f / kColumns][c] = i < p && c < cols ? s[i + c * s_ld] : 0.0;
    }
    __syncthreads();
    const std::int64_t count = p - first < kFactors ? p - first : kFactors;
    if (row >= rows) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      const double with = x[row + (first + i) * ld];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum[c] = fused(-factor[i][c], with, sum[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    if (row < rows && c < cols) y[row + c * ld] = sum[c];
  }
}

__global__ void __launch_bounds__(kThreads)
    normalize(double* y, std::int64_t rows, const double* s) {
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (row < rows && s[0] > 0) y[row] = rounded_quotient(y[row], __dsqrt_rn(s[0]));
}

constexpr int kRotatedRows = 8;  // of a thread block; a thread has every 32nd column of one of them

/// Z ← X·S; shared memory holds the rows of X.
__global__ void __launch_bounds__(kThreads)
    rotate_rows(double* v, std::int64_t ld, std::int64_t rows, const double* s, std::int64_t s_ld,
                std::int64_t p, std::int64_t q) {
  extern __shared__ double x[];
  const std::int64_t first = blockIdx.x * std::int64_t{kRotatedRows};
  for (std::int64_t k = threadIdx.x; k < p * kRotatedRows; k += kThreads) {
    const std::int64_t row = first + k % kRotatedRows;
    x[k] = row < rows ? v[row + k / kRotatedRows * ld] : 0.0;
  }
  __syncthreads();
  const int r = static_cast<int>(threadIdx.x) % kRotatedRows;
  if (first + r >= rows) return;
  for (std::int64_t j = threadIdx.x / kRotatedRows; j < q; j += kThreads / kRotatedRows) {
    double sum = 0;
    for (std::int64_t i = 0; i < p; ++i) sum = fused(s[i + j * s_ld], x[i * kRotatedRows + r], sum);
    v[first + r + j * ld] = sum;
  }
}

const double* column_of(const BlockView& v, std::int64_t j) {
  return static_cast<const double*>(v.data) + j * v.ld;
}

void sum_calls(Queue& queue, const KernelCalls& calls, bool fresh) {
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& s = calls[c][0];
    const BlockView& b = calls[c][1];
    const std::int64_t count = s.rows * s.cols;
    if (count == 0) continue;
    const auto add = [&](auto* type) {
      using W = std::remove_pointer_t<decltype(type)>;
      sum_chunks<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(
          static_cast<W*>(s.data), s.ld, static_cast<const W*>(b.data), b.ld, s.rows, s.cols,
          b.cols / s.cols, fresh);
    };
    s.element == Element::dd ? add(static_cast<DoubleDouble*>(nullptr))
                             : add(static_cast<double*>(nullptr));
    require_cuda(cudaGetLastError(), "panel_sum");
  }
}

void put_calls(Queue& queue, const KernelCalls& calls) {
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[1].rows == 0) continue;
    gather<<<blocks_for(x[1].rows, kThreads), kThreads, 0, stream>>>(
        static_cast<double*>(x[0].data) + x[1].row, static_cast<const double*>(x[1].data), nullptr,
        x[1].rows);
    require_cuda(cudaGetLastError(), "halo_put");
  }
}

}  // namespace

void spmv_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(spmv, parameters.variant, kPanelVariants | kSpmvOfLast);
  const PanelColumns columns = panel_columns(parameters.variant);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[0].rows == 0) continue;
    const bool of_last = (parameters.variant & kSpmvOfLast) != 0;
    const Product product{x[0].rows,
                          static_cast<const std::int32_t*>(x[1].data),
                          static_cast<const std::int32_t*>(x[2].data),
                          static_cast<const double*>(x[3].data),
                          column_of(x[0], of_last ? x[0].cols - 1 : columns.first),
                          column_of(x[0], columns.first),
                          static_cast<const double*>(x[4].data),
                          column_of(x[0], columns.third),
                          static_cast<double*>(x[0].data) + columns.second * x[0].ld,
                          column_of(x[5], columns.second)};
    multiply_rows<<<blocks_for(product.rows * kSpmvLanes, kThreads), kThreads, 0, stream>>>(
        product);
    require_cuda(cudaGetLastError(), "spmv");
  }
}

void halo_pack_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_pack, parameters.variant, 1023U);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[0].rows == 0) continue;
    gather<<<blocks_for(x[0].rows, kThreads), kThreads, 0, stream>>>(
        static_cast<double*>(x[0].data), column_of(x[1], panel_columns(parameters.variant).first),
        static_cast<const std::int32_t*>(x[2].data), x[0].rows);
    require_cuda(cudaGetLastError(), "halo_pack");
  }
}

void halo_start_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_start, parameters.variant, 0);
  put_calls(queue, calls);
}

void halo_put_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_put, parameters.variant, 0);
  put_calls(queue, calls);
}

void panel_inner_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_inner, parameters.variant, kPanelVariants);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    if (sum_at_once(static_cast<CudaQueue&>(queue), calls[c][0], calls[c][1],
                    panel_columns(parameters.variant)))
      continue;
    const std::vector<BlockView> chunks = chunks_of(calls[c][0], calls[c][1], parameters.variant);
    inner_cuda(queue, {chunks, 3}, {});
  }
}

void panel_start_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_start, parameters.variant, 0);
  sum_calls(queue, calls, true);
}

void panel_add_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_add, parameters.variant, 0);
  sum_calls(queue, calls, false);
}

void panel_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_update, parameters.variant, kPanelVariants | kPanelNormalize);
  const PanelColumns columns = panel_columns(parameters.variant);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& v = calls[c][0];
    const BlockView& s = calls[c][1];
    if (v.rows == 0) continue;
    const unsigned blocks = blocks_for(v.rows, kThreads);
    auto* y = static_cast<double*>(v.data) + columns.second * v.ld;
    const double* factor = column_of(s, columns.third);
    const std::int64_t cols = s.cols - columns.third;
    if ((parameters.variant & kPanelNormalize) != 0) {
      normalize<<<blocks, kThreads, 0, stream>>>(y, v.rows, factor);
    } else {
      for (std::int64_t j = 0; j < cols; j += kColumns)
        update_rows<<<blocks, kThreads, 0, stream>>>(column_of(v, columns.first), y + j * v.ld,
                                                     v.ld, v.rows, factor + j * s.ld, s.ld, s.rows,
                                                     std::min<std::int64_t>(kColumns, cols - j));
    }
    require_cuda(cudaGetLastError(), "panel_update");
  }
}

void panel_solve_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_solve, parameters.variant, 1023U);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const BlockView views[] = {panel_of(x[0], panel_columns(parameters.variant).first, x[1].cols),
                               x[1], x[2]};
    solve_right_cuda(queue, {views, 3}, {});
  }
}

void panel_rotate_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_rotate, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& v = calls[c][0];
    const BlockView& s = calls[c][1];
    if (v.rows == 0 || s.cols == 0) continue;
    const std::size_t shared = static_cast<std::size_t>(s.rows) * kRotatedRows * sizeof(double);
    rotate_rows<<<blocks_for(v.rows, kRotatedRows), kThreads, shared, stream>>>(
        static_cast<double*>(v.data), v.ld, v.rows, static_cast<const double*>(s.data), s.ld,
        s.rows, s.cols);
    require_cuda(cudaGetLastError(), "panel_rotate");
  }
}

void panel_put_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_put, parameters.variant, 1023U);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& v = calls[c][0];
    if (v.rows == 0) continue;
    double* to = static_cast<double*>(v.data) + panel_columns(parameters.variant).first * v.ld;
    gather<<<blocks_for(v.rows, kThreads), kThreads, 0, stream>>>(
        to, static_cast<const double*>(calls[c][1].data), nullptr, v.rows);
    require_cuda(cudaGetLastError(), "panel_put");
  }
}

void panel_take_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_take, parameters.variant, 1023U);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[1].rows == 0) continue;
    gather<<<blocks_for(x[1].rows, kThreads), kThreads, 0, stream>>>(
        static_cast<double*>(x[0].data), column_of(x[1], panel_columns(parameters.variant).first),
        nullptr, x[1].rows);
    require_cuda(cudaGetLastError(), "panel_take");
  }
}

}  // namespace strata
