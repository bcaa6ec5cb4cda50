// The Matérn covariance on a GPU.
//
// A thread computes kRowsOfThread elements of a few columns after others: neighbouring threads have
// neighbouring rows, so that writes coalesce, the coordinates of its rows stay in registers and
// those of a column are one load for the block. Distance and correlation are those of
// covariance_cuda.hpp.
//
// Writing is what should bound it. A double takes some 40 operations in FP64. For single precision
// from coordinates in double only the square of the distance over range is formed in FP64, where
// coordinates cancel; root, exponential and polynomial follow in FP32. With u = 2^-24 the root of
// the rounded square is good to 1.5u relative, so the exponential of −x to (2 + 1.5x)u, and with
// variance, polynomial and product the element to 4(1 + x)u, x = distance / range.

#include "kernels/covariance/covariance_cuda.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/backend/operand.hpp"

namespace strata {
namespace {

using covariance_gpu::Common;
using covariance_gpu::kThreads;

constexpr int kRowsOfThread = 2;  // kThreads apart
constexpr int kColsAtOnce = 2;    // with its rows four elements of a thread at once
constexpr int kColsOfBlock = 64;  // one after the other
static_assert(kColsOfBlock % kColsAtOnce == 0);

template <class T, class Distance, class Correlation>
__global__ void __launch_bounds__(kThreads)
    covariance_kernel(BlockView out, Distance distance, Correlation correlation, double nugget) {
  correlation.begin();
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads * kRowsOfThread) + threadIdx.x;
  typename Distance::Point rows[kRowsOfThread];
#pragma unroll
  for (int r = 0; r < kRowsOfThread; ++r) {  // a thread without a row computes the last one, too
    rows[r] = distance.row(min(first + r * kThreads, out.rows - 1));
  }
  // Column that has the nugget in the first row.
  const std::int64_t diagonal = out.row + first - out.col;
  for (std::int64_t start = static_cast<std::int64_t>(blockIdx.y) * kColsOfBlock; start < out.cols;
       start += static_cast<std::int64_t>(gridDim.y) * kColsOfBlock) {
    const std::int64_t end = min(start + kColsOfBlock, out.cols);
    T* column = static_cast<T*>(out.data) + start * out.ld;
    const auto make = [&]<int kCols>(std::int64_t j, std::integral_constant<int, kCols>) {
      typename Distance::Point cols[kCols];
      typename Correlation::Real c[kRowsOfThread][kCols];
#pragma unroll
      for (int k = 0; k < kCols; ++k) cols[k] = distance.col(j + k);
      covariance_gpu::elements(distance, correlation, rows, cols, c);
#pragma unroll
      for (int k = 0; k < kCols; ++k, column += out.ld) {
#pragma unroll
        for (int r = 0; r < kRowsOfThread; ++r) {
          const std::int64_t i = first + r * kThreads;
          if (j + k == diagonal + r * kThreads)
            c[r][k] += static_cast<typename Correlation::Real>(nugget);
          if (i < out.rows) column[i] = static_cast<T>(c[r][k]);
        }
      }
    };
    std::int64_t j = start;
    for (; j + kColsAtOnce <= end; j += kColsAtOnce)
      make(j, std::integral_constant<int, kColsAtOnce>());
    for (; j < end; ++j) make(j, std::integral_constant<int, 1>());
  }
}

template <class T, class Distance, class Correlation>
void launch(const Common& what, const BlockView& out, const Distance& distance,
            const Correlation& correlation) {
  constexpr std::int64_t rows = kThreads * kRowsOfThread;
  const dim3 blocks(static_cast<unsigned>((out.rows + rows - 1) / rows),
                    static_cast<unsigned>(std::min<std::int64_t>(
                        (out.cols + kColsOfBlock - 1) / kColsOfBlock, 65535)));
  covariance_kernel<T>
      <<<blocks, kThreads, 0, what.stream>>>(out, distance, correlation, what.nugget());
  require_cuda(cudaGetLastError(), "covariance");
}

template <class T, class X>
void compute(const Common& what, const BlockView& out, const BlockView& p, const BlockView& q) {
  if (out.rows == 0 || out.cols == 0) return;
  covariance_gpu::with_distance<X>(what, p, q, [&]<class Distance>(const Distance& distance) {
    const auto use = [&](const auto& correlation) { launch<T>(what, out, distance, correlation); };
    if constexpr (std::is_same_v<T, float> && std::is_same_v<X, double> && Distance::kInSingle) {
      const double variance = what.parameters.variance;
      if (variance > 0x1p-100 && variance < 0x1p100)
        return covariance_gpu::with_correlation<float>(what, use);
    }
    covariance_gpu::with_correlation<double>(what, use);
  });
}

}  // namespace

template <class T, class X>
void covariance_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(covariance, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const CovarianceParameters& values = parameters_of(parameters);
  void* table =
      covariance_gpu::needs_table(values) ? cuda.scratch(covariance_gpu::kTableBytes) : nullptr;
  const Common what = covariance_gpu::common_of(cuda.stream(), values, static_cast<double*>(table));
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    compute<T, X>(what, calls[i][0], calls[i][1], calls[i][2]);
  }
}

template void covariance_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_cuda<float, double>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
