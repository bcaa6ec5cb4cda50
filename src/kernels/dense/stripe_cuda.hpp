#pragma once
// What kernels of stripes share on the GPU: statuses of blocks without a diagonal, and solves with
// U on the right.
//
// Contract: on the stream that is given. Only for *_cuda.cu.

#include <complex>
#include <type_traits>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/lu_eliminate_cuda.hpp"
#include "kernels/dense/lu_status_cuda.hpp"

namespace strata::stripe_cuda {

inline constexpr int kThreads = 256;

/// Thread blocks for so many elements, each of which goes on with others.
[[nodiscard]] inline unsigned blocks_for(std::int64_t elements) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMost ? blocks : kMost);
}

/// Notes the largest element of all rows, and what is not finite.
template <class T>
__global__ void __launch_bounds__(kThreads)
    note_block(const T* x, std::int64_t ld, std::int64_t rows, std::int64_t cols,
               lu_cuda::Findings* findings) {
  double largest = 0;
  for (std::int64_t j = blockIdx.x; j < cols; j += gridDim.x) {
    bool bad = false;
    for (std::int64_t i = threadIdx.x; i < rows; i += kThreads) {
      const T value = x[i + j * ld];
      bad = bad || !lu_cuda::parts_are_finite(value);
      largest = fmax(largest, lu_cuda::noted_size(value));
    }
    if (bad) atomicMin(&findings->not_finite, static_cast<int>(j));
  }
  lu_cuda::note_largest(largest, findings);
}

/// What a status says was met before.
static __global__ void note_earlier(const PanelStatus* status, lu_cuda::Findings* findings) {
  const auto largest = static_cast<unsigned long long>(__double_as_longlong(status->largest));
  if (largest > findings->largest) findings->largest = largest;
}

static __global__ void write_block_status(const lu_cuda::Findings* findings, PanelStatus* status) {
  PanelStatus found = lu_cuda::status_of(*findings);
  found.zero_pivot = -1;
  found.smallest_pivot = 0;
  *status = found;
}

template <class T>
void note(const CudaStream& stream, MatrixView<const T> x, lu_cuda::Findings* findings) {
  constexpr std::int64_t kMost = 2048;
  const auto blocks = static_cast<unsigned>(x.cols < kMost ? x.cols : kMost);
  if (x.rows == 0 || x.cols == 0) return;
  note_block<T><<<blocks, kThreads, 0, stream.get()>>>(x.data, x.ld, x.rows, x.cols, findings);
  blas::require_launched("status of a block");
}

inline void put_block_status(const CudaStream& stream, const lu_cuda::Findings* findings,
                             PanelStatus* status) {
  write_block_status<<<1, 1, 0, stream.get()>>>(findings, status);
  blas::require_launched("status of a block");
}

/// X ← X·U⁻¹.
template <class T>
void solve_upper_on_right(CudaStream& stream, MatrixView<const T> u, MatrixView<T> x) {
  if (x.rows == 0 || x.cols == 0) return;
  const T one{1};
  const auto call = [&](auto solve, const char* name, auto* alpha, auto* triangle, auto* rows) {
    require_blas(solve(stream.blas(), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                       CUBLAS_DIAG_NON_UNIT, x.rows, x.cols, alpha, triangle, u.ld, rows, x.ld),
                 name);
  };
  if constexpr (std::is_same_v<T, double>) {
    call(cublasDtrsm_64, "cublasDtrsm", &one, u.data, x.data);
  } else if constexpr (std::is_same_v<T, float>) {
    call(cublasStrsm_64, "cublasStrsm", &one, u.data, x.data);
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    call(cublasZtrsm_64, "cublasZtrsm", blas::of_blas(&one), blas::of_blas(u.data),
         blas::of_blas(x.data));
  } else {
    call(cublasCtrsm_64, "cublasCtrsm", blas::of_blas(&one), blas::of_blas(u.data),
         blas::of_blas(x.data));
  }
  blas::require_launched("trsm");
}

/// C ← C − A·B, where there is something of each.
template <class T>
void subtract(CudaStream& stream, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
  blas::gemm_minus<T>(stream, CUBLAS_OP_N, CUBLAS_OP_N, a.cols, a, b, c);
}

}  // namespace strata::stripe_cuda
