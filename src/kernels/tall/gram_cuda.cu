// gram and its relatives on a GPU: the sums of gram.hpp, with the bits of the CPU.
//
// Method: sums of fp64 (gram_tensor_cuda.cu), those in double-double that are symmetric
// (gram_units_cuda.cu, by digits gram_digits_cuda.cu) and solves (gram_solve_cuda.cu) read V once.
// The rest is the plain form, which reads V through the caches once for each pair. What a tile of
// 128 rows adds to the four lanes of a pair of columns does not depend on the tiles before it, so a
// thread has one lane of one pair of one tile. A second kernel adds the tiles of a unit up in their
// order, and others the units in their tree. Exponents of extraction come from a kernel of their
// own, a warp for each column of a tile. Where R is too large for shared memory a substitution has
// a thread for each row. Every operation is an intrinsic of one rounding (double_double.hpp), so
// the compiler contracts none of them. Parts of sums, exponents and unrounded quotients lie in the
// scratch memory of the queue.

#include "kernels/tall/gram_cuda.hpp"
#include "kernels/tall/gram_digits_cuda.hpp"
#include "kernels/tall/gram_solve_cuda.hpp"
#include "kernels/tall/gram_tensor_cuda.hpp"
#include "kernels/tall/gram_units_cuda.hpp"
#include "kernels/tall/row_products_cuda.hpp"

