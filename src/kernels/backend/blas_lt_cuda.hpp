#pragma once
// What owns the descriptions that cuBLASLt asks for. Only for *_cuda.cu.

#include <cublasLt.h>

namespace strata::blas {

template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;  // owns the handle
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) (void)kDestroy(handle_);
  }
  Handle* out() { return &handle_; }
  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using LtOperation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using LtLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using LtPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

}  // namespace strata::blas
