// The table of the CUDA kernels, and what the plugin exports.
//
// Each entry calls its kernel through CudaQueue::attempt: with the queue's GPU current, not at all
// once the queue has failed, and with an error of a launch kept as the queue's failure.

#include "device/device_cuda.hpp"
#include "kernels/backend.hpp"
#include "kernels/covariance.hpp"
#include "kernels/gemm.hpp"
#include "kernels/potrf.hpp"
#include "kernels/potrf_batched.hpp"
#include "kernels/solve.hpp"
#include "kernels/syrk.hpp"
#include "kernels/trsm.hpp"

namespace strata {
namespace {

template <KernelFunction kernel>
void attempt(Queue& queue, const KernelArguments& arguments) {
  static_cast<CudaQueue&>(queue).attempt([&] { kernel(queue, arguments); });
}

template <BatchFunction kernel>
void attempt_batched(Queue& queue, const BatchArguments& arguments) {
  static_cast<CudaQueue&>(queue).attempt([&] { kernel(queue, arguments); });
}

template <class T>
void add(KernelTable& table) {
  constexpr Precision precision = precision_of<T>;
  table.set(Operation::potrf, precision, attempt<potrf_cuda<T>>);
  table.set(Operation::trsm, precision, attempt<trsm_cuda<T>>);
  table.set(Operation::syrk, precision, attempt<syrk_cuda<T>>);
  table.set(Operation::gemm, precision, attempt<gemm_cuda<T>>);
  table.set(Operation::trsm_left, precision, attempt<trsm_left_cuda<T>>);
  table.set(Operation::trsm_left_transposed, precision, attempt<trsm_left_transposed_cuda<T>>);
  table.set(Operation::gemm_left, precision, attempt<gemm_left_cuda<T>>);
  table.set(Operation::gemm_left_transposed, precision, attempt<gemm_left_transposed_cuda<T>>);
  table.set_batched(precision, attempt_batched<potrf_batched_cuda<T>>);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() {
    add<double>(kernels_);
    add<float>(kernels_);
    kernels_.set(Operation::covariance, Precision::fp64, attempt<covariance_cuda_fp64>);
    kernels_.set(Operation::covariance, Precision::fp32, attempt<covariance_cuda_fp32>);
    (void)describe_cuda_devices();  // throws if no GPU answers
  }
  [[nodiscard]] std::string name() const override { return "cuda"; }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override {
    return describe_cuda_devices();
  }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return make_cuda_device(index, budget_bytes);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return cuda_device_owns(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override {
    return cuda_devices_linked(from, to);
  }
  [[nodiscard]] bool on_host() const override { return false; }

 private:
  KernelTable kernels_;
};

}  // namespace
}  // namespace strata

extern "C" const char* strata_cuda_backend_version() { return STRATA_BACKEND_VERSION; }

extern "C" const strata::Backend& strata_cuda_backend() {
  static const strata::CudaBackend backend;
  return backend;
}
