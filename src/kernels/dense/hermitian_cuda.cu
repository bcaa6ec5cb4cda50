// Blocks of a Hermitian factorization: see hermitian_cuda.hpp.
//
// Method: a diagonal block lies in shared memory while its columns are eliminated one by one
// (Golub, Van Loan, "Matrix Computations", §4.2). What it solves is cut in strips of 64 rows, which
// lie there, too.

#include "kernels/dense/hermitian_cuda.hpp"

#include <algorithm>
#include <complex>
#include <limits>

#include "kernels/backend/blas_complex_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"

namespace strata::hermitian {
namespace {

using lu_cuda::subtract_product;

constexpr int kOrder = static_cast<int>(kBlockMost);
constexpr int kThreads = 256;
constexpr int kParts = kThreads / kOrder;  // threads of a row
constexpr int kPitch = kOrder + 1;         // from column to column in shared memory

template <class T>
constexpr int kBlockBytes = kOrder* kPitch* static_cast<int>(sizeof(T));

template <class T>
__device__ __forceinline__ T conjugate_of(const T& x) {
  return T(x.real(), -x.imag());
}

/// a: order n, in shared memory. Every thread gets the first bad pivot, or none: n.
template <class T>
__device__ __forceinline__ int eliminate(T* a, int n, RealOf<T>* bad_pivot) {
  const int row = static_cast<int>(threadIdx.x) % kOrder;
  const int part = static_cast<int>(threadIdx.x) / kOrder;
  int bad = n;
  for (int j = 0; j < n; ++j) {
    const RealOf<T> pivot = a[j + j * kPitch].real();
    if (bad == n && !(pivot > 0 && isfinite(pivot))) {
      bad = j;
      *bad_pivot = pivot;
    }
    const RealOf<T> root = bad == n ? sqrt(pivot) : RealOf<T>{0};
    const RealOf<T> inverse = bad == n ? RealOf<T>{1} / root : RealOf<T>{0};
    __syncthreads();  // all have the pivot
    if (part == 0 && row >= j && row < n) {
      const T x = a[row + j * kPitch];
      a[row + j * kPitch] = row == j ? T(root) : T(x.real() * inverse, x.imag() * inverse);
    }
    __syncthreads();
    const T mine = a[row + j * kPitch];
    for (int c = j + 1 + part; c <= row && c < n; c += kParts) {
      if (row >= n) break;
      T& x = a[row + c * kPitch];
      T sum = x;
      subtract_product(sum, mine, conjugate_of(a[c + j * kPitch]));
      x = sum;
    }
    __syncthreads();
  }
  return bad;
}

template <class T>
__device__ __forceinline__ void read_block(T* to, const T* a, std::int64_t ld, int n) {
  const int row = static_cast<int>(threadIdx.x) % kOrder;
  for (int c = static_cast<int>(threadIdx.x) / kOrder; c < kOrder; c += kParts)
    to[row + c * kPitch] = row < n && c <= row ? a[row + c * ld] : T{};
  __syncthreads();
}
template <class T>
__device__ __forceinline__ void write_block(const T* from, T* a, std::int64_t ld, int n) {
  const int row = static_cast<int>(threadIdx.x) % kOrder;
  for (int c = static_cast<int>(threadIdx.x) / kOrder; c < n; c += kParts)
    if (row < n && c <= row) a[row + c * ld] = from[row + c * kPitch];
}

__global__ void clear(Verdict* verdict) { *verdict = {-1, 0}; }

template <class T>
__global__ void __launch_bounds__(kThreads)
    run_block(T* a, std::int64_t ld, int n, int first, Verdict* verdict) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* block = reinterpret_cast<T*>(memory);
  read_block(block, a, ld, n);
  RealOf<T> bad_pivot{};
  const int bad = eliminate(block, n, &bad_pivot);
  write_block(block, a, ld, n);
  if (threadIdx.x == 0 && bad < n && verdict->bad_column < 0)
    *verdict = {first + bad, static_cast<double>(bad_pivot)};
}

/// Σ 2·log L(j, j), for j of this thread and its fellows, added up in one order.
template <int kCount, class F>
__device__ __forceinline__ double sum_of_logarithms(std::int64_t n, double* sums, F&& diagonal) {
  double sum = 0;
  for (std::int64_t j = threadIdx.x; j < n; j += kCount) sum += 2 * log(diagonal(j));
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kCount / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    run_small(const BatchEntry* entries, PivotStatus* statuses, std::int64_t count) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ double sums[kThreads];
  T* block = reinterpret_cast<T*>(memory);
  for (std::int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const BatchEntry entry = entries[m];
    if (entry.n > kOrder) continue;
    const int n = static_cast<int>(entry.n);
    T* a = static_cast<T*>(entry.data);
    read_block(block, a, entry.ld, n);
    RealOf<T> bad_pivot{};
    const int bad = eliminate(block, n, &bad_pivot);
    write_block(block, a, entry.ld, n);
    const double logarithm = sum_of_logarithms<kThreads>(
        bad < n ? 0 : n, sums,
        [&](std::int64_t j) { return static_cast<double>(block[j + j * kPitch].real()); });
    if (threadIdx.x == 0)
      statuses[m] = bad < n ? PivotStatus{.bad_column = static_cast<double>(bad),
                                          .bad_pivot = static_cast<double>(bad_pivot)}
                            : PivotStatus{.log_determinant = logarithm};
    __syncthreads();
  }
}

/// A strip of kOrder rows, in shared memory beside the triangle. For each column four neighbouring
/// lanes take the products of a row with the columns before it off it, a quarter each. Loops are
/// not unrolled far: instructions that are executed once are read from memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    run_solve(const T* l, std::int64_t ldl, int n, T* x, std::int64_t ldx, std::int64_t rows) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* block = reinterpret_cast<T*>(memory);
  T* strip = block + kOrder * kPitch;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kOrder;
  const int mine = static_cast<int>(threadIdx.x) % kOrder;
  for (int c = static_cast<int>(threadIdx.x) / kOrder; c < n; c += kParts)
    strip[mine + c * kPitch] = first + mine < rows ? x[first + mine + c * ldx] : T{};
  read_block(block, l, ldl, n);
  const int part = static_cast<int>(threadIdx.x) % kParts;
  const T* row = strip + threadIdx.x / kParts;
  T* to = strip + threadIdx.x / kParts;
  for (int j = 0; j < n; ++j) {
    T sum = part == 0 ? row[j * kPitch] : T{};
#pragma unroll 4
    for (int k = part; k < j; k += kParts)
      subtract_product(sum, row[k * kPitch], conjugate_of(block[j + k * kPitch]));
#pragma unroll
    for (int d = 1; d < kParts; d *= 2) {
      const T other(__shfl_xor_sync(0xffffffffU, sum.real(), d),
                    __shfl_xor_sync(0xffffffffU, sum.imag(), d));
      sum = T(sum.real() + other.real(), sum.imag() + other.imag());
    }
    const T diagonal = conjugate_of(block[j + j * kPitch]);
    if (part == 0) to[j * kPitch] = diagonal == T{} ? T{} : lu_cuda::Quotient<T>(diagonal)(sum);
    __syncwarp();
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x) / kOrder; c < n; c += kParts)
    if (first + mine < rows) x[first + mine + c * ldx] = strip[mine + c * kPitch];
}

