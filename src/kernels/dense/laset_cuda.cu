// laset on a GPU: a thread an element, neighbouring threads on neighbouring rows.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/laset.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads) laset_kernel(BlockView out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= out.rows) return;
  for (std::int64_t j = blockIdx.y; j < out.cols; j += gridDim.y)
    static_cast<T*>(out.data)[i + j * out.ld] = out.row + i == out.col + j ? T{1} : T{0};
}

}  // namespace

template <class T>
void laset_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(laset, parameters.variant, 0);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView& x = calls[c][0];
    if (x.rows == 0 || x.cols == 0) continue;
    const dim3 blocks(static_cast<unsigned>((x.rows + kThreads - 1) / kThreads),
                      static_cast<unsigned>(std::min<std::int64_t>(x.cols, 65535)));
    laset_kernel<T><<<blocks, kThreads, 0, stream>>>(x);
    require_cuda(cudaGetLastError(), "laset");
  }
}

template void laset_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void laset_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
