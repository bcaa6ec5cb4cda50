// Large products of complex128: see gemm_complex_cuda.hpp.

#include "kernels/backend/gemm_complex_cuda.hpp"

#include <algorithm>

#include "kernels/backend/gemm_large_cuda.hpp"

namespace strata::blas {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kLeastExtent = 1024;  // of C
constexpr std::int64_t kLeastColumns = 256;  // of it, where B is laid out too
constexpr std::int64_t kLeastDepth = 32;
constexpr std::int64_t kDepth = 512;  // at a time

/// Rows blockIdx.x·kThreads … of columns blockIdx.y … of A. parts: (2·rows) × (2·cols).
__global__ void __launch_bounds__(kThreads)
    lay_out(const double2* a, std::int64_t ld, std::int64_t rows, std::int64_t cols,
            double2* parts) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= rows) return;
  for (std::int64_t l = blockIdx.y; l < cols; l += gridDim.y) {
    const double2 x = a[r + l * ld];
    parts[r + 2 * l * rows] = x;
    parts[r + (2 * l + 1) * rows] = make_double2(-x.y, x.x);
  }
}

/// Rows blockIdx.x·kThreads … of columns blockIdx.y … of B, the real and the imaginary part, or its
/// opposite, of each column as two. parts: rows × (2·cols).
__global__ void __launch_bounds__(kThreads)
    split(const double2* b, std::int64_t ld, std::int64_t rows, std::int64_t cols, double* parts) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= rows) return;
  for (std::int64_t l = blockIdx.y; l < cols; l += gridDim.y) {
    const double2 x = b[r + l * ld];
    parts[r + 2 * l * rows] = x.x;
    parts[r + (2 * l + 1) * rows] = -x.y;
  }
}

dim3 blocks_for(std::int64_t rows, std::int64_t cols) {
  return dim3(static_cast<unsigned>((rows + kThreads - 1) / kThreads), static_cast<unsigned>(cols));
}

const double2* pairs(const std::complex<double>* x) { return reinterpret_cast<const double2*>(x); }

/// A laid out anew in `parts`.
MatrixView<const double> laid_out(CudaStream& stream, MatrixView<const std::complex<double>> a,
                                  double* parts) {
  lay_out<<<blocks_for(a.rows, a.cols), kThreads, 0, stream.get()>>>(
      pairs(a.data), a.ld, a.rows, a.cols, reinterpret_cast<double2*>(parts));
  require_cuda(cudaGetLastError(), "parts of a matrix");
  return {parts, 2 * a.rows, 2 * a.cols, 2 * a.rows};
}

void subtract(CudaStream& stream, cublasOperation_t op_b, MatrixView<const double> a,
              MatrixView<const double> b, MatrixView<double> c) {
  if (gemm_minus_large(stream, op_b, a.cols, a, b, c)) return;
  const double minus_one = -1;
  const double one = 1;
  require_blas(cublasDgemm_64(stream.blas(), CUBLAS_OP_N, op_b, c.rows, c.cols, a.cols, &minus_one,
                              a.data, a.ld, b.data, b.ld, &one, c.data, c.ld),
               "cublasDgemm");
}

MatrixView<const double> parts_of(MatrixView<const std::complex<double>> x) {
  return {reinterpret_cast<const double*>(x.data), 2 * x.rows, x.cols, 2 * x.ld};
}
MatrixView<double> parts_of(MatrixView<std::complex<double>> x) {
  return {reinterpret_cast<double*>(x.data), 2 * x.rows, x.cols, 2 * x.ld};
}

/// Rows of A that find room in `bytes`, `depth` columns of them; a multiple of the blocks in which
/// products are made.
std::int64_t rows_at_once(std::int64_t bytes, std::int64_t depth) {
  return bytes / (4 * depth * static_cast<std::int64_t>(sizeof(double))) / 128 * 128;
}

}  // namespace

bool gemm_minus_by_parts(CudaStream& stream, std::int64_t k,
                         MatrixView<const std::complex<double>> a,
                         MatrixView<const std::complex<double>> b,
                         MatrixView<std::complex<double>> c) {
  if (c.rows < kLeastExtent || c.cols < kLeastExtent || k < kLeastDepth) return false;
  auto* parts = static_cast<double*>(stream.operands());
  for (std::int64_t l = 0; l < k; l += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - l);
    const std::int64_t most = rows_at_once(kOperandBytes, depth);
    for (std::int64_t r = 0; r < c.rows; r += most) {
      const std::int64_t rows = std::min(most, c.rows - r);
      const auto left = laid_out(stream, a.block(r, l, rows, depth), parts);
      subtract(stream, CUBLAS_OP_N, left, parts_of(b.block(l, 0, depth, c.cols)),
               parts_of(c.block(r, 0, rows, c.cols)));
    }
  }
  return true;
}

bool gemm_minus_adjoint_by_parts(CudaStream& stream, MatrixView<const std::complex<double>> a,
                                 MatrixView<const std::complex<double>> b,
                                 MatrixView<std::complex<double>> c) {
  const std::int64_t k = a.cols;
  if (c.rows < kLeastExtent || c.cols < kLeastColumns || k < kLeastDepth) return false;
  auto* parts_of_b = static_cast<double*>(stream.operands());
  for (std::int64_t l = 0; l < k; l += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - l);
    // A quarter of the memory for B, whose elements take half as much there as those of A.
    const std::int64_t most_columns = rows_at_once(kOperandBytes / 2, depth);
    double* parts = parts_of_b + kOperandBytes / 4 / static_cast<std::int64_t>(sizeof(double));
    const std::int64_t most = rows_at_once(kOperandBytes / 4 * 3, depth);
    for (std::int64_t j = 0; j < c.cols; j += most_columns) {
      const std::int64_t columns = std::min(most_columns, c.cols - j);
      split<<<blocks_for(columns, depth), kThreads, 0, stream.get()>>>(
          pairs(b.data + j + l * b.ld), b.ld, columns, depth, parts_of_b);
      require_cuda(cudaGetLastError(), "parts of a matrix");
      const MatrixView<const double> right(parts_of_b, columns, 2 * depth, columns);
      for (std::int64_t r = 0; r < c.rows; r += most) {
        const std::int64_t rows = std::min(most, c.rows - r);
        const auto left = laid_out(stream, a.block(r, l, rows, depth), parts);
        subtract(stream, CUBLAS_OP_T, left, right, parts_of(c.block(r, j, rows, columns)));
      }
    }
  }
  return true;
}

}  // namespace strata::blas
