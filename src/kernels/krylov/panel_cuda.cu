// Steps of Krylov methods on a GPU, with the bits of the CPU.
//
// Method: four rows of spmv have four neighbouring threads, one for each lane of all four, so
// entries of a row are read side by side, and rows that follow each other by the same warp; the
// lanes are added by shuffles. With one row at a time it waits for one number after the other. Sums
// over rows, updates and substitution run on the tensor cores (gram_tensor_cuda.cu,
// row_products_cuda.cu), all chunks of a sum at once. Everything is bound by memory.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/krylov/panel_cuda.hpp"
#include "kernels/tall/gram_cuda.hpp"
#include "kernels/tall/gram_tensor_cuda.hpp"
#include "kernels/tall/gram_units_cuda.hpp"
#include "kernels/tall/row_products_cuda.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(std::int64_t count, std::int64_t of_block) {
  return static_cast<unsigned>((count + of_block - 1) / of_block);
}

template <class T>
struct Product {
  std::int64_t rows;
  const std::int32_t* start;
  const std::int32_t* column;
  const T* value;
  const T* x;
  const T* from;
  const T* halo;
  const T* before;
  T* to;
  const double* k;  ///< α, β, γ
};

/// Rows of four neighbouring threads: what a thread waits for of one row it has the others to wait
/// for beside, and each of the threads ends one row.
constexpr int kRowsOfFour = kSpmvLanes;

template <class T>
__global__ void __launch_bounds__(kThreads) multiply_rows(Product<T> p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  const int lane = static_cast<int>(thread % kSpmvLanes);
  const std::int64_t mine = thread;  // the row that this thread ends
  const double alpha = p.k[0];
  const double beta = p.k[1];
  const double gamma = p.k[2];
  std::int32_t first = 0;
  std::int32_t behind = 0;
  double of_from = 0;
  double of_before = 0;
  if (mine < p.rows) {
    first = p.start[mine];
    behind = p.start[mine + 1];
    of_from = static_cast<double>(p.from[mine]);
    if (beta != 0) of_before = static_cast<double>(p.before[mine]);
  }
  std::int32_t next[kRowsOfFour];
  std::int32_t end[kRowsOfFour];
  double sum[kRowsOfFour];
  std::int32_t longest = 0;
#pragma unroll
  for (int r = 0; r < kRowsOfFour; ++r) {
    next[r] = __shfl_sync(0xffffffffU, first, r, kSpmvLanes);
    end[r] = __shfl_sync(0xffffffffU, behind, r, kSpmvLanes);
    longest = max(longest, end[r] - next[r]);
    sum[r] = 0;
  }
  for (std::int32_t done = 0; done < longest; done += kSpmvLanes) {
    std::int32_t j[kRowsOfFour];
    double a[kRowsOfFour];
    double with[kRowsOfFour];
#pragma unroll
    for (int r = 0; r < kRowsOfFour; ++r) {
      const std::int32_t e = next[r] + done + lane;
      j[r] = e < end[r] ? p.column[e] : -1;
      a[r] = e < end[r] ? static_cast<double>(p.value[e]) : 0.0;
    }
#pragma unroll
    for (int r = 0; r < kRowsOfFour; ++r) {
      const T* x = j[r] < p.rows ? p.x + j[r] : p.halo + (j[r] - p.rows);
      with[r] = j[r] >= 0 ? static_cast<double>(*x) : 0.0;
    }
#pragma unroll
    for (int r = 0; r < kRowsOfFour; ++r) {
      if (next[r] + done < end[r]) sum[r] = fused(a[r], with[r], sum[r]);
    }
  }
  double mine_of = 0;
#pragma unroll
  for (int r = 0; r < kRowsOfFour; ++r) {
    // (0 + 1) + (2 + 3) in all lanes; a sum of two has the same bits in either order.
    sum[r] = rounded_sum(sum[r], __shfl_xor_sync(0xffffffffU, sum[r], 1));
    sum[r] = rounded_sum(sum[r], __shfl_xor_sync(0xffffffffU, sum[r], 2));
    if (lane == r) mine_of = sum[r];
  }
  if (mine >= p.rows) return;
  double t = fused(-alpha, of_from, mine_of);
  if (beta != 0) t = fused(-beta, of_before, t);
  p.to[mine] = static_cast<T>(rounded_product(gamma, t));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gather(T* to, const T* from, const std::int32_t* index, std::int64_t count) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i < count) to[i] = from[index == nullptr ? i : index[i]];
}

