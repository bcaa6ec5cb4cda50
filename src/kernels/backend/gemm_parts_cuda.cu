// Products of fp32 numbers by fp16 ones: see gemm_parts_cuda.hpp.

#include "kernels/backend/gemm_parts_cuda.hpp"

#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

namespace strata::blas {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kLeastExtent = 1024;  // of C
constexpr std::int64_t kLeastDepth = 128;
constexpr std::int64_t kDepth = 512;  // at a time
constexpr std::int64_t kRows = 4096;  // of C at a time
constexpr std::int64_t kColumns = 6144;
constexpr int kTop = 10;  // the largest elements are scaled to about 2^kTop: l stays normal longer

struct Factors {
  float alpha;
  float beta;
  unsigned largest;  ///< bits of the largest magnitude of B
  unsigned unused;
};
constexpr std::int64_t kFactorsBytes = 256;
static_assert((kRows + kColumns) * 3 * kDepth * static_cast<std::int64_t>(sizeof(__half)) +
                  kFactorsBytes <=
              kOperandBytes);

__global__ void clear(Factors* factors) { *factors = {0, 1, 0, 0}; }

__global__ void __launch_bounds__(kThreads)
    find_largest(const float* b, std::int64_t ld, std::int64_t rows, std::int64_t cols,
                 Factors* factors) {
  unsigned mine = 0;
  for (std::int64_t j = blockIdx.x; j < cols; j += gridDim.x)
    for (std::int64_t i = threadIdx.x; i < rows; i += kThreads)
      mine = max(mine, __float_as_uint(fabsf(b[i + j * ld])));  // whose order is that of sizes
  mine = __reduce_max_sync(0xffffffffU, mine);
  if (threadIdx.x % 32 == 0) atomicMax(&factors->largest, mine);
}

/// 2^kTop over the power of two in the largest magnitude, so that alpha is a normal number; 1 where
/// the largest is 0 or no number.
__device__ float scale_of(unsigned largest) {
  const int exponent = static_cast<int>(largest >> 23) - 127;
  if (largest == 0 || exponent > 127) return 1;
  return ldexpf(1.0F, min(max(kTop - exponent, -126), 126 - kTop));
}

__device__ void split(float x, __half* high, __half* low) {
  *high = __float2half_rn(x);
  *low = __float2half_rn(x - __half2float(*high));
}

/// parts: rows × (3·depth), the columns h, h and l of A.
__global__ void __launch_bounds__(kThreads)
    lay_out_left(const float* a, std::int64_t ld, std::int64_t rows, std::int64_t depth,
                 __half* parts) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= rows) return;
  for (std::int64_t l = blockIdx.y; l < depth; l += gridDim.y) {
    __half high;
    __half low;
    split(a[r + l * ld] * static_cast<float>(1 << kTop), &high, &low);
    parts[r + l * rows] = high;
    parts[r + (depth + l) * rows] = high;
    parts[r + (2 * depth + l) * rows] = low;
  }
}

/// parts: (3·depth) × cols, the rows h, l and h of B.
__global__ void __launch_bounds__(kThreads)
    lay_out_right(const float* b, std::int64_t ld, std::int64_t depth, std::int64_t cols,
                  Factors* factors, __half* parts) {
  const float scale = scale_of(factors->largest);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    factors->alpha = -1.0F / (static_cast<float>(1 << kTop) * scale);
  for (std::int64_t j = blockIdx.x; j < cols; j += gridDim.x) {
    for (std::int64_t l = threadIdx.x; l < depth; l += kThreads) {
      __half high;
      __half low;
      split(b[l + j * ld] * scale, &high, &low);
      __half* column = parts + 3 * j * depth + l;
      column[0] = high;
      column[depth] = low;
      column[2 * depth] = high;
    }
  }
}

/// Scales of cuBLAS are read from the device while it lives.
class ScalesOnDevice {
 public:
  explicit ScalesOnDevice(cublasHandle_t handle) : handle_(handle) {
    require_blas(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
  }
  ScalesOnDevice(const ScalesOnDevice&) = delete;
  ScalesOnDevice& operator=(const ScalesOnDevice&) = delete;
  ~ScalesOnDevice() { (void)cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST); }

 private:
  cublasHandle_t handle_;
};

}  // namespace

bool gemm_minus_by_halves(CudaStream& stream, std::int64_t k, MatrixView<const float> a,
                          MatrixView<const float> b, MatrixView<float> c) {
  if (c.rows < kLeastExtent || c.cols < kLeastExtent || k < kLeastDepth) return false;
  auto* bytes = static_cast<std::byte*>(stream.operands());
  auto* factors = reinterpret_cast<Factors*>(bytes);
  auto* left = reinterpret_cast<__half*>(bytes + kFactorsBytes);
  __half* right = left + kRows * 3 * kDepth;
  const cublasHandle_t handle = stream.blas();
  const ScalesOnDevice scales(handle);
  constexpr unsigned kBlocks = 2048;
  for (std::int64_t l = 0; l < k; l += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - l);
    for (std::int64_t j = 0; j < c.cols; j += kColumns) {
      const std::int64_t columns = std::min(kColumns, c.cols - j);
      const auto part = b.block(l, j, depth, columns);
      const auto blocks = std::min(kBlocks, static_cast<unsigned>(columns));
      clear<<<1, 1, 0, stream.get()>>>(factors);
      find_largest<<<blocks, kThreads, 0, stream.get()>>>(part.data, part.ld, depth, columns,
                                                          factors);
      lay_out_right<<<blocks, kThreads, 0, stream.get()>>>(part.data, part.ld, depth, columns,
                                                           factors, right);
      for (std::int64_t r = 0; r < c.rows; r += kRows) {
        const std::int64_t rows = std::min(kRows, c.rows - r);
        const auto of_a = a.block(r, l, rows, depth);
        const dim3 grid(static_cast<unsigned>((rows + kThreads - 1) / kThreads),
                        static_cast<unsigned>(depth));
        lay_out_left<<<grid, kThreads, 0, stream.get()>>>(of_a.data, of_a.ld, rows, depth, left);
        require_cuda(cudaGetLastError(), "parts of a matrix");
        const auto out = c.block(r, j, rows, columns);
        require_blas(
            cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(rows),
                         static_cast<int>(columns), static_cast<int>(3 * depth), &factors->alpha,
                         left, CUDA_R_16F, static_cast<int>(rows), right, CUDA_R_16F,
                         static_cast<int>(3 * depth), &factors->beta, out.data, CUDA_R_32F,
                         static_cast<int>(out.ld), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            "cublasGemmEx");
      }
    }
  }
  return true;
}

}  // namespace strata::blas