namespace strata {
namespace {

using namespace gram_gpu;

constexpr int kPairsOfBlock = kThreads / kGramLanes;

// ---- parts of sums

/// fields[tile · cols + col]: the biased exponent of the largest magnitude, a warp for each.
template <class T>
__global__ void __launch_bounds__(kThreads)
    tile_fields(Columns<T> x, std::int64_t tiles, int* fields) {
  const std::int64_t which =
      (blockIdx.x * std::int64_t{kThreads} + threadIdx.x) / kWarpSize;  // uniform in a warp
  if (which >= tiles * x.cols) return;
  const std::int64_t tile = which / x.cols;
  const std::int64_t col = which % x.cols;
  double largest = 0;
  for (int k = static_cast<int>(threadIdx.x) % kWarpSize; k < kGramTileRows; k += kWarpSize) {
    const double size = fabs(x.template at<double>(tile * kGramTileRows + k, col));
    largest = size > largest ? size : largest;  // a NaN is not
  }
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2) {
    const double other = __shfl_xor_sync(0xffffffffU, largest, half);
    largest = other > largest ? other : largest;
  }
  if (threadIdx.x % kWarpSize == 0)
    fields[which] = static_cast<int>(__double_as_longlong(largest) >> 52);
}

/// parts[(tile · pairs + pair) · 4 + lane]: what the tile adds.
template <class W, class T>
__global__ void __launch_bounds__(kThreads)
    tile_parts(Columns<T> x, Columns<T> y, Pairs pairs, const int* fields_x, const int* fields_y,
               W* parts) {
  using Real = RealOf<W>;
  const std::int64_t tile = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kGramLanes;
  for (std::int64_t pair = blockIdx.y * std::int64_t{kPairsOfBlock} + threadIdx.x / kGramLanes;
       pair < pairs.count(); pair += std::int64_t{gridDim.y} * kPairsOfBlock) {
    std::int64_t i = 0;
    std::int64_t j = 0;
    pairs.locate(pair, i, j);
    const std::int64_t first = tile * kGramTileRows + lane;
    W part{};
    if constexpr (std::is_same_v<W, DoubleDouble>) {
      const double start =
          extraction_start(fields_x[tile * x.cols + i], fields_y[tile * y.cols + j]);
      double a = start;
      double low = 0;
      for (int k = 0; k < kGramLaneRows; ++k) {
        const double xk = x.template at<double>(first + k * kGramLanes, i);
        const double yk = y.template at<double>(first + k * kGramLanes, j);
        const double t = fused(xk, yk, a);
        const double q = rounded_sum(t, -a);
        low = rounded_sum(low, fused(xk, yk, -q));
        a = t;
      }
      part = DoubleDouble{rounded_sum(a, -start), low};
    } else {
      for (int k = 0; k < kGramLaneRows; ++k)
        part = fused(x.template at<Real>(first + k * kGramLanes, i),
                     y.template at<Real>(first + k * kGramLanes, j), part);
    }
    parts[(tile * pairs.count() + pair) * kGramLanes + lane] = part;
  }
}

/// The sum of four lanes that lie side by side in shared memory.
template <class W>
__device__ W lanes_of(const W* lanes) {
  return sum_of(sum_of(lanes[0], lanes[1]), sum_of(lanes[2], lanes[3]));
}

/// units[u · pairs + pair] ← the parts of the tiles of unit u, in their order.
template <class W>
__global__ void __launch_bounds__(kThreads)
    fold_parts(const W* parts, std::int64_t tiles, Pairs pairs, W* units) {
  __shared__ unsigned char memory[kThreads * sizeof(W)];
  W* lanes = reinterpret_cast<W*>(memory);
  const std::int64_t unit = blockIdx.x;
  const std::int64_t pair = blockIdx.y * std::int64_t{kPairsOfBlock} + threadIdx.x / kGramLanes;
  const int lane = static_cast<int>(threadIdx.x) % kGramLanes;
  const std::int64_t end = min(tiles, (unit + 1) * std::int64_t{kTilesOfUnit});
  W sum{};
  for (std::int64_t tile = unit * std::int64_t{kTilesOfUnit}; pair < pairs.count() && tile < end;
       ++tile)
    sum = next_sum(sum, parts[(tile * pairs.count() + pair) * kGramLanes + lane]);
  lanes[threadIdx.x] = sum;
  __syncthreads();
  if (pair < pairs.count() && lane == 0)
    units[unit * pairs.count() + pair] = lanes_of(lanes + threadIdx.x);
}

/// The same by the other variants, whose lanes add one product after the other.
template <class T>
__global__ void __launch_bounds__(kThreads)
    compare_sums(Columns<T> x, Columns<T> y, std::int64_t tiles, Pairs pairs, std::uint32_t variant,
                 DoubleDouble* units) {
  __shared__ unsigned char memory[kThreads * sizeof(DoubleDouble)];
  auto* lanes = reinterpret_cast<DoubleDouble*>(memory);
  const std::int64_t unit = blockIdx.x;
  const std::int64_t pair = blockIdx.y * std::int64_t{kPairsOfBlock} + threadIdx.x / kGramLanes;
  const int lane = static_cast<int>(threadIdx.x) % kGramLanes;
  DoubleDouble sum;
  std::int64_t i = 0;
  std::int64_t j = 0;
  if (pair < pairs.count()) pairs.locate(pair, i, j);
  const std::int64_t end = min(tiles * kGramTileRows, (unit + 1) * kGramUnitRows);
  for (std::int64_t row = unit * kGramUnitRows + lane; pair < pairs.count() && row < end;
       row += kGramLanes) {
    const DoubleDouble product =
        two_product(x.template at<double>(row, i), y.template at<double>(row, j));
    if (variant == kCray) {
      sum = add_cray(sum, product);
    } else if (variant == kIeee) {
      sum = sum + product;
    } else {
      const DoubleDouble s = two_sum(sum.hi, product.hi);
      sum = DoubleDouble{s.hi, rounded_sum(sum.lo, rounded_sum(s.lo, product.lo))};
    }
  }
  lanes[threadIdx.x] = variant == kDot2 ? fast_two_sum(sum.hi, sum.lo) : sum;
  __syncthreads();
  if (pair < pairs.count() && lane == 0)
    units[unit * pairs.count() + pair] = lanes_of(lanes + threadIdx.x);
}

// ---- substitution

__device__ float quotient(float a, float b) { return rounded_quotient(a, b); }
__device__ double quotient(double a, double b) { return rounded_quotient(a, b); }
__device__ DoubleDouble quotient(const DoubleDouble& a, const DoubleDouble& b) { return a / b; }

/// A row of X·R⁻¹ a thread; `q` (rows × n, packed) holds it unrounded, `to` rounded to T.
template <class S, class T>
__global__ void __launch_bounds__(kThreads)
    solve_rows(Columns<T> x, const S* r, std::int64_t r_ld, S* q, T* to, std::int64_t to_ld) {
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (row >= x.rows) return;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    S acc(x.template at<RealOf<S>>(row, j));
    for (std::int64_t i = 0; i < j; ++i) acc = next(acc, q[row + i * x.rows], r[i + j * r_ld]);
    acc = quotient(acc, r[j + j * r_ld]);
    q[row + j * x.rows] = acc;
    to[row + j * to_ld] = static_cast<T>(leading(acc));
  }
}

