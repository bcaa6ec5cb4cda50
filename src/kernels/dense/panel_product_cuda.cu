// panel_product on a GPU: with few columns bound by the reading of A, with many of them by cuBLAS.
//
// Method: a thread has a row and every fourth column of the panel, so that neighbouring threads
// read neighbouring rows; the four sums of a row are added in their order. A thread block has a
// column of the adjoint, whose sums are added as trees of fixed shape.

#include <complex>

#include "device/device_cuda.hpp"
#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "kernels/dense/panel_product.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kGroups = 4;
constexpr int kRows = kThreads / kGroups;
constexpr int kWarpSize = 32;
constexpr int kWarps = kThreads / kWarpSize;
constexpr std::int64_t kFewColumns = 16;  // above cuBLAS takes them, where it can

/// Device code has no arithmetic of __complex__, of which std::complex is made.
template <class W>
__device__ __forceinline__ W sum_of(const W& a, const W& b) {
  if constexpr (is_complex_v<W>)
    return W(a.real() + b.real(), a.imag() + b.imag());
  else
    return a + b;
}

/// Σ −a·x in fp64.
template <class W>
struct PlainSum {
  using Value = W;
  W value{};
  __device__ __forceinline__ void take(const W& a, const W& x) {
    lu_cuda::subtract_product(value, a, x);
  }
  __device__ __forceinline__ void add(const PlainSum& other) { value = sum_of(value, other.value); }
  __device__ __forceinline__ void put(W* y, std::int64_t) const { *y = sum_of(*y, value); }
};

/// Σ |a|·x.
template <class W>
struct MagnitudeSum {
  using Value = double;
  double value = 0;
  __device__ __forceinline__ void take(const W& a, double x) {
    if constexpr (is_complex_v<W>)
      value += hypot(a.real(), a.imag()) * x;
    else
      value += fabs(a) * x;
  }
  __device__ __forceinline__ void add(const MagnitudeSum& other) { value += other.value; }
  __device__ __forceinline__ void put(double* y, std::int64_t) const { *y += value; }
};

/// Σ −a·x in double-double, of each part.
template <class W>
struct LongSum {
  using Value = W;
  static constexpr int kParts = is_complex_v<W> ? 2 : 1;
  DoubleDouble part[kParts];
  static __device__ __forceinline__ void subtract(DoubleDouble& sum, double a, double x) {
    sum = add_cray(sum, -two_product(a, x));
  }
  __device__ __forceinline__ void take(const W& a, const W& x) {
    if constexpr (is_complex_v<W>) {
      subtract(part[0], a.real(), x.real());
      subtract(part[0], -a.imag(), x.imag());
      subtract(part[1], a.real(), x.imag());
      subtract(part[1], a.imag(), x.real());
    } else {
      subtract(part[0], a, x);
    }
  }
  __device__ __forceinline__ void add(const LongSum& other) {
    for (int p = 0; p < kParts; ++p) part[p] = add_cray(part[p], other.part[p]);
  }
  /// `low`: from a high part to its low part.
  __device__ __forceinline__ void put(W* y, std::int64_t low) const {
    if constexpr (is_complex_v<W>) {
      const W high_before = y[0];
      const W low_before = y[low];
      const DoubleDouble re =
          add_cray(DoubleDouble(high_before.real(), low_before.real()), part[0]);
      const DoubleDouble im =
          add_cray(DoubleDouble(high_before.imag(), low_before.imag()), part[1]);
      y[0] = W(re.hi, im.hi);
      y[low] = W(re.lo, im.lo);
    } else {
      const DoubleDouble sum = add_cray(DoubleDouble(y[0], y[low]), part[0]);
      y[0] = sum.hi;
      y[low] = sum.lo;
    }
  }
};

template <class A>
__device__ __forceinline__ WideOf<A> widened(const A& a) {
  if constexpr (is_complex_v<A>)
    return WideOf<A>(static_cast<double>(a.real()), static_cast<double>(a.imag()));
  else
    return static_cast<double>(a);
}

/// Columns 0 … kColumns − 1 of X and Y; rows of X are those of the panel's columns.
template <class Sum, int kColumns, class A>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(MatrixView<typename Sum::Value> y, std::int64_t low, MatrixView<const A> a,
                MatrixView<const typename Sum::Value> x) {
  __shared__ __align__(16) unsigned char memory[(kGroups - 1) * kRows * kColumns * sizeof(Sum)];
  Sum* const others = reinterpret_cast<Sum*>(memory);
  const int in_block = static_cast<int>(threadIdx.x) % kRows;
  const int group = static_cast<int>(threadIdx.x) / kRows;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kRows + in_block;
  Sum sum[kColumns];
  if (i < a.rows) {
#pragma unroll 4
    for (std::int64_t j = group; j < a.cols; j += kGroups) {
      const WideOf<A> element = widened(a.data[i + j * a.ld]);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum[c].take(element, x.data[j + c * x.ld]);
    }
  }
  if (group > 0)
    for (int c = 0; c < kColumns; ++c)
      others[((group - 1) * kColumns + c) * kRows + in_block] = sum[c];
  __syncthreads();
  if (group > 0 || i >= a.rows) return;
  for (int c = 0; c < kColumns; ++c) {
    for (int g = 0; g < kGroups - 1; ++g) sum[c].add(others[(g * kColumns + c) * kRows + in_block]);
    sum[c].put(y.data + i + c * y.ld, low);
  }
}

/// The sum over the threads of a warp, in its first thread.
template <class W>
__device__ W sum_of_warp(W value) {
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2) {
    if constexpr (is_complex_v<W>)
      value = sum_of(value, W(__shfl_down_sync(0xffffffffU, value.real(), half),
                              __shfl_down_sync(0xffffffffU, value.imag(), half)));
    else
      value += __shfl_down_sync(0xffffffffU, value, half);
  }
  return value;
}

