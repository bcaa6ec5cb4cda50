// CudaStream: a stream, cuBLAS on it, and the memory of both. See device_cuda.hpp.

#include "device/device_cuda.hpp"

namespace strata {

CudaStream::CudaStream(QueuePriority priority) {
  int least = 0;
  int greatest = 0;
  require_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
  require_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                            priority == QueuePriority::high ? greatest : least),
               "cudaStreamCreate");
}

CudaStream::~CudaStream() {
  (void)cudaStreamSynchronize(stream_);
  if (blas_ != nullptr) (void)cublasDestroy(blas_);
  if (workspace_ != nullptr) (void)cudaFree(workspace_);
  if (operands_ != nullptr) (void)cudaFree(operands_);
  (void)cudaStreamDestroy(stream_);
}

cublasHandle_t CudaStream::blas() {
  if (blas_ != nullptr) return blas_;
  if (workspace_ == nullptr) {
    require_cuda(cudaMalloc(&workspace_, static_cast<std::size_t>(kBlasWorkspaceBytes)),
                 "allocating the workspace of cuBLAS");
  }
  cublasHandle_t handle = nullptr;
  require_blas(cublasCreate(&handle), "cublasCreate");
  // In this order: setting the stream would put the default workspace back.
  cublasStatus_t status = cublasSetStream(handle, stream_);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasSetWorkspace(handle, workspace_, static_cast<std::size_t>(kBlasWorkspaceBytes));
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    (void)cublasDestroy(handle);
    require_blas(status, "giving cuBLAS its stream and workspace");
  }
  blas_ = handle;
  return blas_;
}

void* CudaStream::operands() {
  if (operands_ == nullptr)
    require_cuda(cudaMalloc(&operands_, static_cast<std::size_t>(kOperandBytes)),
                 "cudaMalloc of operands");
  return operands_;
}

}  // namespace strata
