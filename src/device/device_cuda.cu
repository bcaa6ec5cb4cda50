// CudaDevice: queues are non-blocking streams, events are CUDA events with timing.
//
// Method: each call of a queue is one asynchronous call of the CUDA runtime; a status that is not
// success becomes the queue's failure (attempt). Host functions ride in the stream by
// cudaLaunchHostFunc. "Not ready" is an answer and not an error, but the runtime also leaves it as
// the thread's last error, where the check after the next kernel launch would find it; so it is
// cleared where it is received.

#include "device/device_cuda.hpp"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "device/touched_memory_cuda.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

// The compiler of CUDA 13 refuses fmt's checked format strings (base/check.hpp), so messages are
// put together by hand here.
[[noreturn]] void fail_with(ErrorKind kind, const std::string& message) {
  throw Error(kind, "cuda", message);
}

std::string device_name(int gpu) { return "cuda:" + std::to_string(gpu); }

bool ready(cudaError_t status) {
  if (status != cudaErrorNotReady) return true;
  (void)cudaGetLastError();
  return false;
}

class CudaEvent final : public Event::State {
 public:
  CudaEvent(int gpu, CudaEventPool& pool, cudaEvent_t event)
      : gpu_(gpu), pool_(pool), event_(event) {}
  ~CudaEvent() override {
    if (event_ != nullptr) pool_.give_back(event_);
  }

  // An error means that the GPU failed: nothing is left to wait for, and the queue tells.
  [[nodiscard]] bool done() const override {
    return event_ == nullptr || !current() || ready(cudaEventQuery(event_));
  }
  void wait() const override {
    if (event_ != nullptr && current()) (void)cudaEventSynchronize(event_);
  }
  [[nodiscard]] double seconds() const override {
    float milliseconds = 0;
    if (event_ == nullptr || !current() ||
        cudaEventElapsedTime(&milliseconds, pool_.epoch(), event_) != cudaSuccess) {
      (void)cudaGetLastError();
      return 0;
    }
    return 1e-3 * static_cast<double>(milliseconds);
  }

  [[nodiscard]] cudaEvent_t event() const noexcept { return event_; }

 private:
  [[nodiscard]] bool current() const noexcept { return cudaSetDevice(gpu_) == cudaSuccess; }

  int gpu_;
  CudaEventPool& pool_;
  cudaEvent_t event_;  // null if the GPU failed before it was recorded
};

}  // namespace

void require_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  fail_with(ErrorKind::device, std::string(call) + ": " + cudaGetErrorString(status) + " (" +
                                   cudaGetErrorName(status) + ")");
}

void require_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail_with(ErrorKind::device, std::string(call) + ": " + cublasGetStatusString(status));
}

int multiprocessors() {
  int gpu = 0;
  int count = 0;
  require_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  require_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu),
               "multiprocessors");
  return count;
}

CudaEventPool::CudaEventPool(int gpu) : gpu_(gpu) {
  epoch_ = take();
  const cudaError_t status = cudaEventRecord(epoch_, nullptr);
  if (status != cudaSuccess || cudaEventSynchronize(epoch_) != cudaSuccess) {
    (void)cudaEventDestroy(epoch_);
    require_cuda(status, "recording the epoch");
    fail_with(ErrorKind::device, device_name(gpu) + " does not answer");
  }
}

CudaEventPool::~CudaEventPool() {
  (void)cudaSetDevice(gpu_);
  for (cudaEvent_t event : idle_) (void)cudaEventDestroy(event);
  (void)cudaEventDestroy(epoch_);
}

cudaEvent_t CudaEventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      cudaEvent_t event = idle_.back();
      idle_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  require_cuda(cudaSetDevice(gpu_), "cudaSetDevice");
  // Blocking: a thread that waits sleeps, and leaves its core to the threads that read disks.
  require_cuda(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "cudaEventCreate");
  return event;
}

void CudaEventPool::give_back(cudaEvent_t event) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    idle_.push_back(event);
  } catch (...) {  // no memory to remember it
    (void)cudaEventDestroy(event);
  }
}

CudaQueue::CudaQueue(int gpu, QueuePriority priority, CudaEventPool& events)
    : gpu_(gpu), events_(events) {
  make_current();
  main_ = std::make_unique<CudaStream>(priority);
}

CudaQueue::~CudaQueue() {
  (void)cudaSetDevice(gpu_);
  main_.reset();  // waits for the functions in it, which refer to this queue
  urgent_.reset();
  beside_.reset();
  if (order_ != nullptr) (void)cudaEventDestroy(order_);
  if (scratch_ != nullptr) (void)cudaFree(scratch_);
  (void)cudaGetLastError();
}

void CudaQueue::make_current() const { require_cuda(cudaSetDevice(gpu_), "cudaSetDevice"); }