template <class T>
void launch_gather(Queue& queue, T* to, const T* from, const std::int32_t* index,
                   std::int64_t count, const char* what) {
  if (count == 0) return;
  gather<<<blocks_for(count, kThreads), kThreads, 0, static_cast<CudaQueue&>(queue).stream()>>>(
      to, from, index, count);
  require_cuda(cudaGetLastError(), what);
}

// ---- sums over the rows of chunks

/// How the units of a block become sums of its chunks.
struct ChunkSums {
  std::int64_t units;       ///< of all rows
  std::int64_t of_chunk;    ///< units: a power of two
  gram_gpu::Pairs pairs;    ///< of a unit
  std::int64_t rows, cols;  ///< of the result of a chunk
  std::int64_t ld;
};

constexpr int kLevels = 32;

/// The units of chunk blockIdx.y in their binary tree, a thread a pair of columns.
template <class W>
__global__ void __launch_bounds__(kThreads) add_chunk_units(const W* units, ChunkSums c, W* b) {
  using gram_gpu::kChunk;
  const std::int64_t pair = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (pair >= c.pairs.count()) return;
  const std::int64_t begin = blockIdx.y * c.of_chunk;
  const std::int64_t count = min(c.of_chunk, c.units - begin);
  const W* first = units + begin * c.pairs.count() + pair;
  W waiting[kLevels];
  std::int64_t groups = 0;
  for (; groups * kChunk < count; ++groups) {
    const auto in_group = static_cast<int>(min(count - groups * kChunk, std::int64_t{kChunk}));
    W x = gram_gpu::tree_of(first + groups * kChunk * c.pairs.count(), c.pairs.count(), in_group);
    int level = 0;
    for (std::int64_t bits = groups; (bits & 1) == 1; bits >>= 1)
      x = gram_gpu::sum_of(waiting[level++], x);
    waiting[level] = x;
  }
  W sum{};
  bool empty = true;
  for (int level = 0; level < kLevels; ++level) {
    if ((groups >> level & 1) == 0) continue;
    sum = empty ? waiting[level] : gram_gpu::sum_of(waiting[level], sum);
    empty = false;
  }
  std::int64_t i = 0;
  std::int64_t j = 0;
  c.pairs.locate(pair, i, j);
  W* to = b + blockIdx.y * c.cols * c.ld;
  to[i + j * c.ld] = sum;
  if (c.pairs.symmetric) to[j + i * c.ld] = sum;
}

/// All chunks of a call at once: sums in fp64, and symmetric ones in double-double. False for the
/// others.
bool sum_at_once(CudaQueue& queue, const BlockView& b, const BlockView& v,
                 const PanelColumns& columns) {
  const std::int64_t height = std::int64_t{1} << columns.third;
  if (v.rows == 0 || b.rows == 0 || height < kGramTileRows) return false;
  const std::int64_t chunks = (v.rows + height - 1) / height;
  const std::int64_t cols = b.cols / chunks;
  const bool symmetric = columns.first == columns.second && b.rows == cols;
  const bool wide = b.element == Element::dd;
  if (cols == 0 || b.element == Element::fp32 || (wide && !symmetric)) return false;
  const auto tiles =
      static_cast<int>(std::min<std::int64_t>(height / kGramTileRows, gram_gpu::kTilesOfUnit));
  ChunkSums c{gram_gpu::units_of(v.rows, tiles),
              height / (std::int64_t{tiles} * kGramTileRows),
              {b.rows, cols, symmetric},
              b.rows,
              cols,
              b.ld};
  const BlockView x = panel_of(v, columns.first, b.rows);
  const BlockView y = panel_of(v, columns.second, cols);
  const dim3 grid(blocks_for(c.pairs.count(), kThreads), static_cast<unsigned>(chunks));
  const auto run = [&](auto* type, auto&& sums_of_units) {
    using W = std::remove_pointer_t<decltype(type)>;
    auto* units =
        static_cast<W*>(queue.scratch(c.units * c.pairs.count() * std::int64_t{sizeof(W)}));
    sums_of_units(units);
    add_chunk_units<<<grid, kThreads, 0, queue.stream()>>>(units, c, static_cast<W*>(b.data));
    require_cuda(cudaGetLastError(), "panel_inner");
  };
  if (wide) {
    run(static_cast<DoubleDouble*>(nullptr), [&](DoubleDouble* units) {
      gram_gpu::wide_unit_sums(queue.stream(), gram_gpu::columns_of<double>(x, nullptr), tiles,
                               units);
    });
  } else {
    run(static_cast<double*>(nullptr), [&](double* units) {
      with_vectors(v.element, [&]<class T>(std::type_identity<T>) {
        const auto of_x = gram_gpu::columns_of<T>(x, nullptr);
        symmetric ? gram_gpu::tensor_unit_sums(queue.stream(), of_x, tiles, units)
                  : gram_gpu::tensor_unit_sums(queue.stream(), of_x,
                                               gram_gpu::columns_of<T>(y, nullptr), tiles, units);
      });
    });
  }
  return true;
}

