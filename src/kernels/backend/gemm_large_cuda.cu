// Large fp64 products: see gemm_large_cuda.hpp.

#include "kernels/backend/gemm_large_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "kernels/backend/blas_lt_cuda.hpp"

namespace strata::blas {
namespace {

constexpr std::int64_t kBlock = 128;      // of C, that the algorithm gives to a multiprocessor
constexpr std::int64_t kBlocksMin = 128;  // about one each
constexpr std::uint32_t kAlignment = 16;  // bytes

/// The product as cuBLASLt describes it.
class Product {
 public:
  Product(cublasOperation_t op_b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda,
          std::int64_t ldb, std::int64_t ldc) {
    require_blas(cublasLtMatmulDescCreate(operation_.out(), CUBLAS_COMPUTE_64F, CUDA_R_64F),
                 "cublasLtMatmulDescCreate");
    require_blas(cublasLtMatmulDescSetAttribute(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSB,
                                                &op_b, sizeof op_b),
                 "cublasLtMatmulDescSetAttribute");
    set(a_, m, k, lda);
    op_b == CUBLAS_OP_N ? set(b_, k, n, ldb) : set(b_, n, k, ldb);
    set(c_, m, n, ldc);
  }

  /// What cuBLAS would take itself, without a workspace.
  std::optional<cublasLtMatmulAlgo_t> algorithm(cublasLtHandle_t handle) {
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    require_blas(cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreference");
    const std::size_t workspace = 0;
    (void)cublasLtMatmulPreferenceSetAttribute(
        preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      (void)cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &kAlignment,
                                                 sizeof kAlignment);
    }
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), a_.get(), b_.get(), c_.get(),
                                       c_.get(), preference.get(), 1, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0) return std::nullopt;
    return result.algo;
  }

  cublasStatus_t subtract(CudaStream& stream, const cublasLtMatmulAlgo_t& algorithm,
                          const double* a, const double* b, double* c) {
    const double minus_one = -1;
    const double one = 1;
    return cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(stream.blas()), operation_.get(),
                          &minus_one, a, a_.get(), b, b_.get(), &one, c, c_.get(), c, c_.get(),
                          &algorithm, nullptr, 0, stream.get());
  }

 private:
  using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  static void set(Layout& layout, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    require_blas(
        cublasLtMatrixLayoutCreate(layout.out(), CUDA_R_64F, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), ld),
        "cublasLtMatrixLayoutCreate");
  }

  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation_;
  Layout a_;
  Layout b_;
  Layout c_;
};

constexpr std::int64_t kRowsMin = 16384;   // of C, that make up for laying out Bᵀ
constexpr std::int64_t kColumnsMin = 512;  // of C
constexpr std::int64_t kDepthMin = 512;    // products of fewer columns are as fast with B
constexpr std::int64_t kDepthMax = 2048;   // at a time
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of the tile, at a time

/// bt ← bᵀ, a tile of 32 × 32 by a thread block.
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose(const double* b, std::int64_t ldb, std::int64_t rows, std::int64_t cols, double* bt,
              std::int64_t ldt) {
  __shared__ double tile[kTile][kTile + 1];
  const std::int64_t r0 = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t c0 = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const int x = static_cast<int>(threadIdx.x);
  for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kTileRows)
    if (r0 + x < rows && c0 + y < cols) tile[y][x] = b[r0 + x + (c0 + y) * ldb];
  __syncthreads();
  for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kTileRows)
    if (c0 + x < cols && r0 + y < rows) bt[c0 + x + (r0 + y) * ldt] = tile[x][y];
}

