// Products of tiles in fp8: see fp8_product_cuda.hpp.
//
// Method: cuBLASLt asked once for each shape on each GPU; the answer follows from the shape and the
// version of cuBLAS alone.

#include "kernels/dense/fp8_product_cuda.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "kernels/backend/blas_lt_cuda.hpp"

namespace strata::blas {
namespace {

constexpr std::uint32_t kAlignment = 16;  // bytes, of pointers and columns

/// Row by row k × m is column by column m × k: both operands enter as "transposed, not transposed",
/// the one form that there is in fp8.
class Fp8Product {
 public:
  Fp8Product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t ldc) {
    require_blas(cublasLtMatmulDescCreate(operation_.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const std::int8_t fast = 0;
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
    set(a_, CUDA_R_8F_E4M3, k, m, k);
    set(b_, CUDA_R_8F_E4M3, k, n, k);
    set(c_, CUDA_R_32F, m, n, ldc);
  }

  std::optional<cublasLtMatmulAlgo_t> algorithm(cublasLtHandle_t handle) {
    LtPreference preference;
    require_blas(cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreference");
    const std::size_t workspace = 0;
    (void)cublasLtMatmulPreferenceSetAttribute(
        preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), a_.get(), b_.get(), c_.get(),
                                       c_.get(), preference.get(), 1, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0) return std::nullopt;
    return result.algo;
  }

  cublasStatus_t compute(CudaStream& stream, const cublasLtMatmulAlgo_t& algorithm, float alpha,
                         const void* a, const void* b, float beta, float* c) {
    return cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(stream.blas()), operation_.get(),
                          &alpha, a, a_.get(), b, b_.get(), &beta, c, c_.get(), c, c_.get(),
                          &algorithm, nullptr, 0, stream.get());
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    require_blas(cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
  }
  static void set(LtLayout& layout, cudaDataType_t type, std::int64_t rows, std::int64_t cols,
                  std::int64_t ld) {
    require_blas(cublasLtMatrixLayoutCreate(layout.out(), type, static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(cols), ld),
                 "cublasLtMatrixLayoutCreate");
  }

  LtOperation operation_;
  LtLayout a_;
  LtLayout b_;
  LtLayout c_;
};

/// What cuBLASLt takes for a shape, or nothing.
std::optional<cublasLtMatmulAlgo_t> algorithm_of(CudaStream& stream, Fp8Product& product,
                                                 std::int64_t m, std::int64_t n, std::int64_t k,
                                                 std::int64_t ldc) {
  static std::mutex mutex;
  static std::map<std::array<std::int64_t, 5>, std::optional<cublasLtMatmulAlgo_t>> known;
  int gpu = 0;
  require_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  const std::array<std::int64_t, 5> key{gpu, m, n, k, ldc};
  const std::lock_guard lock(mutex);
  const auto at = known.find(key);
  if (at != known.end()) return at->second;
  // A handle of cuBLAS is one of cuBLASLt too (cuBLAS manual, cublasLtHandle_t).
  const auto found = product.algorithm(reinterpret_cast<cublasLtHandle_t>(stream.blas()));
  known.emplace(key, found);
  return found;
}

bool aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0; }

}  // namespace

bool fp8_product(CudaStream& stream, float alpha, const BlockView& a, const BlockView& b,
                 float beta, MatrixView<float> c, std::int64_t inner) {
  if (inner % kAlignment != 0 || c.rows % kAlignment != 0 || c.cols % kAlignment != 0) return false;
  if (c.ld % 4 != 0 || !aligned(a.data) || !aligned(b.data) || !aligned(c.data)) return false;
  Fp8Product product(c.rows, c.cols, inner, c.ld);
  const auto algorithm = algorithm_of(stream, product, c.rows, c.cols, inner, c.ld);
  if (!algorithm) return false;
  const cublasStatus_t status =
      product.compute(stream, *algorithm, alpha, a.data, b.data, beta, c.data);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  require_blas(status, "cublasLtMatmul");
  return true;
}

}  // namespace strata::blas