// ---- small ones

template <class W>
__global__ void __launch_bounds__(kThreads)
    sum_blocks(W* c, std::int64_t ld_c, const W* a, std::int64_t ld_a, const W* b,
               std::int64_t ld_b, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t k = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; k < rows * cols;
       k += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t i = k % rows;
    const std::int64_t j = k / rows;
    c[i + j * ld_c] = sum_of(a[i + j * ld_a], b[i + j * ld_b]);
  }
}

__device__ double larger(double a, double b) { return a != a || a > b ? a : b; }

template <class T>
__global__ void __launch_bounds__(kThreads) largest_of_columns(double* m, Columns<T> x) {
  __shared__ double of_threads[kThreads];
  double largest = 0;
  for (std::int64_t row = threadIdx.x; row < x.rows; row += kThreads)
    largest = larger(fabs(x.template at<double>(row, blockIdx.x)), largest);
  of_threads[threadIdx.x] = largest;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      of_threads[threadIdx.x] = larger(of_threads[threadIdx.x], of_threads[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) m[blockIdx.x] = of_threads[0];
}

/// c is 0 outside of the range.
template <class T>
__global__ void __launch_bounds__(kThreads)
    clear_outside(T* c, std::int64_t rows, ColumnRange range) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i < rows && (i < range.first || i >= range.first + range.count)) c[i] = T(0);
}

__device__ float root_of(float x) { return __fsqrt_rn(x); }
__device__ double root_of(double x) { return __dsqrt_rn(x); }

template <class T>
__global__ void __launch_bounds__(kThreads)
    update_column(T* v, std::int64_t rows, std::int64_t ld, const T* c, ColumnRange range,
                  bool normalize) {
  const std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (row >= rows) return;
  T* element = v + row + range.j * ld;
  if (normalize) {
    const T length = root_of(c[range.j]);
    if (length > T(0)) *element = rounded_quotient(*element, length);
    return;
  }
  T value = *element;
  for (std::int64_t i = range.first; i < range.first + range.count; ++i)
    value = fused(-c[i], v[row + i * ld], value);
  *element = value;
}

// ---- calls

/// Bytes of the exponents, the parts of a sum and the sums of units.
template <class W>
std::int64_t sum_bytes(std::int64_t rows, std::int64_t columns, const Pairs& pairs) {
  return aligned(unit_bytes<W>(rows, pairs)) +
         aligned(tiles_of(rows) * columns * std::int64_t{sizeof(int)}) +
         tiles_of(rows) * pairs.count() * kGramLanes * std::int64_t{sizeof(W)};
}

/// Whether sums of units come from kernels of their own, and take nothing beside.
template <class W, class T>
constexpr bool reads_once(bool symmetric) {
  return std::is_same_v<W, double> ||
         (symmetric && std::is_same_v<W, DoubleDouble> && std::is_same_v<T, double>);
}

/// Bytes that add_up() takes.
template <class W, class T>
std::int64_t memory_of(std::int64_t rows, std::int64_t columns, const Pairs& pairs) {
  return reads_once<W, T>(pairs.symmetric) ? unit_bytes<W>(rows, pairs)
                                           : sum_bytes<W>(rows, columns, pairs);
}

