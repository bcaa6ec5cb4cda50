// Steps of recurrences by columns, on a GPU.
//
// Method: everything is bound by memory, and blocks are small, so one launch carries out up to 32
// calls of a task, whose operands it is given by value. A block of threads takes a column of a
// call. In a dot product each thread adds up every 256th row, then sums are added two by two, each
// with what was lost in it: trees of a fixed shape, so the bits of a column do not depend on what
// is beside it.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/krylov/paired_cuda.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpSize = 32;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kCallsAtOnce = 32;  // 32 · 3 operands of 24 bytes, of the 4 KiB that a launch takes
constexpr unsigned kColumnsMost = 65535;

struct Matrix {
  double* data;
  std::int64_t rows;
  std::int64_t ld;

  __device__ double* column(std::int64_t j) const { return data + j * ld; }
};

Matrix matrix(const BlockView& x) { return {static_cast<double*>(x.data), x.rows, x.ld}; }

/// Operands of some calls. All blocks of a task have the same number of columns.
struct Calls {
  Matrix x[kCallsAtOnce][3];
  std::int64_t cols;
};

/// Launches `kernel` for the calls, in blocks of threads for columns and calls.
void launch(void (*kernel)(Calls, std::uint32_t), Queue& queue, const KernelCalls& calls,
            std::uint32_t variant, const char* what) {
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  const int operands = calls.operands;
  for (std::int64_t first = 0; first < calls.count();) {
    Calls some{};
    some.cols = calls[first][0].cols;
    int count = 0;
    for (; count < kCallsAtOnce && first + count < calls.count(); ++count) {
      const BlockView* of_call = calls[first + count];
      if (of_call[0].cols != some.cols) break;
      for (int k = 0; k < operands; ++k) some.x[count][k] = matrix(of_call[k]);
    }
    first += count;
    if (some.cols == 0) continue;
    const dim3 blocks(static_cast<unsigned>(std::min<std::int64_t>(some.cols, kColumnsMost)),
                      static_cast<unsigned>(count));
    kernel<<<blocks, kThreads, 0, stream>>>(some, variant);
    require_cuda(cudaGetLastError(), what);
  }
}

/// Calls element(i, j) for the elements of the first operand that are this thread's.
template <class F>
__device__ void each_element(const Calls& calls, const F& element) {
  const Matrix& first = calls.x[blockIdx.y][0];
  for (std::int64_t j = blockIdx.x; j < calls.cols; j += gridDim.x) {
    for (std::int64_t i = threadIdx.x; i < first.rows; i += kThreads) element(i, j);
  }
}

__global__ void __launch_bounds__(kThreads)
    quotient_kernel(const __grid_constant__ Calls calls, std::uint32_t) {
  const Matrix* x = calls.x[blockIdx.y];
  each_element(calls, [&](std::int64_t i, std::int64_t j) {
    x[0].column(j)[i] = rounded_quotient(x[1].column(j)[i], *x[2].column(j));
  });
}

__global__ void __launch_bounds__(kThreads)
    start_kernel(const __grid_constant__ Calls calls, std::uint32_t) {
  const Matrix* x = calls.x[blockIdx.y];
  each_element(calls, [&](std::int64_t i, std::int64_t j) {
    x[0].column(j)[i] = x[2].column(j)[i];
    x[1].column(j)[i] = 0;
  });
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(const __grid_constant__ Calls calls, std::uint32_t) {
  const Matrix* x = calls.x[blockIdx.y];
  each_element(calls,
               [&](std::int64_t i, std::int64_t j) { x[0].column(j)[i] = x[1].column(j)[i]; });
}

__global__ void __launch_bounds__(kThreads)
    excess_kernel(const __grid_constant__ Calls calls, std::uint32_t) {
  const Matrix* x = calls.x[blockIdx.y];
  each_element(calls, [&](std::int64_t i, std::int64_t j) {
    double& y = x[0].column(j)[i];
    y = rounded_sum(-y, -x[1].column(j)[i]);
  });
}

__global__ void __launch_bounds__(kThreads)
    subtract_kernel(const __grid_constant__ Calls calls, std::uint32_t) {
  const Matrix* x = calls.x[blockIdx.y];
  each_element(calls, [&](std::int64_t i, std::int64_t j) {
    double& y = x[0].column(j)[i];
    y = fused(-*x[2].column(j), x[1].column(j)[i], y);
  });
}

/// A sum and what was lost in it.
struct Kept {
  double sum = 0;
  double lost = 0;

  __device__ void add(double value, double lost_before) {
    const DoubleDouble next = two_sum(sum, value);
    sum = next.hi;
    lost = rounded_sum(lost, rounded_sum(next.lo, lost_before));
  }
};

/// The sum over the threads of a warp, in its first thread.
__device__ Kept sum_of_warp(Kept kept) {
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2) {
    const double sum = __shfl_down_sync(0xffffffffU, kept.sum, half);
    const double lost = __shfl_down_sync(0xffffffffU, kept.lost, half);
    kept.add(sum, lost);
  }
  return kept;
}