/// What cuBLAS takes for the product that blocks of 128 × 128 suit best; asked once a GPU.
std::optional<cublasLtMatmulAlgo_t> algorithm_of_large(CudaStream& stream, cublasOperation_t op_b) {
  static std::mutex mutex;
  static std::map<std::pair<int, cublasOperation_t>, std::optional<cublasLtMatmulAlgo_t>> known;
  int gpu = 0;
  require_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  const auto at = known.find({gpu, op_b});
  if (at != known.end()) return at->second;
  constexpr std::int64_t kOrder = 16384;
  Product product(op_b, kOrder, kOrder, kOrder / 2, kOrder, kOrder, kOrder);
  // A handle of cuBLAS is one of cuBLASLt too (cuBLAS manual, cublasLtHandle_t).
  const auto found = product.algorithm(reinterpret_cast<cublasLtHandle_t>(stream.blas()));
  known.emplace(std::pair(gpu, op_b), found);
  return found;
}

bool aligned(MatrixView<const double> x) {
  return reinterpret_cast<std::uintptr_t>(x.data) % kAlignment == 0 &&
         x.ld * static_cast<std::int64_t>(sizeof(double)) % kAlignment == 0;
}

}  // namespace

bool gemm_minus_large(CudaStream& stream, cublasOperation_t op_b, std::int64_t k,
                      MatrixView<const double> a, MatrixView<const double> b,
                      MatrixView<double> c) {
  const auto blocks = [](std::int64_t extent) { return (extent + kBlock - 1) / kBlock; };
  if (k == 0 || blocks(c.rows) * blocks(c.cols) < kBlocksMin) return false;
  if (!aligned(a) || !aligned(b) || !aligned({c.data, c.rows, c.cols, c.ld})) return false;
  const auto algorithm = algorithm_of_large(stream, op_b);
  if (!algorithm) return false;
  Product product(op_b, c.rows, c.cols, k, a.ld, b.ld, c.ld);
  const cublasStatus_t status = product.subtract(stream, *algorithm, a.data, b.data, c.data);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  require_blas(status, "cublasLtMatmul");
  return true;
}

bool gemm_minus_by_transposed(CudaStream& stream, std::int64_t k, MatrixView<const double> a,
                              MatrixView<const double> b, MatrixView<double> c) {
  if (c.rows < kRowsMin || c.cols < kColumnsMin || k < kDepthMin) return false;
  if (!aligned(a) || !aligned({c.data, c.rows, c.cols, c.ld})) return false;
  auto* transposed = static_cast<double*>(stream.operands());
  const std::int64_t slices = (k + kDepthMax - 1) / kDepthMax;
  const std::int64_t deep = ((k + slices - 1) / slices + 1) / 2 * 2;  // even
  const std::int64_t most =
      kOperandBytes / (deep * static_cast<std::int64_t>(sizeof(double))) / kBlock * kBlock;
  for (std::int64_t l = 0; l < k; l += deep) {
    const std::int64_t depth = std::min(deep, k - l);
    for (std::int64_t j = 0; j < c.cols; j += most) {
      const std::int64_t columns = std::min(most, c.cols - j);
      const MatrixView<const double> part = b.block(l, j, depth, columns);
      const std::int64_t ld = (columns + 1) / 2 * 2;
      const dim3 blocks(static_cast<unsigned>((depth + kTile - 1) / kTile),
                        static_cast<unsigned>((columns + kTile - 1) / kTile));
      transpose<<<blocks, dim3(kTile, kTileRows), 0, stream.get()>>>(part.data, part.ld, depth,
                                                                     columns, transposed, ld);
      require_cuda(cudaGetLastError(), "transposed operand");
      const MatrixView<const double> bt(transposed, columns, depth, ld);
      const auto left = a.block(0, l, c.rows, depth);
      const auto out = c.block(0, j, c.rows, columns);
      if (gemm_minus_large(stream, CUBLAS_OP_T, depth, left, bt, out)) continue;
      const double minus_one = -1;
      const double one = 1;
      require_blas(
          cublasDgemm_64(stream.blas(), CUBLAS_OP_N, CUBLAS_OP_T, out.rows, out.cols, depth,
                         &minus_one, left.data, left.ld, bt.data, bt.ld, &one, out.data, out.ld),
          "cublasDgemm");
    }
  }
  return true;
}

}  // namespace strata::blas