__device__ float sum_of(float a, float b) { return rounded_sum(a, b); }
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

/// y ← x/√s, or x where s is not positive. y may be x.
template <class X, class Y>
__global__ void __launch_bounds__(kThreads)
    normalize(const X* x, Y* y, std::int64_t rows, const double* s) {
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (row >= rows) return;
  const auto value = static_cast<double>(x[row]);
  y[row] = static_cast<Y>(s[0] > 0 ? rounded_quotient(value, __dsqrt_rn(s[0])) : value);
}

constexpr int kUpdateColumns = 16;  // of Y, in registers
constexpr int kUpdateDepth = 64;    // rows of S in shared memory

/// Y ← Y − X·S for columns blockIdx.y · kUpdateColumns … of Y, a thread a row. X is in fp32, so
/// that the products cost no more time than reading it.
template <class Y>
__global__ void __launch_bounds__(kThreads)
    subtract_products(const float* x, std::int64_t x_ld, std::int64_t rows, const double* s,
                      std::int64_t s_ld, std::int64_t p, Y* y, std::int64_t y_ld, std::int64_t q) {
  __shared__ double part[kUpdateDepth][kUpdateColumns];
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  const std::int64_t first = blockIdx.y * std::int64_t{kUpdateColumns};
  const int columns = static_cast<int>(min(q - first, std::int64_t{kUpdateColumns}));
  double sum[kUpdateColumns];
#pragma unroll
  for (int j = 0; j < kUpdateColumns; ++j)
    sum[j] = row < rows && j < columns ? static_cast<double>(y[row + (first + j) * y_ld]) : 0.0;
  for (std::int64_t begin = 0; begin < p; begin += kUpdateDepth) {
    const int depth = static_cast<int>(min(p - begin, std::int64_t{kUpdateDepth}));
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < depth * kUpdateColumns; k += kThreads) {
      const int i = k / kUpdateColumns;
      const int j = k % kUpdateColumns;
      part[i][j] = j < columns ? -s[begin + i + (first + j) * s_ld] : 0.0;
    }
    __syncthreads();
    if (row >= rows) continue;
#pragma unroll 4
    for (int i = 0; i < depth; ++i) {
      const auto value = static_cast<double>(x[row + (begin + i) * x_ld]);
#pragma unroll
      for (int j = 0; j < kUpdateColumns; ++j) sum[j] = fused(part[i][j], value, sum[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kUpdateColumns; ++j) {
    if (row < rows && j < columns) y[row + (first + j) * y_ld] = static_cast<Y>(sum[j]);
  }
}

/// X being columns of V from `first` on.
template <class Y>
void launch_subtract(Queue& queue, const BlockView& v, std::int64_t first, const BlockView& s,
                     std::int64_t without, Y* y, std::int64_t y_ld) {
  const std::int64_t cols = s.cols - without;
  if (v.rows == 0 || cols == 0) return;
  const dim3 grid(blocks_for(v.rows, kThreads), blocks_for(cols, kUpdateColumns));
  subtract_products<<<grid, kThreads, 0, static_cast<CudaQueue&>(queue).stream()>>>(
      static_cast<const float*>(v.data) + first * v.ld, v.ld, v.rows,
      static_cast<const double*>(s.data) + without * s.ld, s.ld, s.rows, y, y_ld, cols);
  require_cuda(cudaGetLastError(), "products subtracted");
}

template <class T = double>
T* column_of(const BlockView& v, std::int64_t j) {
  return static_cast<T*>(v.data) + j * v.ld;
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
    gram_gpu::with_type(s.element, add);
    require_cuda(cudaGetLastError(), "panel_sum");
  }
}

void put_calls(Queue& queue, const KernelCalls& calls) {
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      launch_gather(queue, static_cast<T*>(x[0].data) + x[1].row, static_cast<const T*>(x[1].data),
                    nullptr, x[1].rows, "halo_put");
    });
  }
}

