// sketch.hpp on a GPU.
//
// Method: gaussian: a thread block draws 32 rows of Ω for a tile of rows of X in shared memory and
// multiplies all columns by them; a second kernel adds the tiles up in their order. In count a warp
// has a column of a span, whose buckets lie in shared memory: its lanes are the rows of a tile,
// whose buckets lie side by side, so V is read in whole lines and no two lanes meet. The rows of a
// few tiles are under way while others are added. A transform has a thread block for each column,
// in shared memory where that holds it.

#include <algorithm>
#include <type_traits>

#include <cuda_fp16.h>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/tall/sketch_cuda.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsOfBlock = 32;  ///< of S
constexpr std::int64_t kSharedBytesMax = 160 << 10;

/// Columns of a block, scaled when they are read; d may be null.
template <class T>
struct Columns {
  const T* data;
  std::int64_t rows, cols, ld;
  const double* d;
  __device__ double at(std::int64_t row, std::int64_t col) const {
    const auto value = static_cast<double>(data[row + col * ld]);
    return d == nullptr ? value : rounded_product(value, d[col]);
  }
};

/// parts (packed, s × n for each tile) of 32 rows of S a thread block.
template <class T>
__global__ void __launch_bounds__(kThreads)
    gaussian_tiles(Columns<T> x, std::int64_t first_row, std::uint64_t seed, std::int64_t s_rows,
                   double* parts) {
  __shared__ double omega[kSketchTileRows * kRowsOfBlock];
  const std::int64_t first = blockIdx.x * std::int64_t{kSketchTileRows};
  const int rows = static_cast<int>(
      min(static_cast<long long>(kSketchTileRows), static_cast<long long>(x.rows - first)));
  const std::int64_t top = blockIdx.y * std::int64_t{kRowsOfBlock};
  for (int e = static_cast<int>(threadIdx.x); e < rows * kRowsOfBlock; e += kThreads)
    omega[e] = sketch_normal(seed, first_row + first + e / kRowsOfBlock, top + e % kRowsOfBlock);
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x) % kRowsOfBlock;
  if (top + i >= s_rows) return;
  for (std::int64_t k = threadIdx.x / kRowsOfBlock; k < x.cols; k += kThreads / kRowsOfBlock) {
    double sum = 0;
    for (int r = 0; r < rows; ++r)
      sum = fused(omega[r * kRowsOfBlock + i], x.at(first + r, k), sum);
    parts[(blockIdx.x * x.cols + k) * s_rows + top + i] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    fold_tiles(const double* parts, std::int64_t tiles, std::int64_t s_rows, std::int64_t n,
               double* s, std::int64_t ld) {
  const std::int64_t e = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (e >= s_rows * n) return;
  double sum = 0;
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    sum = rounded_sum(sum, parts[tile * s_rows * n + e]);
  s[e % s_rows + e / s_rows * ld] = sum;
}

constexpr int kLanesOfWarp = 32;
static_assert(kSketchCountRows == kLanesOfWarp);
constexpr int kTilesAhead = 16;

/// A call of count: `spans` of so many rows each, seeds and buckets.
struct CountShape {
  std::int64_t first_tile, span_rows, buckets;
  std::uint64_t bucket_seed, sign_seed;
  bool continued;  ///< buckets begin with what is in `to`
};

/// The rows of tiles t … t + kTilesAhead − 1 of a column, for one lane; zeros below its end, which
/// change no sum.
template <class T>
__device__ void read_tiles(const T* column, std::int64_t row, std::int64_t end,
                           T (&to)[kTilesAhead]) {
#pragma unroll
  for (int t = 0; t < kTilesAhead; ++t) {
    const std::int64_t at = row + t * kSketchCountRows;
    to[t] = at < end ? column[at] : T(0);
  }
}

/// Buckets of a column of a span, a warp each; span blockIdx.x goes to to + blockIdx.x · stride.
template <class T>
__global__ void __launch_bounds__(kThreads)
    count_spans(Columns<T> x, CountShape shape, double* to, std::int64_t ld, std::int64_t stride) {
  extern __shared__ double buckets_of_block[];
  const int warps = static_cast<int>(blockDim.x) / kLanesOfWarp;
  const int lane = static_cast<int>(threadIdx.x) % kLanesOfWarp;
  const int warp = static_cast<int>(threadIdx.x) / kLanesOfWarp;
  const std::int64_t j = blockIdx.y * std::int64_t{warps} + warp;
  if (j >= x.cols) return;
  double* sums = buckets_of_block + warp * shape.buckets;
  double* out = to + blockIdx.x * stride + j * ld;
  for (std::int64_t b = lane; b < shape.buckets; b += kLanesOfWarp)
    sums[b] = shape.continued ? out[b] : 0;
  __syncwarp();
  const T* column = x.data + j * x.ld;
  const double scale = x.d == nullptr ? 1.0 : x.d[j];
  const std::int64_t begin = blockIdx.x * shape.span_rows;
  const std::int64_t end = min(begin + shape.span_rows, x.rows);
  T now[kTilesAhead];
  read_tiles(column, begin + lane, end, now);
  for (std::int64_t row = begin; row < end; row += kLanesOfWarp * kSketchCountRows) {
    // A lane draws for one of the next 32 tiles.
    const std::int64_t tile = shape.first_tile + row / kSketchCountRows + lane;
    const int bucket = static_cast<int>(sketch_bucket(shape.bucket_seed, tile, shape.buckets));
    const std::uint32_t signs = sketch_signs(shape.sign_seed, tile);
    for (int first = 0; first < kLanesOfWarp; first += kTilesAhead) {
      T next[kTilesAhead];
      read_tiles(column, row + (first + kTilesAhead) * kSketchCountRows + lane, end, next);
#pragma unroll
      for (int t = 0; t < kTilesAhead; ++t) {
        double* place = sums + __shfl_sync(0xffffffffU, bucket, first + t) + lane;
        const bool negative = (__shfl_sync(0xffffffffU, signs, first + t) >> lane & 1U) != 0;
        const double value = rounded_product(static_cast<double>(now[t]), scale);
        *place = rounded_sum(*place, negative ? -value : value);
        __syncwarp();
      }
#pragma unroll
      for (int t = 0; t < kTilesAhead; ++t) now[t] = next[t];
    }
  }
  for (std::int64_t b = lane; b < shape.buckets; b += kLanesOfWarp) out[b] = sums[b];
}

/// s ← the sums of spans, added in a binary tree.
__global__ void __launch_bounds__(kThreads)
    add_spans(const double* parts, std::int64_t spans, std::int64_t s_rows, std::int64_t n,
              double* s, std::int64_t ld) {
  constexpr int kLevels = 48;
  const std::int64_t e = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (e >= s_rows * n) return;
  double waiting[kLevels];  // of 2^level spans, where that bit of the number of spans is set
  for (std::int64_t span = 0; span < spans; ++span) {
    double sum = parts[span * s_rows * n + e];
    int level = 0;
    for (; (span >> level & 1) != 0; ++level) sum = rounded_sum(waiting[level], sum);
    waiting[level] = sum;
  }
  double sum = 0;
  bool begun = false;
  for (int level = 0; spans >> level != 0; ++level) {
    if ((spans >> level & 1) == 0) continue;
    sum = begun ? rounded_sum(waiting[level], sum) : waiting[level];
    begun = true;
  }
  s[e % s_rows + e / s_rows * ld] = sum;
}

__device__ double added(double a, double b) { return rounded_sum(a, b); }
__device__ float added(float a, float b) { return rounded_sum(a, b); }
__device__ float through_half(float x) { return __half2float(__float2half_rn(x)); }

extern __shared__ unsigned char shared_column[];

/// A column a thread block; `spill`: where columns are if they are not in shared memory.
template <class Real, class T>
__global__ void __launch_bounds__(kThreads)
    transform_columns(Columns<T> x, std::int64_t first_row, std::uint64_t sign_seed,
                      std::uint64_t sample_seed, bool half, std::int64_t transform_rows,
                      Real* spill, double* s, std::int64_t s_rows, std::int64_t ld) {
  __shared__ double largest_of[kThreads];
  const std::int64_t column = blockIdx.x;
  Real* y =
      spill != nullptr ? spill + column * transform_rows : reinterpret_cast<Real*>(shared_column);
  double largest = 0;
  for (std::int64_t r = threadIdx.x; r < x.rows; r += kThreads) {
    const double size = fabs(x.at(r, column));
    largest = size > largest ? size : largest;
  }
  largest_of[threadIdx.x] = largest;
  __syncthreads();
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step && largest_of[threadIdx.x + step] > largest_of[threadIdx.x])
      largest_of[threadIdx.x] = largest_of[threadIdx.x + step];
    __syncthreads();
  }
  const double power = __longlong_as_double(static_cast<long long>(
      sketch_power_bits(static_cast<std::uint64_t>(__double_as_longlong(largest_of[0])))));
  for (std::int64_t r = threadIdx.x; r < transform_rows; r += kThreads) {
    Real value = 0;
    if (r < x.rows) {
      value = static_cast<Real>(rounded_product(rounded_product(x.at(r, column), power),
                                                sketch_sign(sign_seed, first_row + r)));
      if (half) value = static_cast<Real>(through_half(static_cast<float>(value)));
    }
    y[r] = value;
  }
  __syncthreads();
  for (std::int64_t distance = 1; distance < transform_rows; distance *= 2) {
    for (std::int64_t pair = threadIdx.x; pair < transform_rows / 2; pair += kThreads) {
      const std::int64_t a = pair / distance * 2 * distance + pair % distance;
      const Real left = y[a];
      const Real right = y[a + distance];
      y[a] = added(left, right);
      y[a + distance] = added(left, -right);
    }
    __syncthreads();
  }
  const double shift = ldexp(1.0, sketch_half_shift(transform_rows));
  for (std::int64_t i = threadIdx.x; i < s_rows; i += kThreads) {
    auto value = static_cast<double>(y[sketch_sample(sample_seed, first_row, i, transform_rows)]);
    if (half)
      value = rounded_product(
          static_cast<double>(through_half(static_cast<float>(rounded_quotient(value, shift)))),
          shift);
    s[i + column * ld] = rounded_quotient(value, power);
  }
}

