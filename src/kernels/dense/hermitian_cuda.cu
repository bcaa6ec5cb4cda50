// Pieces of a Hermitian factorization: see hermitian_cuda.hpp.
//
// Method: a panel is factored as a real one of twice the columns, by the kernel that factors those
// (fused_cuda.cu). With a + ib laid out as the block (a −b; b a) a Hermitian matrix becomes a
// symmetric one whose factor is L laid out so, for that is lower triangular with a positive
// diagonal. On the diagonal that is twice the work; below it one row of each block tells the other,
// and the work is that of complex numbers. Small matrices of batches lie in shared memory while
// their columns are eliminated one by one (Golub, Van Loan, "Matrix Computations", §4.2).

#include "kernels/dense/hermitian_cuda.hpp"

#include <algorithm>
#include <complex>

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

constexpr int kPanelTile = 64;
constexpr std::int64_t kPanelRows = 128;  // rows of chunks are a multiple of it

/// Column blockIdx.y … and rows blockIdx.x·kThreads …, for each of the four kernels below.
template <class F>
__device__ __forceinline__ void each_element(std::int64_t rows, std::int64_t cols, F&& f) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows) return;
  for (std::int64_t j = blockIdx.y; j < cols; j += gridDim.y) f(i, j);
}
dim3 blocks_for(std::int64_t rows, std::int64_t cols) {
  return dim3(static_cast<unsigned>((rows + kThreads - 1) / kThreads), static_cast<unsigned>(cols));
}

/// The lower triangle of A, n × n, in blocks of 2 × 2; the imaginary part of its diagonal is not
/// read.
template <class T>
__global__ void __launch_bounds__(kThreads)
    lay_out_triangle(const T* a, std::int64_t ld, std::int64_t n, RealOf<T>* to) {
  each_element(n, n, [&](std::int64_t i, std::int64_t j) {
    if (i < j) return;
    const RealOf<T> re = a[i + j * ld].real();
    const RealOf<T> im = i == j ? RealOf<T>{0} : a[i + j * ld].imag();
    RealOf<T>* block = to + 2 * i + 2 * j * 2 * n;
    block[0] = re;
    block[1] = im;
    if (i > j) block[2 * n] = -im;
    block[2 * n + 1] = re;
  });
}
template <class T>
__global__ void __launch_bounds__(kThreads)
    take_back_triangle(const RealOf<T>* from, std::int64_t n, T* a, std::int64_t ld) {
  each_element(n, n, [&](std::int64_t i, std::int64_t j) {
    const RealOf<T>* block = from + 2 * i + 2 * j * 2 * n;
    if (i >= j) a[i + j * ld] = T(block[0], i == j ? RealOf<T>{0} : block[1]);
  });
}
/// The upper rows of the blocks of X.
template <class T>
__global__ void __launch_bounds__(kThreads)
    lay_out_rows(const T* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, RealOf<T>* to,
                 std::int64_t ld) {
  each_element(rows, cols, [&](std::int64_t i, std::int64_t j) {
    const T value = x[i + j * ldx];
    to[i + 2 * j * ld] = value.real();
    to[i + (2 * j + 1) * ld] = -value.imag();
  });
}
template <class T>
__global__ void __launch_bounds__(kThreads)
    take_back_rows(const RealOf<T>* from, std::int64_t ld, std::int64_t rows, std::int64_t cols,
                   T* x, std::int64_t ldx) {
  each_element(rows, cols, [&](std::int64_t i, std::int64_t j) {
    x[i + j * ldx] = T(from[i + 2 * j * ld], -from[i + (2 * j + 1) * ld]);
  });
}

constexpr int kReportThreads = 1024;

template <class T>
__global__ void __launch_bounds__(kReportThreads)
    run_report(const T* l, std::int64_t ld, std::int64_t n, const fused_kernel::Verdict* verdict,
               PivotStatus* status) {
  __shared__ double sums[kReportThreads];
  const fused_kernel::Verdict found = *verdict;
  const bool ok = found.failed == 0;
  const double logarithm = sum_of_logarithms<kReportThreads>(
      ok ? n : 0, sums, [&](std::int64_t j) { return static_cast<double>(l[j + j * ld].real()); });
  if (threadIdx.x == 0)
    *status = ok ? PivotStatus{.log_determinant = logarithm}
                 : PivotStatus{.bad_column = static_cast<double>(found.bad_column / 2),
                               .bad_pivot = found.bad_pivot};
}

template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "cudaFuncSetAttribute");
}

