// covariance_times on a GPU.
//
// Method: a block of threads takes 128 or 256 rows and one run of columns of C. A thread makes its
// elements of one column after another as covariance_cuda does (covariance_cuda.hpp), and adds each
// to the sums of up to 36 columns of V, which stay in registers. V comes by way of shared memory,
// 64 of its rows at a time, from where all threads of a warp read the same number at once. The sums
// of a run go to scratch memory, and a second kernel subtracts them from Y, run after run: nothing
// is added in an order that depends on the GPU.
//
// Making an element takes some 40 operations in FP64, a column of V one. So V goes in few groups of
// columns, and the last group takes the next wider kernel, which multiplies zeros besides: two
// kernels for it would make C twice. 36 holds the 32 probes of a trace with a few vectors beside.
// From 17 columns on tensor cores multiply, at twice the rate, while the other units make elements:
// a warp makes 32 × 4 of them, each thread those that the instruction takes from it, and V is read
// once for 32 rows.

#include "kernels/covariance/covariance_times.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/backend/operand.hpp"
#include "kernels/covariance/covariance_cuda.hpp"
#include "kernels/dense/tile_product_cuda.hpp"

namespace strata {
namespace {

using covariance_gpu::Common;
using covariance_gpu::kTableBytes;
using covariance_gpu::kThreads;

constexpr int kRun = static_cast<int>(kCovarianceRun);
constexpr int kPiece = 64;  // rows of V in shared memory at once
constexpr int kColsMost = 36;
constexpr std::int64_t kRowsMost = 65536;  // of Y at a time, so that a run fits kSumBytes
constexpr std::int64_t kSumBytes = std::int64_t{32} << 20;  // of sums at a time
static_assert(kRun % kPiece == 0 && kRowsMost * kColsMost * 8 <= kSumBytes);

/// Some rows of Y and some of its columns.
struct Part {
  std::int64_t row = 0;   ///< the first
  std::int64_t rows = 0;  ///< up to kRowsMost
  std::int64_t col = 0;
  int cols = 0;  ///< up to kColsMost
};

template <int kCols, bool kHasRegular>
struct Shape {
  static constexpr int kRowsOfThread = kCols <= 8 ? 2 : 1;  // kThreads apart
  static constexpr int kRows = kThreads * kRowsOfThread;    // of a block
  /// Columns of C: four elements without a branch are chains enough.
  static constexpr int kColsAtOnce = kHasRegular ? 4 / kRowsOfThread : kCols <= 4 ? 2 : 1;
  static_assert(kPiece % kColsAtOnce == 0);
};

/// sums[i + part.rows·(k + part.cols·r)] ← Σ_j c_ij·v_jk over run first_run + r of columns, r the
/// block's second index. `diagonal`: the column that has the nugget in the first row of Y.
template <int kCols, class Distance, class Correlation>
__global__ void __launch_bounds__(kThreads)
    run_sums(double* sums, Part part, std::int64_t first_run, std::int64_t columns,
             Distance distance, Correlation correlation, double nugget, std::int64_t diagonal,
             const double* v, std::int64_t v_ld) {
  using S = Shape<kCols, covariance_gpu::kHasRegular<Distance, Correlation>>;
  __shared__ alignas(16) double of_v[kPiece][kCols];
  correlation.begin();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * S::kRows + threadIdx.x;
  const std::int64_t start = (first_run + blockIdx.y) * kRun;
  const int length = static_cast<int>(min(std::int64_t{kRun}, columns - start));
  typename Distance::Point rows[S::kRowsOfThread];
  int with_nugget[S::kRowsOfThread];
  double sum[S::kRowsOfThread][kCols];
#pragma unroll
  for (int r = 0; r < S::kRowsOfThread; ++r) {
    // A thread without a row computes the last one, too.
    const std::int64_t i = part.row + min(first + r * kThreads, part.rows - 1);
    rows[r] = distance.row(i);
    const std::int64_t at = diagonal + i - start;
    with_nugget[r] = at >= 0 && at < length ? static_cast<int>(at) : -1;
#pragma unroll
    for (int k = 0; k < kCols; ++k) sum[r][k] = 0;
  }
  for (int piece = 0; piece < length; piece += kPiece) {
    const int count = min(kPiece, length - piece);
    __syncthreads();  // the piece before is no longer read
    for (int e = static_cast<int>(threadIdx.x); e < kPiece * kCols; e += kThreads) {
      const int j = e % kPiece;
      const int k = e / kPiece;
      of_v[j][k] = j < count && k < part.cols ? v[start + piece + j + (part.col + k) * v_ld] : 0.0;
    }
    __syncthreads();
    const auto add = [&]<int kAtOnce>(int j, std::integral_constant<int, kAtOnce>) {
      typename Distance::Point cols[kAtOnce];
      typename Correlation::Real c[S::kRowsOfThread][kAtOnce];
#pragma unroll
      for (int q = 0; q < kAtOnce; ++q) cols[q] = distance.col(start + piece + j + q);
      covariance_gpu::elements(distance, correlation, rows, cols, c);
#pragma unroll
      for (int q = 0; q < kAtOnce; ++q) {
#pragma unroll
        for (int r = 0; r < S::kRowsOfThread; ++r) {
          const double factor = piece + j + q == with_nugget[r] ? c[r][q] + nugget : c[r][q];
#pragma unroll
          for (int k = 0; k < kCols; ++k) sum[r][k] = fma(factor, of_v[j + q][k], sum[r][k]);
        }
      }
    };
    int j = 0;
    for (; j + S::kColsAtOnce <= count; j += S::kColsAtOnce)
      add(j, std::integral_constant<int, S::kColsAtOnce>());
    for (; j < count; ++j) add(j, std::integral_constant<int, 1>());
  }
  double* const to = sums + blockIdx.y * (part.rows * part.cols);
#pragma unroll
  for (int r = 0; r < S::kRowsOfThread; ++r) {
    const std::int64_t i = first + r * kThreads;
    if (i >= part.rows) continue;
#pragma unroll
    for (int k = 0; k < kCols; ++k) {
      if (k < part.cols) to[i + k * part.rows] = sum[r][k];
    }
  }
}

/// The same on the tensor cores, for up to 8·kTiles columns. A thread has two of each 16 rows of a
/// warp's 32, one of each 4 columns of C, and the sums of its rows with two of each 8 columns of V.
template <int kTiles, class Distance, class Correlation>
__global__ void __launch_bounds__(kThreads)
    run_sums_on_tensor_cores(double* sums, Part part, std::int64_t first_run, std::int64_t columns,
                             Distance distance, Correlation correlation, double nugget,
                             std::int64_t diagonal, const double* v, std::int64_t v_ld) {
  constexpr int kHeld = 8 * kTiles;
  constexpr int kStride = kHeld + 4;  // the threads of half a warp read 16 banks
  __shared__ alignas(16) double of_v[kPiece][kStride];
  correlation.begin();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int inner = lane % 4;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads +
                             static_cast<std::int64_t>(threadIdx.x) / 32 * 32 + 2 * group;
  const std::int64_t start = (first_run + blockIdx.y) * kRun;
  const int length = static_cast<int>(min(std::int64_t{kRun}, columns - start));
  typename Distance::Point rows[4];
  int with_nugget[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    // A thread without a row computes the last one, too.
    const std::int64_t i = part.row + min(first + r / 2 * 16 + r % 2, part.rows - 1);
    rows[r] = distance.row(i);
    const std::int64_t at = diagonal + i - start;
    with_nugget[r] = at >= 0 && at < length ? static_cast<int>(at) : -1;
  }
  double sum[2][kTiles][4] = {};
  for (int piece = 0; piece < length; piece += kPiece) {
    const int count = min(kPiece, length - piece);
    __syncthreads();  // the piece before is no longer read
    for (int e = static_cast<int>(threadIdx.x); e < kPiece * kHeld; e += kThreads) {
      const int j = e % kPiece;
      const int k = e / kPiece;
      of_v[j][k] = j < count && k < part.cols ? v[start + piece + j + (part.col + k) * v_ld] : 0.0;
    }
    __syncthreads();
    for (int j = inner; j - inner < count; j += 4) {
      // Beyond the last column the last one, times zeros.
      const int column = piece + min(j, count - 1);
      const typename Distance::Point cols[1] = {distance.col(start + column)};
      typename Correlation::Real c[4][1];
      covariance_gpu::elements(distance, correlation, rows, cols, c);
      double factor[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) factor[r] = column == with_nugget[r] ? c[r][0] + nugget : c[r][0];
      __syncwarp();  // elements that are not regular are made by some threads alone
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const double of_column = of_v[j][8 * t + group];
        tile::multiply_add(sum[0][t], factor[0], factor[1], of_column);
        tile::multiply_add(sum[1][t], factor[2], factor[3], of_column);
      }
    }
  }
  double* const to = sums + blockIdx.y * (part.rows * part.cols);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const std::int64_t i = first + r / 2 * 16 + r % 2;
    if (i >= part.rows) continue;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int k = 8 * t + 2 * inner + q;
        if (k < part.cols) to[i + k * part.rows] = sum[r / 2][t][2 * (r % 2) + q];
      }
    }
  }
}

