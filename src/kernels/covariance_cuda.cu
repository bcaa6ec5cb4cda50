// The Matérn covariance on a GPU: one thread an element, neighbouring threads on neighbouring rows,
// so that the writes and the reads of the row coordinates coalesce and the column coordinates come
// from the cache. K_ν is that of bessel_k.hpp, with its constants of ν passed by value. The two
// branches of K_ν (x below or above 2) diverge inside a warp only where a column crosses that
// distance.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/bessel_k.hpp"
#include "kernels/covariance.hpp"
#include "kernels/operand.hpp"

namespace strata {
namespace {

constexpr int kRows = 64;  // threads of a block along the rows …
constexpr int kCols = 4;   // … and along the columns

template <class T>
__global__ void covariance_kernel(BlockView out, BlockView p, BlockView q,
                                  CovarianceParameters parameters, BesselOrder order) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kRows + threadIdx.x;
  if (i >= out.rows) return;
  const T* a = static_cast<const T*>(p.data) + i;  // rows × d
  for (std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * kCols + threadIdx.y; j < out.cols;
       j += static_cast<std::int64_t>(gridDim.y) * kCols) {
    const T* b = static_cast<const T*>(q.data) + j;  // cols × d
    double square = 0;
    for (std::int64_t k = 0; k < p.cols; ++k) {
      const double difference = static_cast<double>(a[k * p.ld]) - static_cast<double>(b[k * q.ld]);
      square += difference * difference;
    }
    double c =
        parameters.variance * matern_correlation(order, std::sqrt(square) / parameters.range);
    if (parameters.same_points && out.row + i == out.col + j) c += parameters.nugget;
    static_cast<T*>(out.data)[i + j * out.ld] = static_cast<T>(c);
  }
}

template <class T>
void launch(cudaStream_t stream, const BlockView& out, const BlockView& p, const BlockView& q,
            const CovarianceParameters& parameters, const BesselOrder& order) {
  if (out.rows == 0 || out.cols == 0) return;
  const dim3 threads(kRows, kCols);
  const dim3 blocks(
      static_cast<unsigned>((out.rows + kRows - 1) / kRows),
      static_cast<unsigned>(std::min<std::int64_t>((out.cols + kCols - 1) / kCols, 65535)));
  covariance_kernel<T><<<blocks, threads, 0, stream>>>(out, p, q, parameters, order);
  require_cuda(cudaGetLastError(), "covariance");
}

}  // namespace

template <class T>
void covariance_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(covariance, parameters.variant, 0);
  const CovarianceParameters& values = parameters_of(parameters);
  const BesselOrder order = bessel_order(values.smoothness);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    launch<T>(stream, calls[i][0], calls[i][1], calls[i][2], values, order);
  }
}

template void covariance_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