/// X ← X·L⁻ᴴ, L of order kBlockMost at most.
template <class T>
void solve_block(const CudaStream& stream, MatrixView<const T> l, MatrixView<T> x) {
  if (x.rows == 0 || x.cols == 0) return;
  allow_shared(run_solve<T>, 2 * kBlockBytes<T>);
  const auto blocks = static_cast<unsigned>((x.rows + kOrder - 1) / kOrder);
  run_solve<T><<<blocks, kThreads, 2 * kBlockBytes<T>, stream.get()>>>(
      l.data, l.ld, static_cast<int>(l.cols), x.data, x.ld, x.rows);
  blas::require_launched("potrf: solve");
}

}  // namespace

std::int64_t panel_scratch_bytes() {
  return std::max(fused_kernel::scratch_bytes(2 * kPanelMost, 2 * kPanelMost, kPanelTile),
                  fused_kernel::zeroed_bytes(kOperandBytes / 8, kPanelTile));
}

template <class T>
void factor_panel(CudaStream& stream, MatrixView<T> a, std::int64_t first,
                  fused_kernel::Verdict* verdict, void* scratch) {
  using Real = RealOf<T>;
  const std::int64_t n = a.cols;
  if (n == 0) return;
  auto* parts = static_cast<Real*>(stream.operands());
  const MatrixView<Real> top(parts, 2 * n, 2 * n, 2 * n);
  lay_out_triangle<T><<<blocks_for(n, n), kThreads, 0, stream.get()>>>(a.data, a.ld, n, parts);
  blas::require_launched("potrf: panel as real numbers");
  const auto clear = [&](std::int64_t bytes) {
    require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(bytes), stream.get()),
                 "cudaMemsetAsync");
  };
  // Few blocks: each keeps a multiprocessor from the products beside it.
  constexpr int kBlocks = 32;
  clear(fused_kernel::zeroed_bytes(2 * n, kPanelTile));
  fused_kernel::factor(stream.get(), top, {.tile = kPanelTile, .ib = 8, .blocks = kBlocks},
                       2 * first, verdict, scratch);
  take_back_triangle<T><<<blocks_for(n, n), kThreads, 0, stream.get()>>>(parts, n, a.data, a.ld);
  blas::require_launched("potrf: panel as complex numbers");
  // Rows below, as many as find room beside the triangle.
  Real* rows_of = parts + 4 * n * n;
  const std::int64_t room = kOperandBytes / static_cast<std::int64_t>(sizeof(Real)) - 4 * n * n;
  const std::int64_t most = room / (2 * n) / kPanelRows * kPanelRows;
  for (std::int64_t r = n; r < a.rows; r += most) {
    const std::int64_t rows = std::min(most, a.rows - r);
    const std::int64_t ld = (rows + 3) / 4 * 4;
    T* x = a.data + r;
    lay_out_rows<T>
        <<<blocks_for(rows, n), kThreads, 0, stream.get()>>>(x, a.ld, rows, n, rows_of, ld);
    blas::require_launched("potrf: rows as real numbers");
    clear(fused_kernel::zeroed_bytes(rows, kPanelTile));
    const bool small = rows * 2 * n < std::int64_t{2048} * 1024;
    const fused_kernel::Shape shape{
        .tile = small ? 64 : 128,
        .ib = 8,
        .blocks = small ? kBlocks : static_cast<int>((rows + 127) / 128 * 3)};
    fused_kernel::solve(stream.get(), MatrixView<const Real>(top),
                        MatrixView<Real>(rows_of, rows, 2 * n, ld), shape, scratch);
    take_back_rows<T>
        <<<blocks_for(rows, n), kThreads, 0, stream.get()>>>(rows_of, ld, rows, n, x, a.ld);
    blas::require_launched("potrf: rows as complex numbers");
  }
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
void report(const CudaStream& stream, MatrixView<const T> l, const fused_kernel::Verdict* verdict,
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

#define STRATA_INSTANTIATE(T)                                                                     \
  template void factor_panel<T>(CudaStream&, MatrixView<T>, std::int64_t, fused_kernel::Verdict*, \
                                void*);                                                           \
  template void update_triangle<T>(CudaStream&, MatrixView<const T>, MatrixView<T>);              \
  template void solve_right<T>(CudaStream&, MatrixView<const T>, MatrixView<T>);                  \
  template void report<T>(const CudaStream&, MatrixView<const T>, const fused_kernel::Verdict*,   \
                          PivotStatus*);                                                          \
  template void factor_small<T>(const CudaStream&, const BatchEntry*, PivotStatus*, std::int64_t);
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::hermitian