__global__ void __launch_bounds__(kThreads)
    dots_kernel(const __grid_constant__ Calls calls, std::uint32_t variant) {
  __shared__ Kept of_warps[kWarps];
  const Matrix* x = calls.x[blockIdx.y];
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (std::int64_t j = blockIdx.x; j < calls.cols; j += gridDim.x) {
    const std::int64_t of_x = paired_column(j, calls.cols, variant);
    const double* a = of_x < 0 ? nullptr : x[1].column(of_x);
    const double* b = x[2].column(j);
    const std::int64_t rows = of_x < 0 ? 0 : x[2].rows;
    Kept mine;
    for (std::int64_t i = threadIdx.x; i < rows; i += kThreads) {
      const DoubleDouble product = two_product(a[i], b[i]);
      mine.add(product.hi, product.lo);
    }
    mine = sum_of_warp(mine);
    if (lane == 0) of_warps[warp] = mine;
    __syncthreads();
    if (warp == 0) {
      const Kept all = sum_of_warp(lane < kWarps ? of_warps[lane] : Kept{});
      if (lane == 0) {
        x[0].column(j)[0] = all.sum;
        x[0].column(j)[1] = all.lost;
      }
    }
    __syncthreads();  // before of_warps is written for the next column
  }
}

/// Parts of one sum, as many as a launch takes.
constexpr int kPartsAtOnce = 128;
struct Parts {
  const double* data[kPartsAtOnce];
  std::int64_t ld[kPartsAtOnce];
  int count;
};

/// s_j is not rounded before the last part: what was lost is in `lost`, where there are more.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(double* s, std::int64_t s_ld, std::int64_t cols, double* lost,
               const __grid_constant__ Parts parts, bool begins, bool ends) {
  const std::int64_t j = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (j >= cols) return;
  Kept all;
  if (!begins) all = {s[j * s_ld], lost[j]};
  for (int k = 0; k < parts.count; ++k) {
    const double* p = parts.data[k] + j * parts.ld[k];
    all.add(p[0], p[1]);
  }
  s[j * s_ld] = ends ? rounded_sum(all.sum, all.lost) : all.sum;
  if (!ends) lost[j] = all.lost;
}

}  // namespace

void paired_quotient_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(paired_quotient, parameters.variant, 0);
  launch(quotient_kernel, queue, calls, 0, "paired_quotient");
}

void paired_start_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_start, parameters.variant, 0);
  launch(start_kernel, queue, calls, 0, "paired_start");
}

void paired_gather_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(paired_gather, parameters.variant, 0);
  std::vector<BlockView> pieces;
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    for (int k = 1; k < calls.operands; ++k) {
      const SharedRows rows = shared_rows(x[0], x[k]);
      if (rows.count == 0) continue;
      BlockView to = x[0];
      to.data = static_cast<double*>(to.data) + rows.in_g;
      to.rows = rows.count;
      BlockView from = x[k];
      from.data = static_cast<double*>(from.data) + rows.in_w;
      from.rows = rows.count;
      pieces.insert(pieces.end(), {to, from});
    }
  }
  launch(copy_kernel, queue, {pieces, 2}, 0, "paired_gather");
}

void paired_excess_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(paired_excess, parameters.variant, 0);
  launch(excess_kernel, queue, calls, 0, "paired_excess");
}

void paired_dots_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_dots, parameters.variant, kPairedWithNext | kPairedWithLast);
  launch(dots_kernel, queue, calls, parameters.variant, "paired_dots");
}

void paired_sum_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_sum, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const std::int64_t cols = x[0].cols;
    if (cols == 0) continue;
    auto* lost = static_cast<double*>(cuda.scratch(cols * std::int64_t{sizeof(double)}));
    for (int first = 1; first < calls.operands; first += kPartsAtOnce) {
      Parts parts{};
      parts.count = std::min(kPartsAtOnce, calls.operands - first);
      for (int k = 0; k < parts.count; ++k) {
        parts.data[k] = static_cast<const double*>(x[first + k].data);
        parts.ld[k] = x[first + k].ld;
      }
      const auto blocks = static_cast<unsigned>((cols + kThreads - 1) / kThreads);
      sum_kernel<<<blocks, kThreads, 0, cuda.stream()>>>(static_cast<double*>(x[0].data), x[0].ld,
                                                         cols, lost, parts, first == 1,
                                                         first + parts.count == calls.operands);
      require_cuda(cudaGetLastError(), "paired_sum");
    }
  }
}

void paired_subtract_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(paired_subtract, parameters.variant, 0);
  launch(subtract_kernel, queue, calls, 0, "paired_subtract");
}

}  // namespace strata
