// scaled_copy on a GPU: a thread block takes 256 rows of some columns, neighbouring threads
// neighbouring rows.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/scaled_copy.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kColumns = 16;  // of a thread block
constexpr std::int64_t kStripesMax = 65535;

template <class N, class A>
__global__ void __launch_bounds__(kThreads)
    scaled_copy_kernel(MatrixView<N> y, MatrixView<const A> x, const std::int64_t* of_rows,
                       const std::int64_t* of_columns) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= y.rows) return;
  const std::int64_t of_row = of_rows[i];
  for (std::int64_t first = blockIdx.y * kColumns; first < y.cols; first += gridDim.y * kColumns) {
#pragma unroll 4
    for (std::int64_t j = first; j < min(first + kColumns, y.cols); ++j)
      y.data[i + j * y.ld] = scaled_element<N>(x.data[i + j * x.ld], of_row + of_columns[j]);
  }
}

}  // namespace

template <class N, class A>
void scaled_copy_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(scaled_copy, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const auto y = matrix_of<N>(x[0]);
    if (y.rows == 0 || y.cols == 0) continue;
    const auto exponents = matrix_of<const std::int64_t>(x[2]);
    const dim3 grid(
        static_cast<unsigned>((y.rows + kThreads - 1) / kThreads),
        static_cast<unsigned>(std::min((y.cols + kColumns - 1) / kColumns, kStripesMax)));
    scaled_copy_kernel<N, A><<<grid, kThreads, 0, stream>>>(
        y, matrix_of<const A>(x[1]), exponents.column(0) + x[1].row,
        exponents.column(1) + x[1].col);
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