void CudaQueue::keep(std::exception_ptr failure) const noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
}

void* CudaQueue::scratch(std::int64_t bytes) {
  if (bytes > scratch_bytes_) {
    if (scratch_ != nullptr) {  // cudaFree waits for the kernels that use it
      scratch_bytes_ = 0;
      require_cuda(cudaFree(std::exchange(scratch_, nullptr)), "cudaFree");
    }
    const std::int64_t size = std::max(bytes, kScratchBytes);
    require_cuda(cudaMalloc(&scratch_, static_cast<std::size_t>(size)),
                 "allocating scratch memory of a queue");
    scratch_bytes_ = size;
  }
  return scratch_;
}

CudaStream& CudaQueue::urgent() {
  if (!urgent_) urgent_ = std::make_unique<CudaStream>(QueuePriority::high);
  return *urgent_;
}

CudaStream& CudaQueue::beside() {
  if (!beside_) beside_ = std::make_unique<CudaStream>(QueuePriority::high);
  return *beside_;
}

void CudaQueue::order(const CudaStream& from, const CudaStream& to) {
  if (order_ == nullptr) {
    require_cuda(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming), "cudaEventCreate");
  }
  // A wait refers to what was recorded last when it was issued, so one event serves all.
  require_cuda(cudaEventRecord(order_, from.get()), "cudaEventRecord");
  require_cuda(cudaStreamWaitEvent(to.get(), order_, cudaEventWaitDefault), "cudaStreamWaitEvent");
}

void CudaQueue::copy(void* destination, const void* source, std::int64_t bytes,
                     CopyDirection direction) {
  if (bytes <= 0) return;
  // Between devices the addresses say which (unified addressing).
  const cudaMemcpyKind kind = direction == CopyDirection::host_to_device   ? cudaMemcpyHostToDevice
                              : direction == CopyDirection::device_to_host ? cudaMemcpyDeviceToHost
                                                                           : cudaMemcpyDefault;
  attempt([&] {
    require_cuda(
        cudaMemcpyAsync(destination, source, static_cast<std::size_t>(bytes), kind, stream()),
        "cudaMemcpyAsync");
  });
}

void CudaQueue::submit(std::function<void()> function) {
  while (!calls_.empty() && calls_.front()->done.load(std::memory_order_acquire)) {
    calls_.pop_front();
  }
  attempt([&] {
    calls_.push_back(std::make_unique<HostCall>());
    HostCall* call = calls_.back().get();
    call->queue = this;
    call->function = std::move(function);
    const cudaError_t status = cudaLaunchHostFunc(stream(), run_host_call, call);
    if (status != cudaSuccess) calls_.pop_back();
    require_cuda(status, "cudaLaunchHostFunc");
  });
}

void CUDART_CB CudaQueue::run_host_call(void* data) {
  auto* call = static_cast<HostCall*>(data);
  try {
    if (!call->queue->skips()) call->function();
  } catch (...) {
    call->queue->keep(std::current_exception());
  }
  call->function = nullptr;  // what it holds is released before later work of the queue begins
  call->done.store(true, std::memory_order_release);
}

Event CudaQueue::record() {
  cudaEvent_t event = nullptr;
  try {
    make_current();
    event = events_.take();
    require_cuda(cudaEventRecord(event, stream()), "cudaEventRecord");
  } catch (const Error&) {
    keep(std::current_exception());
    if (event != nullptr) events_.give_back(std::exchange(event, nullptr));
  }
  return Event(std::make_unique<CudaEvent>(gpu_, events_, event));
}

void CudaQueue::wait(const Event& event) {
  if (event.state() == nullptr) return;
  const auto* other = dynamic_cast<const CudaEvent*>(event.state());
  if (other == nullptr) {
    fail_with(ErrorKind::misuse, device_name(gpu_) + " cannot wait for another backend's event");
  }
  if (other->event() == nullptr) return;
  try {
    make_current();
    require_cuda(cudaStreamWaitEvent(stream(), other->event(), cudaEventWaitDefault),
                 "cudaStreamWaitEvent");
  } catch (const Error&) {
    keep(std::current_exception());
  }
}

void CudaQueue::synchronize() {
  try {
    make_current();
    // A kernel that failed halfway has not joined what it forked off.
    if (urgent_) require_cuda(cudaStreamSynchronize(urgent_->get()), "cudaStreamSynchronize");
    if (beside_) require_cuda(cudaStreamSynchronize(beside_->get()), "cudaStreamSynchronize");
    require_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    calls_.clear();
  } catch (const Error&) {
    keep(std::current_exception());
  }
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, nullptr);
    failed_.store(false, std::memory_order_release);
    abandoned_.store(false, std::memory_order_release);
  }
  if (failure) std::rethrow_exception(failure);
}