constexpr int kReportThreads = 1024;

template <class T>
__global__ void __launch_bounds__(kReportThreads)
    run_report(const T* l, std::int64_t ld, std::int64_t n, const Verdict* verdict,
               PivotStatus* status) {
  __shared__ double sums[kReportThreads];
  const Verdict found = *verdict;
  const bool ok = found.bad_column < 0;
  const double logarithm = sum_of_logarithms<kReportThreads>(
      ok ? n : 0, sums, [&](std::int64_t j) { return static_cast<double>(l[j + j * ld].real()); });
  if (threadIdx.x == 0)
    *status = ok ? PivotStatus{.log_determinant = logarithm}
                 : PivotStatus{.bad_column = static_cast<double>(found.bad_column),
                               .bad_pivot = found.bad_pivot};
}

template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "cudaFuncSetAttribute");
}

}  // namespace

void start_verdict(const CudaStream& stream, Verdict* verdict) {
  clear<<<1, 1, 0, stream.get()>>>(verdict);
  blas::require_launched("potrf: verdict");
}

template <class T>
void factor_block(const CudaStream& stream, MatrixView<T> a, std::int64_t first, Verdict* verdict) {
  if (a.cols == 0) return;
  allow_shared(run_block<T>, kBlockBytes<T>);
  run_block<T><<<1, kThreads, kBlockBytes<T>, stream.get()>>>(
      a.data, a.ld, static_cast<int>(a.cols), static_cast<int>(first), verdict);
  blas::require_launched("potrf: diagonal block");
}