// ---- calls

unsigned blocks_for(std::int64_t count, std::int64_t of_block) {
  return static_cast<unsigned>((count + of_block - 1) / of_block);
}
std::int64_t tiles_of(std::int64_t rows) { return (rows + kSketchTileRows - 1) / kSketchTileRows; }
std::int64_t part_bytes(std::int64_t rows, std::int64_t s_rows, std::int64_t n) {
  return tiles_of(rows) * s_rows * n * std::int64_t{sizeof(double)};
}

template <class T>
void gaussian(cudaStream_t stream, const Columns<T>& x, std::int64_t first_row, std::uint64_t seed,
              const BlockView& s, std::byte* memory) {
  auto* parts = reinterpret_cast<double*>(memory);
  if (x.rows > 0) {
    const dim3 grid(static_cast<unsigned>(tiles_of(x.rows)), blocks_for(s.rows, kRowsOfBlock));
    gaussian_tiles<<<grid, kThreads, 0, stream>>>(x, first_row, seed, s.rows, parts);
  }
  fold_tiles<<<blocks_for(s.rows * x.cols, kThreads), kThreads, 0, stream>>>(
      parts, tiles_of(x.rows), s.rows, x.cols, static_cast<double*>(s.data), s.ld);
  require_cuda(cudaGetLastError(), "sketch");
}