/// B ← xᵀy, what it takes in `memory`; variant: kExtraction, in a shape or not, or kDigitSums where
/// symmetric.
template <class W, class T>
void add_up(cudaStream_t stream, const Columns<T>& x, const Columns<T>& y, const BlockView& b,
            bool symmetric, std::byte* memory, std::uint32_t variant = kExtraction) {
  const Pairs pairs{b.rows, b.cols, symmetric};
  const std::int64_t units = units_of(x.rows);
  if (units == 0) return add_units(stream, reinterpret_cast<W*>(memory), 0, pairs, b);
  const std::int64_t tiles = tiles_of(x.rows);
  const std::int64_t columns = x.cols + (symmetric ? 0 : y.cols);
  auto* sums = reinterpret_cast<W*>(memory);
  auto* fields = reinterpret_cast<int*>(memory + aligned(unit_bytes<W>(x.rows, pairs)));
  auto* parts = reinterpret_cast<W*>(reinterpret_cast<std::byte*>(fields) +
                                     aligned(tiles * columns * std::int64_t{sizeof(int)}));
  int* fields_y = symmetric ? fields : fields + tiles * x.cols;
  if constexpr (reads_once<W, T>(true)) {
    if (symmetric || reads_once<W, T>(false)) {
      if constexpr (std::is_same_v<W, double>) {
        symmetric ? tensor_unit_sums(stream, x, kTilesOfUnit, sums)
                  : tensor_unit_sums(stream, x, y, kTilesOfUnit, sums);
      } else {
        variant == kDigitSums ? digit_unit_sums(stream, x, kTilesOfUnit, sums)
                              : wide_unit_sums(stream, x, kTilesOfUnit, sums, variant);
      }
      return add_units(stream, sums, units, pairs, b);
    }
  }
  if (std::is_same_v<W, DoubleDouble>) {
    tile_fields<<<blocks_for(tiles * x.cols * kWarpSize, kThreads), kThreads, 0, stream>>>(x, tiles,
                                                                                           fields);
    if (!symmetric)
      tile_fields<<<blocks_for(tiles * y.cols * kWarpSize, kThreads), kThreads, 0, stream>>>(
          y, tiles, fields_y);
  }
  const unsigned groups = blocks_for(pairs.count(), kPairsOfBlock);
  const dim3 grid(static_cast<unsigned>(tiles), std::min(groups, 65535U));
  tile_parts<W><<<grid, kThreads, 0, stream>>>(x, y, pairs, fields, fields_y, parts);
  fold_parts<<<dim3(static_cast<unsigned>(units), groups), kThreads, 0, stream>>>(parts, tiles,
                                                                                  pairs, sums);
  require_cuda(cudaGetLastError(), "gram");
  add_units(stream, sums, units, pairs, b);
}

/// B ← XᵀY by one of the variants for comparison; symmetric: Y is X.
template <class T>
void compare(CudaQueue& queue, const Columns<T>& x, const Columns<T>& y, bool symmetric,
             std::uint32_t variant, const BlockView& b) {
  const Pairs pairs{b.rows, b.cols, symmetric};
  const std::int64_t units = units_of(x.rows);
  auto* sums = static_cast<DoubleDouble*>(queue.scratch(unit_bytes<DoubleDouble>(x.rows, pairs)));
  const dim3 grid(static_cast<unsigned>(units), blocks_for(pairs.count(), kPairsOfBlock));
  if (units > 0)
    compare_sums<<<grid, kThreads, 0, queue.stream()>>>(x, y, tiles_of(x.rows), pairs, variant,
                                                        sums);
  require_cuda(cudaGetLastError(), "gram");
  add_units(queue.stream(), sums, units, pairs, b);
}

}  // namespace

void gram_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  const std::uint32_t variant = parameters.variant;
  const bool shaped = variant == shaped_extraction(shape_of_variant(variant));
  require_variant(gram, shaped ? kExtraction : other_sums(variant), kDot2);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[1].cols == 0) continue;
    const Pairs pairs{x[0].rows, x[0].cols, true};
    with_native(x[1].element, [&](auto* t) {
      using T = Pointee<decltype(t)>;
      const Columns<T> columns = columns_of<T>(x[1], &x[2]);
      if (x[0].element == Element::dd && !shaped && variant != kDigitSums)
        return compare(cuda, columns, columns, true, variant, x[0]);
      with_type(x[0].element, [&](auto* w) {
        using W = Pointee<decltype(w)>;
        const std::int64_t bytes = memory_of<W, T>(x[1].rows, x[1].cols, pairs);
        auto* memory = static_cast<std::byte*>(cuda.scratch(std::max<std::int64_t>(bytes, 1)));
        add_up<W>(cuda.stream(), columns, columns, x[0], true, memory, variant);
      });
    });
  }
}

