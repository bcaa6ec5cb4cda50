#pragma once
// Where blocks are computed: Device, Queue, Event, Buffer.
//
// Contract:
// * A Device owns memory of a fixed budget and makes in-order Queues. Work put into one queue runs
// in the order in
//   which it was put there; work of different queues is ordered only by Events.
// * Every call of a Queue returns at once; what it started is done when an Event recorded after it
// is done.
// * An Event may only be waited for after it was recorded, so waits point backwards and cannot form
// a cycle.
// * A failure inside a queue (an I/O error, a device error) is kept: later work of the queue is
// skipped, its events
//   still complete, and `synchronize` throws the first failure. Nothing hangs on failure.
// * Work behind an event of another queue that failed or was abandoned finds memory that was not
//   written. A HostDevice skips it, too, and `synchronize` throws the same failure; a CudaDevice
//   may run it (its kernels cannot be taken back).
// * One thread at a time uses a queue, but any may ask `failed`, `abandon` it, and wait for events;
// different queues, and the memory of a Device, may be used by different threads at once.
// * All handles are move-only and release what they hold in destructors that never throw. A Device
// outlives its
//   queues, events and buffers.
// The implementations are HostDevice (device_host.cpp) and CudaDevice (device_cuda.cu); the
// conformance suite tests/device/conformance.hpp holds for both.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace strata {

/// Bytes on a device, or host memory that a device reaches at full speed; released by the
/// destructor.
class Buffer {
 public:
  using Release = std::function<void(std::byte*)>;

  Buffer() = default;
  Buffer(std::byte* data, std::int64_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;  // owns memory
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) release_(data_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    release_.swap(other.release_);
  }

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Release release_;
};

/// A point in a queue's work. Empty until recorded; an empty event is done.
class Event {
 public:
  /// What a backend stores; destroyed with the event.
  class State {
   public:
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    virtual ~State() = default;
    [[nodiscard]] virtual bool done() const = 0;
    virtual void wait() const = 0;
    [[nodiscard]] virtual double seconds() const = 0;
  };

  Event() = default;
  explicit Event(std::unique_ptr<State> state) : state_(std::move(state)) {}

  [[nodiscard]] bool done() const { return state_ == nullptr || state_->done(); }
  /// Blocks the calling thread until the event is done.
  void wait() const {
    if (state_ != nullptr) state_->wait();
  }
  /// When the event was done, in seconds since its device was made. Only for an event that is done.
  [[nodiscard]] double seconds() const { return state_ == nullptr ? 0 : state_->seconds(); }
  [[nodiscard]] const State* state() const noexcept { return state_.get(); }

 private:
  std::unique_ptr<State> state_;
};

enum class CopyDirection : std::uint8_t { host_to_device, device_to_host, device_to_device };

enum class QueuePriority : std::uint8_t { normal, high };

/// An in-order stream of work on one device.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  /// Copies `bytes` bytes. Both regions stay valid and untouched until the copy is done. Between
  /// devices one of them is this queue's and the other is of the same backend.
  virtual void copy(void* destination, const void* source, std::int64_t bytes,
                    CopyDirection direction) = 0;
  /// Runs a host function in the queue's order. What it throws becomes the queue's failure.
  virtual void submit(std::function<void()> function) = 0;
  /// Marks this point of the queue.
  [[nodiscard]] virtual Event record() = 0;
  /// Work put into this queue from now on starts after `event`, which may be of another queue of
  /// this backend.
  virtual void wait(const Event& event) = 0;
  /// Blocks until all work is done; throws the queue's failure, if any, once.
  virtual void synchronize() = 0;
  /// Skips work that has not begun, as far as the backend can; events still complete. For a run
  /// that is given up; `synchronize` ends the skipping.
  virtual void abandon() {}
  /// True if some work of the queue has failed: the rest is being skipped.
  [[nodiscard]] virtual bool failed() const = 0;
};

/// What a device is, before anything is allocated on it.
struct DeviceDescription {
  std::string name;               ///< "host:0", "cuda:1"
  std::string model;              ///< "Intel Xeon …", "NVIDIA H200"
  std::int64_t memory_bytes = 0;  ///< physical memory that is free now
  int compute_queues = 1;         ///< how many fill it
  std::string pci_bus_id{};       ///< "0000:1b:00.0"; empty if it is not on such a bus
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceDescription& description() const = 0;
  /// The bytes that `allocate` may hand out in all.
  [[nodiscard]] virtual std::int64_t budget_bytes() const = 0;
  /// The bytes that are handed out now, and the most that ever were.
  [[nodiscard]] virtual std::int64_t allocated_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t peak_allocated_bytes() const = 0;

  /// Device memory, aligned to 256 bytes, contents undefined. Throws Error{memory}, naming what was
  /// asked and what was left, when the budget or the device does not suffice.
  [[nodiscard]] virtual Buffer allocate(std::int64_t bytes) = 0;
  /// Host memory that this device's queues copy at full speed (pinned for a GPU), readable and
  /// writable by the host and by kernels; not counted in the budget. Throws Error{memory}.
  [[nodiscard]] virtual Buffer allocate_host(std::int64_t bytes) = 0;
  /// Lets this backend's queues copy host memory that exists at full speed, as if it came from
  /// `allocate_host`, until the buffer that is returned is released; the memory outlives that. A
  /// byte is pinned once at a time. Throws Error{memory}, naming what was asked.
  [[nodiscard]] virtual Buffer pin_host(std::byte* data, std::int64_t bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> make_queue(QueuePriority priority) = 0;
};

}  // namespace strata