/// As many columns a thread block as shared memory holds the buckets of.
template <class T>
void count(CudaQueue& queue, const Columns<T>& x, std::int64_t first_row, std::uint32_t variant,
           const BlockView& s, bool continued) {
  constexpr std::int64_t kColumnsMost = kThreads / kLanesOfWarp;
  const std::int64_t column_bytes = s.rows * std::int64_t{sizeof(double)};
  const std::int64_t columns =
      std::min({kSharedBytesMax / column_bytes, kColumnsMost, std::max<std::int64_t>(x.cols, 1)});
  if (columns == 0)
    throw Error(ErrorKind::misuse, "sketch",
                std::to_string(s.rows) + " buckets are more than a GPU holds");
  const std::int64_t span = sketch_span(s.rows);
  const std::int64_t spans = std::max<std::int64_t>((x.rows + span - 1) / span, 1);
  auto* to = static_cast<double*>(s.data);
  auto* parts = spans == 1 ? to
                           : static_cast<double*>(queue.scratch(spans * s.rows * x.cols *
                                                                std::int64_t{sizeof(double)}));
  const CountShape shape{first_row / kSketchCountRows,
                         span,
                         s.rows,
                         sketch_seed(variant, SketchStream::bucket),
                         sketch_seed(variant, SketchStream::sign),
                         continued};
  const auto bytes = static_cast<std::size_t>(columns * column_bytes);
  require_cuda(cudaFuncSetAttribute(count_spans<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kSharedBytesMax)),
               "sketch");
  const dim3 grid(static_cast<unsigned>(spans), blocks_for(x.cols, columns));
  count_spans<T><<<grid, static_cast<unsigned>(columns * kLanesOfWarp), bytes, queue.stream()>>>(
      x, shape, parts, spans == 1 ? s.ld : s.rows, s.rows * x.cols);
  if (spans > 1)
    add_spans<<<blocks_for(s.rows * x.cols, kThreads), kThreads, 0, queue.stream()>>>(
        parts, spans, s.rows, x.cols, to, s.ld);
  require_cuda(cudaGetLastError(), "sketch");
}