template <class T>
void launch_product(Queue& queue, const BlockView* x, std::uint32_t variant) {
  const PanelColumns columns = panel_columns(variant);
  const bool of_last = (variant & kSpmvOfLast) != 0;
  const Product<T> product{x[0].rows,
                           static_cast<const std::int32_t*>(x[1].data),
                           static_cast<const std::int32_t*>(x[2].data),
                           static_cast<const T*>(x[3].data),
                           column_of<T>(x[0], of_last ? x[0].cols - 1 : columns.first),
                           column_of<T>(x[0], columns.first),
                           static_cast<const T*>(x[4].data),
                           column_of<T>(x[0], columns.third),
                           column_of<T>(x[0], columns.second),
                           column_of(x[5], columns.second)};
  multiply_rows<<<blocks_for(product.rows, kThreads), kThreads, 0,
                  static_cast<CudaQueue&>(queue).stream()>>>(product);
  require_cuda(cudaGetLastError(), "spmv");
}

}  // namespace

void spmv_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(spmv, parameters.variant, kPanelVariants | kSpmvOfLast);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[0].rows == 0) continue;
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      launch_product<T>(queue, x, parameters.variant);
    });
  }
}

void halo_pack_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_pack, parameters.variant, 1023U);
  const std::int64_t from = panel_columns(parameters.variant).first;
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      launch_gather<T>(queue, static_cast<T*>(x[0].data), column_of<T>(x[1], from),
                       static_cast<const std::int32_t*>(x[2].data), x[0].rows, "halo_pack");
    });
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
    if ((parameters.variant & kPanelNormalize) != 0) {
      with_vectors(v.element, [&]<class T>(std::type_identity<T>) {
        T* y = column_of<T>(v, columns.second);
        normalize<T, T><<<blocks_for(v.rows, kThreads), kThreads, 0, stream>>>(
            y, y, v.rows, column_of(s, columns.third));
      });
    } else if (v.element == Element::fp32) {
      launch_subtract(queue, v, columns.first, s, columns.third,
                      column_of<float>(v, columns.second), v.ld);
    } else {
      gram_gpu::tensor_update(
          stream, gram_gpu::columns_of<double>(panel_of(v, columns.first, s.rows), nullptr),
          column_of(s, columns.third), s.ld, column_of(v, columns.second), v.ld,
          s.cols - columns.third);
    }
    require_cuda(cudaGetLastError(), "panel_update");
  }
}

void panel_correct_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(panel_correct, parameters.variant, kPanelVariants);
  const PanelColumns columns = panel_columns(parameters.variant);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    launch_subtract(queue, x[1], columns.first, x[2], 0, column_of(x[0], columns.second), x[0].ld);
  }
}

void panel_narrow_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_narrow, parameters.variant, kPanelVariants);
  const PanelColumns columns = panel_columns(parameters.variant);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[0].rows == 0) continue;
    normalize<double, float><<<blocks_for(x[0].rows, kThreads), kThreads, 0, stream>>>(
        column_of(x[1], columns.first), column_of<float>(x[0], columns.second), x[0].rows,
        column_of(x[2], 0));
    require_cuda(cudaGetLastError(), "panel_narrow");
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
    gram_gpu::tensor_rotate(stream, static_cast<double*>(v.data), v.ld, v.rows,
                            static_cast<const double*>(s.data), s.ld, s.rows, s.cols);
  }
}

void panel_put_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_put, parameters.variant, 1023U);
  const std::int64_t to = panel_columns(parameters.variant).first;
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      launch_gather(queue, column_of<T>(x[0], to), static_cast<const T*>(x[1].data), nullptr,
                    x[0].rows, "panel_put");
    });
  }
}

void panel_take_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_take, parameters.variant, 1023U);
  const std::int64_t from = panel_columns(parameters.variant).first;
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      launch_gather<T>(queue, static_cast<T*>(x[0].data), column_of<T>(x[1], from), nullptr,
                       x[1].rows, "panel_take");
    });
  }
}

}  // namespace strata
