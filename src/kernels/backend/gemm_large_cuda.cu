// Large fp64 products: see gemm_large_cuda.hpp.

#include "kernels/backend/gemm_large_cuda.hpp"

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

}  // namespace strata::blas
