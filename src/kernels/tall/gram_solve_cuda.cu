// X·R⁻¹ on a GPU.
//
// Method: a thread has a row, neighbouring threads neighbouring rows, so that memory is read and
// written whole. Columns are taken eight at a time: the quotients of the columns before them come
// from shared memory, where each thread keeps its own, and are subtracted from eight sums in
// registers; then the eight are solved among themselves. R lies in shared memory by rows, read by
// all threads alike.

#include "kernels/tall/gram_solve_cuda.hpp"
#include "kernels/tall/quotient_cuda.hpp"

namespace strata::gram_gpu {
namespace {

constexpr int kColumns = 8;  // at a time
constexpr std::int64_t kSharedMost = 200 << 10;

constexpr std::int64_t padded(std::int64_t n) { return (n + kColumns - 1) / kColumns * kColumns; }

/// Reciprocals, R by rows, and the quotients of each thread.
std::int64_t shared_bytes(std::int64_t n, std::int64_t number) {
  return aligned(padded(n) * 8) + number * (n * padded(n) + n * kThreads);
}

/// One row; `q` is this thread's, kThreads apart. `row` is within x.
template <class S, class T>
__device__ void solve_row(const Columns<T>& x, std::int64_t row, const S* by_rows, const double* y,
                          S* q, T* to, std::int64_t to_ld) {
  const int n = static_cast<int>(x.cols);
  const int ld = static_cast<int>(padded(n));
  for (int first = 0; first < n; first += kColumns) {
    S acc[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      acc[c] = first + c < n ? S(x.template at<RealOf<S>>(row, first + c)) : S{};
#pragma unroll 2
    for (int i = 0; i < first; ++i) {
      const S qi = q[i * kThreads];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) acc[c] = next(acc[c], qi, by_rows[i * ld + first + c]);
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (first + c >= n) break;
      const S* r = by_rows + (first + c) * ld + first;
      acc[c] = quotient(acc[c], r[c], y[first + c]);
      q[(first + c) * kThreads] = acc[c];
      to[row + (first + c) * to_ld] = static_cast<T>(leading(acc[c]));
#pragma unroll
      for (int k = c + 1; k < kColumns; ++k) acc[k] = next(acc[k], acc[c], r[k]);
    }
  }
}

template <class S, class T>
__global__ void __launch_bounds__(kThreads)
    solve_rows(Columns<T> x, const S* r, std::int64_t r_ld, T* to, std::int64_t to_ld) {
  extern __shared__ __align__(16) unsigned char memory[];
  const std::int64_t n = x.cols;
  auto* y = reinterpret_cast<double*>(memory);
  auto* by_rows = reinterpret_cast<S*>(memory + (padded(n) * 8 + 255) / 256 * 256);
  S* q = by_rows + n * padded(n) + threadIdx.x;
  for (std::int64_t k = threadIdx.x; k < n * padded(n); k += kThreads) {
    const std::int64_t i = k / padded(n);
    const std::int64_t j = k % padded(n);
    by_rows[k] = j >= i && j < n ? r[i + j * r_ld] : S{};
  }
  for (std::int64_t j = threadIdx.x; j < n; j += kThreads)
    y[j] = reciprocal(leading(r[j + j * r_ld]));
  __syncthreads();
  for (std::int64_t row = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; row < x.rows;
       row += std::int64_t{gridDim.x} * kThreads)
    solve_row(x, row, by_rows, y, q, to, to_ld);
}

}  // namespace

bool solves_in_shared_memory(std::int64_t columns, Element r) {
  return shared_bytes(columns, bytes_of(r)) <= kSharedMost;
}

template <class S, class T>
void solve_shared(cudaStream_t stream, const Columns<T>& x, const S* r, std::int64_t r_ld, T* to,
                  std::int64_t to_ld) {
  if (x.rows == 0) return;
  const auto kernel = solve_rows<S, T>;
  const auto bytes = static_cast<std::size_t>(shared_bytes(x.cols, sizeof(S)));
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kSharedMost)),
               "shared memory of a solve");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, bytes),
               "a solve");
  const unsigned most = static_cast<unsigned>(multiprocessors() * std::max(resident, 1));
  kernel<<<std::min(blocks_for(x.rows, kThreads), most), kThreads, bytes, stream>>>(x, r, r_ld, to,
                                                                                    to_ld);
  require_cuda(cudaGetLastError(), "solve_right");
}

template void solve_shared(cudaStream_t, const Columns<double>&, const double*, std::int64_t,
                           double*, std::int64_t);
template void solve_shared(cudaStream_t, const Columns<double>&, const DoubleDouble*, std::int64_t,
                           double*, std::int64_t);
template void solve_shared(cudaStream_t, const Columns<float>&, const float*, std::int64_t, float*,
                           std::int64_t);
template void solve_shared(cudaStream_t, const Columns<float>&, const double*, std::int64_t, float*,
                           std::int64_t);

}  // namespace strata::gram_gpu
