// take_diagonal on a GPU: a strided copy in its memory.

#include <complex>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/take_diagonal.hpp"

namespace strata {

template <class T>
void take_diagonal_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(take_diagonal, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const auto d = matrix_of<T>(x[0]);
    const auto a = matrix_of<const T>(x[1]);
    if (d.cols == 0) continue;
    constexpr std::size_t kSize = sizeof(T);
    require_cuda(
        cudaMemcpy2DAsync(d.data, static_cast<std::size_t>(d.ld) * kSize, a.data + x[1].col,
                          static_cast<std::size_t>(a.ld + 1) * kSize, kSize,
                          static_cast<std::size_t>(d.cols), cudaMemcpyDeviceToDevice, stream),
        "take_diagonal");
  }
}

template void take_diagonal_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void take_diagonal_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void take_diagonal_cuda<std::complex<double>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);
template void take_diagonal_cuda<std::complex<float>>(Queue&, const KernelCalls&,
                                                      const KernelParameters&);

}  // namespace strata