template <class Real, class T>
void transform(CudaQueue& queue, const Columns<T>& x, std::int64_t first_row, std::uint32_t variant,
               const BlockView& s) {
  const std::int64_t rows = sketch_transform_rows(x.rows);
  const std::int64_t bytes = rows * std::int64_t{sizeof(Real)};
  const bool shared = bytes <= kSharedBytesMax;
  Real* spill = shared ? nullptr : static_cast<Real*>(queue.scratch(bytes * x.cols));
  require_cuda(
      cudaFuncSetAttribute(transform_columns<Real, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(kSharedBytesMax)),
      "sketch");
  transform_columns<Real, T><<<static_cast<unsigned>(x.cols), kThreads,
                               static_cast<std::size_t>(shared ? bytes : 0), queue.stream()>>>(
      x, first_row, sketch_seed(variant, SketchStream::sign),
      sketch_seed(variant, SketchStream::sample), sketch_kind(variant) == SketchKind::srht_fp16,
      rows, spill, static_cast<double*>(s.data), s.rows, s.ld);
  require_cuda(cudaGetLastError(), "sketch");
}

template <class T>
void sketch_call(CudaQueue& queue, const BlockView* x, std::uint32_t variant, bool continued) {
  const Columns<T> columns{static_cast<const T*>(x[1].data), x[1].rows, x[1].cols, x[1].ld,
                           static_cast<const double*>(x[2].data)};
  switch (sketch_kind(variant)) {
    case SketchKind::gaussian:
      gaussian(queue.stream(), columns, x[1].row, sketch_seed(variant, SketchStream::normal), x[0],
               static_cast<std::byte*>(queue.scratch(part_bytes(x[1].rows, x[0].rows, x[1].cols))));
      break;
    case SketchKind::count: count(queue, columns, x[1].row, variant, x[0], continued); break;
    case SketchKind::srht_fp64: transform<double>(queue, columns, x[1].row, variant, x[0]); break;
    default: transform<float>(queue, columns, x[1].row, variant, x[0]);
  }
}

void sketch_calls(Queue& queue, const KernelCalls& calls, std::uint32_t variant, bool continued) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    require_sketch(x, variant, continued);
    if (x[0].rows == 0 || x[0].cols == 0) continue;
    x[1].element == Element::fp32 ? sketch_call<float>(cuda, x, variant, continued)
                                  : sketch_call<double>(cuda, x, variant, continued);
  }
}

}  // namespace

void sketch_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  sketch_calls(queue, calls, parameters.variant, false);
}
void continue_sketch_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  sketch_calls(queue, calls, parameters.variant, true);
}

}  // namespace strata
