#pragma once
// CudaDevice and CudaQueue: a GPU behind the interface of device.hpp. Included by .cu files only.
//
// Contract: as device.hpp, and in addition
// * a queue is a non-blocking stream; every call first makes the queue's GPU current on the calling
//   thread, so threads and queues may be mixed freely (one thread at a time for each queue);
// * kernels reach the stream by `stream()` and cuBLAS by `main().blas()`: one handle and one
//   workspace a stream, made when first asked for, so that copy queues have none. The workspace
//   (`kBlasWorkspaceBytes`) is not part of the device's budget; what queues, cuBLAS and the driver
//   take beside the budget is `kReserveBytes`, which the free memory of a DeviceDescription already
//   leaves out;
// * functions given to `submit` must not call CUDA, and functions of different queues may run one
// at
//   a time: none may wait for another;
// * a failure of the GPU itself is sticky: every later call fails, all events are done, and each
//   `synchronize` says so. When a *host function* throws, functions behind it are skipped and so is
//   all that is put into the queue from then on; copies and kernels already in the stream still run
//   (their results mean nothing);
// * times of events come from one epoch event a device. CUDA reports them as single-precision
//   milliseconds: 1 µs at 10 s, 60 µs at 1000 s.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.hpp"

namespace strata {

/// What NVIDIA advises for cuBLAS on Hopper (cuBLAS manual, cublasSetWorkspace).
inline constexpr std::int64_t kBlasWorkspaceBytes = std::int64_t{32} << 20;
/// What products make of their operands, at a time.
inline constexpr std::int64_t kOperandBytes = std::int64_t{32} << 20;
/// The least that a queue takes for the bookkeeping of its kernels, once one asks for it.
inline constexpr std::int64_t kScratchBytes = std::int64_t{1} << 20;
/// Left free beside the budget: workspaces of up to eight streams, operands of some of them, and
/// the code of cuBLAS.
inline constexpr std::int64_t kReserveBytes = std::int64_t{512} << 20;

/// Throws Error{device} with CUDA's own words unless `status` is success; `call` says what was
/// tried.
void require_cuda(cudaError_t status, const char* call);
void require_blas(cublasStatus_t status, const char* call);

/// Multiprocessors of the current GPU. Throws Error{device}.
[[nodiscard]] int multiprocessors();

/// Events are slow to create (microseconds) and a run records one for each step: they are used
/// again. Also keeps the epoch that their times count from. Thread-safe.
class CudaEventPool {
 public:
  explicit CudaEventPool(int gpu);
  CudaEventPool(const CudaEventPool&) = delete;  // owns events
  CudaEventPool& operator=(const CudaEventPool&) = delete;
  ~CudaEventPool();

  [[nodiscard]] cudaEvent_t take();
  void give_back(cudaEvent_t event) noexcept;
  [[nodiscard]] cudaEvent_t epoch() const noexcept { return epoch_; }

 private:
  int gpu_;
  cudaEvent_t epoch_ = nullptr;
  std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

/// A non-blocking stream with its own handle and workspace of cuBLAS, both made when first asked
/// for. The GPU it was made on is current at every call. Throws Error{device}.
class CudaStream {
 public:
  explicit CudaStream(QueuePriority priority);
  CudaStream(const CudaStream&) = delete;  // owns a stream
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream();

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Its pointers to scalars are host pointers.
  [[nodiscard]] cublasHandle_t blas();
  /// kOperandBytes of device memory, made when first asked for; used in the order of the stream.
  /// Not part of the budget.
  [[nodiscard]] void* operands();

 private:
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  void* workspace_ = nullptr;
  void* operands_ = nullptr;
};

class CudaQueue final : public Queue {
 public:
  /// `events` outlives the queue.
  CudaQueue(int gpu, QueuePriority priority, CudaEventPool& events);
  ~CudaQueue() override;

  void copy(void* destination, const void* source, std::int64_t bytes,
            CopyDirection direction) override;
  void submit(std::function<void()> function) override;
  [[nodiscard]] Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void abandon() override { abandoned_.store(true, std::memory_order_release); }
  [[nodiscard]] bool failed() const override;

  /// For kernels; the queue's GPU is current while a kernel of the table is called.
  [[nodiscard]] CudaStream& main() noexcept { return *main_; }
  [[nodiscard]] cudaStream_t stream() const noexcept { return main_->get(); }

  /// At least `bytes` of device memory for the bookkeeping of kernels of this queue, contents
  /// undefined; what an earlier kernel of the queue uses of it, it has finished with when a later
  /// one begins. Not part of the budget. Valid until the next call. Throws Error{device}.
  [[nodiscard]] void* scratch(std::int64_t bytes);
  /// A stream of the highest priority, for work that a kernel of the table forks off and joins
  /// before it returns. Throws Error{device}.
  [[nodiscard]] CudaStream& urgent();
  /// Another one, beside which both go on.
  [[nodiscard]] CudaStream& beside();
  /// What is put into `to` from now on starts after what is in `from` now; both belong to this
  /// queue.
  void order(const CudaStream& from, const CudaStream& to);

  /// Calls `issue` with the queue's GPU current, or skips it if the queue has failed; what it
  /// throws becomes the queue's failure. How a kernel table calls a kernel.
  template <class F>
  void attempt(F&& issue) {
    if (skips()) return;
    try {
      make_current();
      issue();
    } catch (...) {
      keep(std::current_exception());
    }
  }

 private:
  /// A function on its way through the stream. CUDA drops functions of a failed context without a
  /// call, so the queue owns them.
  struct HostCall {
    CudaQueue* queue = nullptr;
    std::function<void()> function;
    std::atomic<bool> done{false};
  };
  static void CUDART_CB run_host_call(void* call);

  [[nodiscard]] bool skips() const noexcept {
    return failed_.load(std::memory_order_acquire) || abandoned_.load(std::memory_order_acquire);
  }
  void make_current() const;
  void keep(std::exception_ptr failure) const noexcept;  // the first one stays

  int gpu_;
  CudaEventPool& events_;
  std::unique_ptr<CudaStream> main_;
  std::unique_ptr<CudaStream> urgent_;
  std::unique_ptr<CudaStream> beside_;
  void* scratch_ = nullptr;
  std::int64_t scratch_bytes_ = 0;
  cudaEvent_t order_ = nullptr;
  std::deque<std::unique_ptr<HostCall>> calls_;
  mutable std::mutex mutex_;  // of failure_
  mutable std::exception_ptr failure_;
  mutable std::atomic<bool> failed_{false};
  std::atomic<bool> abandoned_{false};
};

/// The GPUs the driver shows, in its order. Throws Error{device} when no driver or GPU answers.
[[nodiscard]] std::vector<DeviceDescription> describe_cuda_devices();

/// True if [first, first + bytes) lies in one allocation of the memory of GPU `gpu`.
[[nodiscard]] bool cuda_device_owns(int gpu, const void* first, std::int64_t bytes);

/// True if GPU `to` can read the memory of GPU `from` directly.
[[nodiscard]] bool cuda_devices_linked(int from, int to);

/// GPU `gpu` with a budget. Throws Error{device} if there is no such GPU, Error{memory} naming what
/// was asked and what is free if the budget does not fit.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int gpu, std::int64_t budget_bytes);

}  // namespace strata