namespace {

/// B ← the Gram matrix of X·R⁻¹, all in doubles, V read once.
void sum_solved(CudaQueue& queue, const BlockView& b, const BlockView& v, const BlockView& r,
                const BlockView& d) {
  const Pairs pairs{v.cols, v.cols, true};
  const std::int64_t beside = aligned(solved_sums_bytes());
  auto* memory = static_cast<std::byte*>(queue.scratch(beside + unit_bytes<double>(v.rows, pairs)));
  auto* units = reinterpret_cast<double*>(memory + beside);
  solved_unit_sums(queue.stream(), columns_of<double>(v, &d), static_cast<const double*>(r.data),
                   r.ld, memory, units);
  add_units(queue.stream(), units, units_of(v.rows), pairs, b);
}

/// V ← X·R⁻¹ where `stored`, B ← the Gram matrix of it where there is a B.
template <class S, class T>
void solve_call(CudaQueue& queue, const BlockView* b, const BlockView& v, const BlockView& r,
                const BlockView& d, bool stored, std::uint32_t variant) {
  constexpr bool kDoubles = std::is_same_v<S, double> && std::is_same_v<T, double>;
  if constexpr (kDoubles) {
    if (!stored && b->element == Element::fp64 && v.cols <= kSolvedSumsColumns)
      return sum_solved(queue, *b, v, r, d);
  }
  const bool shared = !kDoubles && solves_in_shared_memory(v.cols, r.element);
  const std::int64_t elements = v.rows * v.cols;
  const std::int64_t beside =  // what is not rounded yet, or a factor that is prepared
      aligned(kDoubles ? tensor_solve_bytes(v.cols)
                       : (shared ? 0 : elements * std::int64_t{sizeof(S)}));
  const std::int64_t rounded = stored ? 0 : aligned(elements * std::int64_t{sizeof(T)});
  const Pairs pairs{v.cols, v.cols, true};
  const std::int64_t sums =
      b == nullptr ? 0 : memory_of<DoubleDouble, T>(v.rows, v.cols, pairs);  // the most
  auto* memory =
      static_cast<std::byte*>(queue.scratch(std::max<std::int64_t>(beside + rounded + sums, 1)));
  T* to = stored ? static_cast<T*>(v.data) : reinterpret_cast<T*>(memory + beside);
  const std::int64_t to_ld = stored ? v.ld : v.rows;
  const Columns<T> x = columns_of<T>(v, &d);
  const auto* factor = static_cast<const S*>(r.data);
  if constexpr (kDoubles) {
    tensor_solve(queue.stream(), x, factor, r.ld, to, to_ld, memory);
  } else if (shared) {
    solve_shared(queue.stream(), x, factor, r.ld, to, to_ld);
  } else if (v.rows > 0) {
    solve_rows<<<blocks_for(v.rows, kThreads), kThreads, 0, queue.stream()>>>(
        x, factor, r.ld, reinterpret_cast<S*>(memory), to, to_ld);
    require_cuda(cudaGetLastError(), "solve_right");
  }
  if (b == nullptr) return;
  const Columns<T> q{to, v.rows, v.cols, to_ld, nullptr};
  with_type(b->element, [&](auto* w) {
    add_up<Pointee<decltype(w)>>(queue.stream(), q, q, *b, true, memory + beside + rounded,
                                 variant);
  });
}

void solve(CudaQueue& queue, const BlockView* b, const BlockView& v, const BlockView& r,
           const BlockView& d, bool stored, std::uint32_t variant = kExtraction) {
  if (v.cols == 0) return;
  with_native(v.element, [&](auto* t) {
    with_type(r.element, [&](auto* s) {
      using S = Pointee<decltype(s)>;
      using T = Pointee<decltype(t)>;
      if constexpr (sizeof(S) == sizeof(T) || sizeof(S) == 2 * sizeof(T))
        solve_call<S, T>(queue, b, v, r, d, stored, variant);
    });
  });
}

}  // namespace

void apply_gram_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(apply_gram, other_sums(parameters.variant), kExtraction);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    solve(static_cast<CudaQueue&>(queue), &x[0], x[1], x[2], x[3], false, parameters.variant);
  }
}

void solve_right_gram_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(solve_right_gram, other_sums(parameters.variant), kExtraction);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    solve(static_cast<CudaQueue&>(queue), &x[0], x[1], x[2], x[3], true, parameters.variant);
  }
}

void solve_right_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(solve_right, parameters.variant, 0);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    solve(static_cast<CudaQueue&>(queue), nullptr, x[0], x[1], x[2], true);
  }
}

void solve_right_twice_cuda(Queue& queue, const KernelCalls& calls,
                            const KernelParameters& parameters) {
  require_variant(solve_right_twice, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const auto data = [](const BlockView& block) { return static_cast<const double*>(block.data); };
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const BlockView& v = x[0];
    tensor_solve_twice(cuda.stream(), columns_of<double>(v, &x[2]), data(x[1]), x[1].ld, data(x[4]),
                       data(x[3]), x[3].ld, static_cast<double*>(v.data), v.ld,
                       cuda.scratch(std::max<std::int64_t>(2 * tensor_solve_bytes(v.cols), 1)));
  }
}

