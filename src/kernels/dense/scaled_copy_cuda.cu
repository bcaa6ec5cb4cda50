// scaled_copy on a GPU: a thread block takes 256 rows of some columns, neighbouring threads
// neighbouring rows.

#include <algorithm>
#include <limits>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "kernels/dense/scaled_copy.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpSize = 32;
constexpr std::int64_t kColumns = 16;  // of a thread block
constexpr std::int64_t kStripesMax = 65535;

/// What largest_of_column() makes of one number.
template <class N>
__device__ __forceinline__ double size_or_infinity(const N& x) {
  using Real = RealOf<N>;
  constexpr double kMost = std::numeric_limits<Real>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double size = static_cast<double>(lu_cuda::size_of(x));
  if constexpr (is_complex_v<N>) {
    const bool finite = fabs(x.real()) <= std::numeric_limits<Real>::max() &&
                        fabs(x.imag()) <= std::numeric_limits<Real>::max();
    return finite ? fmin(size, kMost) : kInfinity;
  } else {
    return size <= kMost ? size : kInfinity;
  }
}

/// `largest` begins as zero.
template <class N, class A>
__global__ void __launch_bounds__(kThreads)
    scaled_copy_kernel(MatrixView<N> y, double* largest, MatrixView<const A> x,
                       const std::int64_t* of_rows, const std::int64_t* of_columns) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  double most = 0;
  if (i < y.rows) {
    const std::int64_t of_row = of_rows[i];
    for (std::int64_t first = blockIdx.y * kColumns; first < y.cols;
         first += gridDim.y * kColumns) {
#pragma unroll 4
      for (std::int64_t j = first; j < min(first + kColumns, y.cols); ++j) {
        const N element = scaled_element<N>(x.data[i + j * x.ld], of_row + of_columns[j]);
        y.data[i + j * y.ld] = element;
        most = fmax(most, size_or_infinity(element));
      }
    }
  }
  // Numbers that are not negative are ordered as their bits are.
  auto bits = static_cast<unsigned long long>(__double_as_longlong(most));
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2)
    bits = max(bits, __shfl_down_sync(0xffffffffU, bits, half));
  if (threadIdx.x % kWarpSize == 0) atomicMax(reinterpret_cast<unsigned long long*>(largest), bits);
}

}  // namespace

template <class N, class A>
void scaled_copy_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(scaled_copy, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const auto y = matrix_of<N>(x[0]);
    auto* largest = static_cast<double*>(x[1].data);
    require_cuda(cudaMemsetAsync(largest, 0, sizeof(double), stream), "scaled_copy");
    if (y.rows == 0 || y.cols == 0) continue;
    const auto exponents = matrix_of<const std::int64_t>(x[3]);
    const dim3 grid(
        static_cast<unsigned>((y.rows + kThreads - 1) / kThreads),
        static_cast<unsigned>(std::min((y.cols + kColumns - 1) / kColumns, kStripesMax)));
    scaled_copy_kernel<N, A><<<grid, kThreads, 0, stream>>>(y, largest, matrix_of<const A>(x[2]),
                                                            exponents.column(0) + x[2].row,
                                                            exponents.column(1) + x[2].col);
    require_cuda(cudaGetLastError(), "scaled_copy");
  }
}

#define STRATA_SCALED_COPY(N, A) \
  template void scaled_copy_cuda<N, A>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_SCALED_COPY(double, double)
STRATA_SCALED_COPY(float, double)
STRATA_SCALED_COPY(float, float)
STRATA_SCALED_COPY(std::complex<double>, std::complex<double>)
STRATA_SCALED_COPY(std::complex<float>, std::complex<double>)
STRATA_SCALED_COPY(std::complex<float>, std::complex<float>)
#undef STRATA_SCALED_COPY

}  // namespace strata
