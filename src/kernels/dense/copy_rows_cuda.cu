// copy_rows on a GPU: a strided copy in its memory.

#include <complex>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/copy_rows.hpp"

namespace strata {
template <class T>
void copy_rows_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(copy_rows, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const auto from = matrix_of<const T>(x[0]);
    const auto to = matrix_of<T>(x[1]);
    if (to.rows == 0 || to.cols == 0) continue;
    constexpr std::size_t kSize = sizeof(T);
    const T* const first = from.data + (x[1].row - x[0].row);
    require_cuda(
        cudaMemcpy2DAsync(to.data, static_cast<std::size_t>(to.ld) * kSize, first,
                          static_cast<std::size_t>(from.ld) * kSize,
                          static_cast<std::size_t>(to.rows) * kSize,
                          static_cast<std::size_t>(to.cols), cudaMemcpyDeviceToDevice, stream),
        "copy_rows");
  }
}

template void copy_rows_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void copy_rows_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void copy_rows_cuda<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void copy_rows_cuda<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