void inner_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(inner, parameters.variant, kDot2);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[0].rows == 0 || x[0].cols == 0) continue;
    const Pairs pairs{x[0].rows, x[0].cols, false};
    with_native(x[1].element, [&](auto* t) {
      using T = Pointee<decltype(t)>;
      const Columns<T> left = columns_of<T>(x[1], nullptr);
      const Columns<T> right = columns_of<T>(x[2], nullptr);
      if (x[0].element == Element::dd && parameters.variant != kExtraction)
        return compare(cuda, left, right, false, parameters.variant, x[0]);
      with_type(x[0].element, [&](auto* w) {
        using W = Pointee<decltype(w)>;
        auto* memory = static_cast<std::byte*>(cuda.scratch(
            std::max<std::int64_t>(memory_of<W, T>(x[1].rows, x[1].cols + x[2].cols, pairs), 1)));
        add_up<W>(cuda.stream(), left, right, x[0], false, memory);
      });
    });
  }
}

void gram_sum_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gram_sum, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const std::int64_t count = x[0].rows * x[0].cols;
    if (count == 0) continue;
    with_type(x[0].element, [&](auto* w) {
      using W = Pointee<decltype(w)>;
      sum_blocks<<<std::min(blocks_for(count, kThreads), 65535U), kThreads, 0, stream>>>(
          static_cast<W*>(x[0].data), x[0].ld, static_cast<const W*>(x[1].data), x[1].ld,
          static_cast<const W*>(x[2].data), x[2].ld, x[0].rows, x[0].cols);
    });
    require_cuda(cudaGetLastError(), "gram_sum");
  }
}

void column_max_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(column_max, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    if (x[1].cols == 0) continue;
    with_native(x[1].element, [&](auto* t) {
      largest_of_columns<<<static_cast<unsigned>(x[1].cols), kThreads, 0, stream>>>(
          static_cast<double*>(x[0].data), columns_of<Pointee<decltype(t)>>(x[1], nullptr));
    });
    require_cuda(cudaGetLastError(), "column_max");
  }
}

void column_dots_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(column_dots, parameters.variant, kNormalize - 1);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const ColumnRange range = column_range(parameters.variant);
  for (std::int64_t k = 0; k < calls.count(); ++k) {
    const BlockView& c = calls[k][0];
    const BlockView& v = calls[k][1];
    if (c.rows == 0) continue;
    with_native(v.element, [&](auto* t) {
      using T = Pointee<decltype(t)>;
      clear_outside<<<blocks_for(c.rows, kThreads), kThreads, 0, cuda.stream()>>>(
          static_cast<T*>(c.data), c.rows, range);
      require_cuda(cudaGetLastError(), "column_dots");
      if (range.count == 0) return;
      const T* data = static_cast<const T*>(v.data);
      const Columns<T> x{data + range.first * v.ld, v.rows, range.count, v.ld, nullptr};
      const Columns<T> y{data + range.j * v.ld, v.rows, 1, v.ld, nullptr};
      BlockView part = c;
      part.data = static_cast<T*>(c.data) + range.first;
      part.rows = range.count;
      const Pairs pairs{range.count, 1, false};
      auto* memory = static_cast<std::byte*>(
          cuda.scratch(std::max<std::int64_t>(memory_of<T, T>(v.rows, range.count + 1, pairs), 1)));
      add_up<T>(cuda.stream(), x, y, part, false, memory);
    });
  }
}

void column_update_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(column_update, parameters.variant, 2 * kNormalize - 1);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t k = 0; k < calls.count(); ++k) {
    const BlockView& v = calls[k][0];
    const BlockView& c = calls[k][1];
    if (v.rows == 0 || v.cols == 0) continue;
    with_native(v.element, [&](auto* t) {
      using T = Pointee<decltype(t)>;
      update_column<<<blocks_for(v.rows, kThreads), kThreads, 0, stream>>>(
          static_cast<T*>(v.data), v.rows, v.ld, static_cast<const T*>(c.data),
          column_range(parameters.variant), (parameters.variant & kNormalize) != 0);
    });
    require_cuda(cudaGetLastError(), "column_update");
  }
}

}  // namespace strata