bool CudaQueue::failed() const {
  if (failed_.load(std::memory_order_acquire)) return true;
  try {
    make_current();
    const cudaError_t status = cudaStreamQuery(stream());
    if (ready(status)) require_cuda(status, "the GPU failed");
  } catch (const Error&) {
    keep(std::current_exception());
  }
  return failed_.load(std::memory_order_acquire);
}

namespace {

/// Lets the GPUs that are in use copy from each other directly. Only those: peer access would make
/// a context, and take memory, on every GPU of the machine.
class PeerAccess {
 public:
  void add(int gpu) {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, users] : users_) {
      if (users > 0 && other != gpu) {
        enable(gpu, other);
        enable(other, gpu);
      }
    }
    ++users_[gpu];
  }
  void remove(int gpu) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(gpu);
    if (found != users_.end()) --found->second;
  }

  /// Whether `from` reaches the memory of `to`; of GPUs that are not in use yet, whether it could.
  [[nodiscard]] bool reaches(int from, int to) {
    const std::lock_guard lock(mutex_);
    const auto tried = enabled_.find({from, to});
    return tried == enabled_.end() ? possible(from, to) : tried->second;
  }

 private:
  [[nodiscard]] static bool possible(int from, int to) {
    int answer = 0;
    const bool known = cudaDeviceCanAccessPeer(&answer, from, to) == cudaSuccess;
    (void)cudaGetLastError();
    return known && answer != 0;
  }
  /// Once: a context keeps it, and refuses to do it again. Without it copies go through the host.
  void enable(int from, int to) {
    bool& enabled = enabled_.try_emplace({from, to}, false).first->second;
    if (enabled || !possible(from, to) || cudaSetDevice(from) != cudaSuccess) return;
    const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
    enabled = status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
    (void)cudaGetLastError();
  }

  std::mutex mutex_;
  std::map<int, int> users_;
  std::map<std::pair<int, int>, bool> enabled_;  // whether it was, where that was tried
};

PeerAccess& peer_access() {
  static PeerAccess instance;
  return instance;
}

/// What is handed out. Shared with the buffers, which give their bytes back.
struct Account {
  std::mutex mutex;
  std::int64_t allocated = 0;
  std::int64_t peak = 0;

  void give_back(std::int64_t bytes) {
    const std::lock_guard lock(mutex);
    allocated -= bytes;
  }
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int gpu, DeviceDescription description, std::int64_t budget)
      : gpu_(gpu), description_(std::move(description)), budget_(budget), events_(gpu) {
    peer_access().add(gpu);
  }
  ~CudaDevice() override { peer_access().remove(gpu_); }

  [[nodiscard]] const DeviceDescription& description() const override { return description_; }
  [[nodiscard]] std::int64_t budget_bytes() const override { return budget_; }
  [[nodiscard]] std::int64_t allocated_bytes() const override {
    const std::lock_guard lock(account_->mutex);
    return account_->allocated;
  }
  [[nodiscard]] std::int64_t peak_allocated_bytes() const override {
    const std::lock_guard lock(account_->mutex);
    return account_->peak;
  }

  Buffer allocate(std::int64_t bytes) override {
    require_size(bytes);
    const std::lock_guard lock(account_->mutex);
    const std::int64_t left = budget_ - account_->allocated;
    if (bytes > left) {
      fail_with(ErrorKind::memory, description_.name + ": " + format_bytes(bytes) + " asked, " +
                                       format_bytes(left) + " left of a budget of " +
                                       format_bytes(budget_));
    }
    void* data = nullptr;
    require_cuda(cudaSetDevice(gpu_), "cudaSetDevice");
    require_memory(cudaMalloc(&data, size_of(bytes)), bytes, "of device memory");
    account_->allocated += bytes;
    account_->peak = std::max(account_->peak, account_->allocated);
    return {static_cast<std::byte*>(data), bytes,
            [gpu = gpu_, account = account_, bytes](std::byte* memory) {
              (void)cudaSetDevice(gpu);
              (void)cudaFree(memory);
              (void)cudaGetLastError();
              account->give_back(bytes);
            }};
  }

  Buffer allocate_host(std::int64_t bytes) override {
    require_size(bytes);
    require_cuda(cudaSetDevice(gpu_), "cudaSetDevice");
    if (Buffer touched = allocate_touched(bytes); touched.data() != nullptr) return touched;
    void* data = nullptr;
    require_memory(
        cudaHostAlloc(&data, size_of(bytes), cudaHostAllocPortable | cudaHostAllocMapped), bytes,
        "of pinned host memory");
    return {static_cast<std::byte*>(data), bytes, [](std::byte* memory) {
              (void)cudaFreeHost(memory);
              (void)cudaGetLastError();
            }};
  }

  Buffer pin_host(std::byte* data, std::int64_t bytes) override {
    require_size(bytes);
    if (bytes == 0) return {};
    require_cuda(cudaSetDevice(gpu_), "cudaSetDevice");
    const cudaError_t status =
        cudaHostRegister(data, size_of(bytes), cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (status != cudaSuccess) {  // whatever the reason, the memory is there and is not pinned
      (void)cudaGetLastError();
      fail_with(ErrorKind::memory, description_.name + ": the system refused to pin " +
                                       format_bytes(bytes) +
                                       " of host memory: " + cudaGetErrorString(status));
    }
    return {data, bytes, [](std::byte* memory) {
              (void)cudaHostUnregister(memory);
              (void)cudaGetLastError();
            }};
  }

  std::unique_ptr<Queue> make_queue(QueuePriority priority) override {
    return std::make_unique<CudaQueue>(gpu_, priority, events_);
  }

 private:
  static std::size_t size_of(std::int64_t bytes) {
    return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  }
  void require_size(std::int64_t bytes) const {
    if (bytes < 0) {
      fail_with(ErrorKind::misuse,
                description_.name + ": " + std::to_string(bytes) + " bytes asked");
    }
  }
  void require_memory(cudaError_t status, std::int64_t bytes, const char* what) const {
    if (status != cudaErrorMemoryAllocation) {
      require_cuda(status, what);
      return;
    }
    (void)cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    (void)cudaMemGetInfo(&free_bytes, &total_bytes);
    fail_with(ErrorKind::memory, description_.name + ": the system refused " + format_bytes(bytes) +
                                     " " + what + "; " +
                                     format_bytes(static_cast<std::int64_t>(free_bytes)) +
                                     " are free on the device");
  }

  int gpu_;
  DeviceDescription description_;
  std::int64_t budget_;
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
  CudaEventPool events_;
};