/// Y has the rows of the panel's columns.
template <int kColumns, class A, class W>
__global__ void __launch_bounds__(kThreads)
    adjoint_kernel(MatrixView<W> y, MatrixView<const A> a, MatrixView<const W> x) {
  __shared__ __align__(16) unsigned char memory[kWarps * kColumns * sizeof(W)];
  W* const of_warps = reinterpret_cast<W*>(memory);
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (std::int64_t j = blockIdx.x; j < a.cols; j += gridDim.x) {
    W sum[kColumns] = {};
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < a.rows; i += kThreads) {
      const W element = conjugate(widened(a.data[i + j * a.ld]));
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        lu_cuda::subtract_product(sum[c], element, x.data[i + c * x.ld]);
    }
    for (int c = 0; c < kColumns; ++c) {
      const W all = sum_of_warp(sum[c]);
      if (lane == 0) of_warps[c * kWarps + warp] = all;
    }
    __syncthreads();
    if (warp == 0) {
      for (int c = 0; c < kColumns; ++c) {
        const W all = sum_of_warp(lane < kWarps ? of_warps[c * kWarps + lane] : W{});
        if (lane == 0) y.data[j + c * y.ld] = sum_of(y.data[j + c * y.ld], all);
      }
    }
    __syncthreads();  // before of_warps is written for the next column
  }
}

/// Calls launch.operator()<columns>(first) for runs of at most `kMost` columns.
template <int kMost, class Launch>
void for_runs(std::int64_t columns, const Launch& launch) {
  std::int64_t c = 0;
  for (; c + kMost <= columns; c += kMost) launch.template operator()<kMost>(c);
  if constexpr (kMost > 2) {
    if (c + 2 <= columns) {
      launch.template operator()<2>(c);
      c += 2;
    }
  }
  if constexpr (kMost > 1) {
    if (c < columns) launch.template operator()<1>(c);
  }
}

template <class Sum, int kMost, class A>
void multiply_rows(cudaStream_t stream, const BlockView* block) {
  using V = typename Sum::Value;
  const auto a = matrix_of<const A>(block[1]);
  const auto x = matrix_of<const V>(block[2]).block(block[1].col, 0, a.cols, block[2].cols);
  const auto y = matrix_of<V>(block[0]);
  const auto blocks = static_cast<unsigned>((a.rows + kRows - 1) / kRows);
  for_runs<kMost>(x.cols, [&]<int kColumns>(std::int64_t c) {
    rows_kernel<Sum, kColumns, A><<<blocks, kThreads, 0, stream>>>(
        y.block(0, c, y.rows, kColumns), x.cols * y.ld, a, x.block(0, c, x.rows, kColumns));
    blas::require_launched("panel_product");
  });
}

template <class A>
void multiply_adjoint(cudaStream_t stream, const BlockView* block) {
  using W = WideOf<A>;
  constexpr int kMost = is_complex_v<W> ? 2 : 4;
  const auto a = matrix_of<const A>(block[1]);
  const auto x = matrix_of<const W>(block[2]);
  const auto y = matrix_of<W>(block[0]).block(block[1].col, 0, a.cols, x.cols);
  for_runs<kMost>(x.cols, [&]<int kColumns>(std::int64_t c) {
    adjoint_kernel<kColumns, A, W><<<static_cast<unsigned>(a.cols), kThreads, 0, stream>>>(
        y.block(0, c, y.rows, kColumns), a, x.block(0, c, x.rows, kColumns));
    blas::require_launched("panel_product");
  });
}

}  // namespace

template <class A>
void panel_product_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  using W = WideOf<A>;
  require_variant(panel_product, parameters.variant,
                  kAdjointPanel | kMagnitudesOfPanel | kLongProduct);
  CudaStream& stream = static_cast<CudaQueue&>(queue).main();
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* block = calls[i];
    const std::int64_t columns = block[2].cols;
    if (block[1].rows == 0 || block[1].cols == 0 || columns == 0) continue;
    if (parameters.variant == kMagnitudesOfPanel) {
      multiply_rows<MagnitudeSum<W>, 4, A>(stream.get(), block);
    } else if (parameters.variant == kLongProduct) {
      multiply_rows<LongSum<W>, is_complex_v<W> ? 1 : 2, A>(stream.get(), block);
    } else {
      const bool adjoint = parameters.variant == kAdjointPanel;
      if constexpr (std::is_same_v<A, W>) {
        if (columns > kFewColumns) {
          const auto a = matrix_of<const A>(block[1]);
          const auto x = matrix_of<const W>(block[2]);
          const auto y = matrix_of<W>(block[0]);
          const std::int64_t first = block[1].col;
          if (adjoint)
            blas::gemm_minus(stream, is_complex_v<W> ? CUBLAS_OP_C : CUBLAS_OP_T, CUBLAS_OP_N,
                             a.rows, a, x, y.block(first, 0, a.cols, columns));
          else
            blas::gemm_minus(stream, CUBLAS_OP_N, CUBLAS_OP_N, a.cols, a,
                             x.block(first, 0, a.cols, columns), y);
          continue;
        }
      }
      if (adjoint)
        multiply_adjoint<A>(stream.get(), block);
      else
        multiply_rows<PlainSum<W>, is_complex_v<W> ? 2 : 4, A>(stream.get(), block);
    }
  }
}

template void panel_product_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void panel_product_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void panel_product_cuda<std::complex<double>>(Queue&, const KernelCalls&,
                                                       const KernelParameters&);
template void panel_product_cuda<std::complex<float>>(Queue&, const KernelCalls&,
                                                      const KernelParameters&);

}  // namespace strata