/// A thread for each element of the part of Y.
__global__ void __launch_bounds__(kThreads)
    subtract_sums(double* y, std::int64_t y_ld, Part part, const double* sums, int runs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= part.rows) return;
  const std::int64_t k = blockIdx.y;
  double* const to = y + part.row + i + (part.col + k) * y_ld;
  double value = *to;
#pragma unroll 4
  for (int r = 0; r < runs; ++r)
    value -= sums[i + part.rows * (k + static_cast<std::int64_t>(r) * part.cols)];
  *to = value;
}

/// One call, with what its kernels need besides.
struct Call {
  const Common& what;
  const BlockView* x;
  double* sums;  ///< kSumBytes, or as much as the call needs

  [[nodiscard]] const BlockView& y() const { return x[0]; }
  [[nodiscard]] const BlockView& v() const { return x[3]; }
};

constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// `rows`: of a block of `kernel`.
template <class Kernel, class Distance, class Correlation>
void launch(Kernel* kernel, int rows, const Call& call, const Part& part, const Distance& distance,
            const Correlation& correlation) {
  const std::int64_t columns = call.v().rows;
  const std::int64_t runs = ceiling(columns, kRun);
  const std::int64_t bytes_of_run = part.rows * part.cols * std::int64_t{sizeof(double)};
  const std::int64_t most = std::min<std::int64_t>(kSumBytes / bytes_of_run, 65535);
  cudaStream_t stream = call.what.stream;
  for (std::int64_t first = 0; first < runs; first += most) {
    const std::int64_t count = std::min(most, runs - first);
    const dim3 blocks(static_cast<unsigned>(ceiling(part.rows, rows)),
                      static_cast<unsigned>(count));
    kernel<<<blocks, kThreads, 0, stream>>>(call.sums, part, first, columns, distance, correlation,
                                            call.what.nugget(), call.y().row - call.v().row,
                                            static_cast<const double*>(call.v().data), call.v().ld);
    require_cuda(cudaGetLastError(), "covariance_times");
    subtract_sums<<<dim3(static_cast<unsigned>(ceiling(part.rows, kThreads)),
                         static_cast<unsigned>(part.cols)),
                    kThreads, 0, stream>>>(static_cast<double*>(call.y().data), call.y().ld, part,
                                           call.sums, static_cast<int>(count));
    require_cuda(cudaGetLastError(), "covariance_times");
  }
}