template <class T>
void solve_block(const CudaStream& stream, MatrixView<const T> l, MatrixView<T> x) {
  if (x.rows == 0 || x.cols == 0) return;
  allow_shared(run_solve<T>, 2 * kBlockBytes<T>);
  const auto blocks = static_cast<unsigned>((x.rows + kOrder - 1) / kOrder);
  run_solve<T><<<blocks, kThreads, 2 * kBlockBytes<T>, stream.get()>>>(
      l.data, l.ld, static_cast<int>(l.cols), x.data, x.ld, x.rows);
  blas::require_launched("potrf: solve");
}

template <class T>
void update_triangle(CudaStream& stream, MatrixView<const T> a, MatrixView<T> c) {
  constexpr std::int64_t kHerkMost = 512;
  const std::int64_t n = c.cols;
  if (n <= kHerkMost) return blas::herk_minus(stream, a, c);
  const std::int64_t half = (n + 2 * kBlockMost - 1) / (2 * kBlockMost) * kBlockMost;
  const auto upper = a.block(0, 0, half, a.cols);
  const auto lower = a.block(half, 0, n - half, a.cols);
  update_triangle(stream, upper, c.block(0, 0, half, half));
  blas::gemm_minus_adjoint(stream, lower, upper, c.block(half, 0, n - half, half));
  update_triangle(stream, lower, c.block(half, half, n - half, n - half));
}

template <class T>
void solve_right(CudaStream& stream, MatrixView<const T> l, MatrixView<T> x) {
  const std::int64_t n = x.cols;
  if (n <= kBlockMost) return solve_block(stream, l, x);
  const std::int64_t half = (n + 2 * kBlockMost - 1) / (2 * kBlockMost) * kBlockMost;
  solve_right(stream, l.block(0, 0, half, half), x.block(0, 0, x.rows, half));
  const MatrixView<T> rest = x.block(0, half, x.rows, n - half);
  blas::gemm_minus_adjoint(stream, MatrixView<const T>(x.block(0, 0, x.rows, half)),
                           l.block(half, 0, n - half, half), rest);
  solve_right(stream, l.block(half, half, n - half, n - half), rest);
}

template <class T>
void report(const CudaStream& stream, MatrixView<const T> l, const Verdict* verdict,
            PivotStatus* status) {
  run_report<T><<<1, kReportThreads, 0, stream.get()>>>(l.data, l.ld, l.cols, verdict, status);
  blas::require_launched("potrf: report");
}

template <class T>
void factor_small(const CudaStream& stream, const BatchEntry* entries, PivotStatus* statuses,
                  std::int64_t count) {
  constexpr std::int64_t kBlocksMost = 1 << 16;
  allow_shared(run_small<T>, kBlockBytes<T>);
  run_small<T><<<static_cast<unsigned>(std::min(count, kBlocksMost)), kThreads, kBlockBytes<T>,
                 stream.get()>>>(entries, statuses, count);
  blas::require_launched("potrf_batched: Hermitian");
}

#define STRATA_INSTANTIATE(T)                                                                    \
  template void factor_block<T>(const CudaStream&, MatrixView<T>, std::int64_t, Verdict*);       \
  template void solve_block<T>(const CudaStream&, MatrixView<const T>, MatrixView<T>);           \
  template void update_triangle<T>(CudaStream&, MatrixView<const T>, MatrixView<T>);             \
  template void solve_right<T>(CudaStream&, MatrixView<const T>, MatrixView<T>);                 \
  template void report<T>(const CudaStream&, MatrixView<const T>, const Verdict*, PivotStatus*); \
  template void factor_small<T>(const CudaStream&, const BatchEntry*, PivotStatus*, std::int64_t);
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::hermitian