int count_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    fail_with(ErrorKind::device, std::string("no GPU answers: ") + cudaGetErrorString(status));
  }
  if (count == 0) fail_with(ErrorKind::device, "the driver shows no GPU");
  return count;
}

DeviceDescription describe(int gpu) {
  cudaDeviceProp properties{};
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  require_cuda(cudaSetDevice(gpu), "cudaSetDevice");
  require_cuda(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  require_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  DeviceDescription description;
  description.name = device_name(gpu);
  description.model = properties.name;
  description.memory_bytes =
      std::max<std::int64_t>(0, static_cast<std::int64_t>(free_bytes) - kReserveBytes);
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), gpu) == cudaSuccess) {
    description.pci_bus_id = bus_id.data();
  }
  (void)cudaGetLastError();
  // Two queues of 2048² products fill an H200 (55 TFLOP/s; four and eight gain nothing).
  description.compute_queues = 2;
  return description;
}

}  // namespace

std::vector<DeviceDescription> describe_cuda_devices() {
  std::vector<DeviceDescription> descriptions;
  const int count = count_gpus();
  for (int gpu = 0; gpu < count; ++gpu) descriptions.push_back(describe(gpu));
  return descriptions;
}

bool cuda_device_owns(int gpu, const void* first, std::int64_t bytes) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, first) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  if (attributes.type != cudaMemoryTypeDevice || attributes.device != gpu) return false;
  // Only the driver knows how far the allocation goes; it is asked without linking it.
  if (cudaSetDevice(gpu) != cudaSuccess) return false;  // the driver answers for the current one
  using GetRange = CUresult (*)(CUdeviceptr*, std::size_t*, CUdeviceptr);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  CUdeviceptr base = 0;
  std::size_t size = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(first);
  if (reinterpret_cast<GetRange>(function)(&base, &size, address) != CUDA_SUCCESS) return false;
  return bytes >= 0 && static_cast<std::size_t>(bytes) <= size - (address - base);
}

bool cuda_devices_linked(int from, int to) { return peer_access().reaches(to, from); }

std::unique_ptr<Device> make_cuda_device(int gpu, std::int64_t budget_bytes) {
  const int count = count_gpus();
  if (gpu < 0 || gpu >= count) {
    fail_with(ErrorKind::device, "there is no " + device_name(gpu) + ": the driver shows " +
                                     std::to_string(count) + " of them");
  }
  if (budget_bytes < 0) {
    fail_with(ErrorKind::misuse, "a budget cannot be " + std::to_string(budget_bytes) + " bytes");
  }
  DeviceDescription description = describe(gpu);
  if (budget_bytes > description.memory_bytes) {
    fail_with(ErrorKind::memory, description.name + ": " + format_bytes(budget_bytes) + " asked, " +
                                     format_bytes(description.memory_bytes) + " are free");
  }
  return std::make_unique<CudaDevice>(gpu, std::move(description), budget_bytes);
}

}  // namespace strata