template <class Distance, class Correlation>
void choose_width(const Call& call, const Part& part, const Distance& distance,
                  const Correlation& correlation) {
  const auto on_tensor_cores = [&]<int kTiles>(std::integral_constant<int, kTiles>) {
    launch(run_sums_on_tensor_cores<kTiles, Distance, Correlation>, kThreads, call, part, distance,
           correlation);
  };
  const auto in_registers = [&]<int kCols>(std::integral_constant<int, kCols>) {
    using S = Shape<kCols, covariance_gpu::kHasRegular<Distance, Correlation>>;
    launch(run_sums<kCols, Distance, Correlation>, S::kRows, call, part, distance, correlation);
  };
  if (part.cols > 32) return on_tensor_cores(std::integral_constant<int, 5>());
  if (part.cols > 16) return on_tensor_cores(std::integral_constant<int, 4>());
  if (part.cols > 8) return in_registers(std::integral_constant<int, 16>());
  if (part.cols > 4) return in_registers(std::integral_constant<int, 8>());
  if (part.cols > 1) return in_registers(std::integral_constant<int, 4>());
  in_registers(std::integral_constant<int, 1>());
}

void compute(const Call& call) {
  const auto [data, rows, cols, ld, row, col, element] = call.y();
  if (rows == 0 || cols == 0 || call.v().rows == 0) return;
  covariance_gpu::with_distance<double>(call.what, call.x[1], call.x[2], [&](const auto& distance) {
    covariance_gpu::with_correlation<double>(call.what, [&](const auto& correlation) {
      for (std::int64_t i = 0; i < rows; i += kRowsMost) {
        for (std::int64_t k = 0; k < cols; k += kColsMost) {
          const Part part{i, std::min(kRowsMost, rows - i), k,
                          static_cast<int>(std::min<std::int64_t>(kColsMost, cols - k))};
          choose_width(call, part, distance, correlation);
        }
      }
    });
  });
}

/// Bytes of scratch memory that the sums of a task need.
std::int64_t sum_bytes(const KernelCalls& calls) {
  std::int64_t bytes = 0;
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const std::int64_t rows = std::min(x[0].rows, kRowsMost);
    const std::int64_t cols = std::min<std::int64_t>(x[0].cols, kColsMost);
    const std::int64_t of_run = rows * cols * std::int64_t{sizeof(double)};
    const std::int64_t runs = std::min(ceiling(x[3].rows, kRun), kSumBytes);
    bytes = std::max(bytes, std::min(of_run * runs, kSumBytes));
  }
  return bytes;
}

}  // namespace

void covariance_times_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(covariance_times, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  auto* memory = static_cast<double*>(cuda.scratch(kTableBytes + sum_bytes(calls)));
  const Common what = covariance_gpu::common_of(cuda.stream(), parameters_of(parameters), memory);
  double* sums = memory + kTableBytes / std::int64_t{sizeof(double)};
  for (std::int64_t c = 0; c < calls.count(); ++c) compute({what, calls[c], sums});
}

}  // namespace strata
