#pragma once
// FaultBackend: devices that die and allocations that are refused, when and where a test says.
//
// Contract. It passes every call on to the host backend, and may do exactly these wrongs:
// * `dying_device` dies at its operation `dies_at` (copies and functions put into its queues,
// counted
//   from 1 over all of them): that one and all later ones fail in their queue with Error{device},
//   "injected: host:1 died at operation 7"; events complete. So it stays until `heal()`. With
//   `throws` the call itself fails.
// * the allocation number `refused_device` (of device memory) or `refused_host` (of host memory),
// or
//   the pinning of host memory number `refused_pin`, each counted from 1 over all devices, throws
//   Error{memory}: "injected: allocation 1 refused".
// * the first operation of each device is held back until `meet` devices are at theirs (or five
//   seconds have passed, which it remembers as `missed`): one thread for all of them cannot do it.
// It counts the buffers that are alive and remembers which threads put operations into the queues
// of a device. With no fault set it is the host backend. One thread at a time for each device.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "kernels/backend/backend.hpp"
#include "tests/support/passing_device.hpp"

namespace strata::test {

struct DeviceFaults {
  int dying_device = -1;
  std::int64_t dies_at = 0;
  std::int64_t refused_device = 0;
  std::int64_t refused_host = 0;
  std::int64_t refused_pin = 0;
  int meet = 0;
  bool throws = false;  ///< a dead device throws where it is called, and not in its queue
};

/// What the backend and its devices share.
struct FaultLedger {
  DeviceFaults faults;
  std::atomic<std::int64_t> device_allocations = 0;
  std::atomic<std::int64_t> host_allocations = 0;
  std::atomic<std::int64_t> pins = 0;
  std::atomic<std::int64_t> buffers = 0;  ///< alive now
  std::mutex mutex;
  std::condition_variable met;
  int waiting = 0;
  bool missed = false;

  /// Called by a device's first operation.
  void meet() {
    std::unique_lock lock(mutex);
    ++waiting;
    met.notify_all();
    missed |= !met.wait_for(lock, std::chrono::seconds(5), [&] { return waiting >= faults.meet; });
  }
};

/// What was put into the queues of one device.
struct FaultOperations {
  std::int64_t count = 0;
  std::set<std::thread::id> threads;
};

class FaultQueue final : public PassingQueue {
 public:
  /// `operations`: of all queues of the device.
  FaultQueue(std::unique_ptr<Queue> inner, int device, std::shared_ptr<FaultLedger> ledger,
             std::shared_ptr<FaultOperations> operations)
      : PassingQueue(std::move(inner)),
        device_(device),
        ledger_(std::move(ledger)),
        operations_(std::move(operations)) {}

  void copy(void* destination, const void* source, std::int64_t bytes,
            CopyDirection direction) override {
    if (!dies()) PassingQueue::copy(destination, source, bytes, direction);
  }
  void submit(std::function<void()> function) override {
    if (!dies()) PassingQueue::submit(std::move(function));
  }

 private:
  bool dies() {
    const DeviceFaults& faults = ledger_->faults;
    const std::int64_t count = ++operations_->count;
    operations_->threads.insert(std::this_thread::get_id());
    if (count == 1 && faults.meet > 0) ledger_->meet();
    if (device_ != faults.dying_device || faults.dies_at == 0 || count < faults.dies_at)
      return false;
    const auto die = [device = device_, at = faults.dies_at] {
      fail(ErrorKind::device, "fault", "injected: host:{} died at operation {}", device, at);
    };
    if (faults.throws) die();
    inner().submit(die);
    return true;
  }

  int device_;
  std::shared_ptr<FaultLedger> ledger_;
  std::shared_ptr<FaultOperations> operations_;
};

class FaultDevice final : public PassingDevice {
 public:
  FaultDevice(std::unique_ptr<Device> inner, int index, std::shared_ptr<FaultLedger> ledger,
              std::shared_ptr<FaultOperations> operations)
      : PassingDevice(std::move(inner)),
        index_(index),
        ledger_(std::move(ledger)),
        operations_(std::move(operations)) {}

  Buffer allocate(std::int64_t bytes) override {
    refuse(++ledger_->device_allocations, ledger_->faults.refused_device);
    return counted(PassingDevice::allocate(bytes));
  }
  Buffer allocate_host(std::int64_t bytes) override {
    refuse(++ledger_->host_allocations, ledger_->faults.refused_host);
    return counted(PassingDevice::allocate_host(bytes));
  }
  Buffer pin_host(std::byte* data, std::int64_t bytes) override {
    refuse(++ledger_->pins, ledger_->faults.refused_pin);
    return counted(PassingDevice::pin_host(data, bytes));
  }
  std::unique_ptr<Queue> make_queue(QueuePriority priority) override {
    return std::make_unique<FaultQueue>(PassingDevice::make_queue(priority), index_, ledger_,
                                        operations_);
  }

 private:
  static void refuse(std::int64_t count, std::int64_t refused) {
    require(count != refused, ErrorKind::memory, "fault", "injected: allocation {} refused", count);
  }
  [[nodiscard]] Buffer counted(Buffer buffer) const {
    ++ledger_->buffers;
    std::byte* data = buffer.data();
    const std::int64_t bytes = buffer.bytes();
    auto held = std::make_shared<Buffer>(std::move(buffer));
    return {data, bytes, [held, ledger = ledger_](std::byte*) mutable {
              held.reset();
              --ledger->buffers;
            }};
  }

  int index_;
  std::shared_ptr<FaultLedger> ledger_;
  std::shared_ptr<FaultOperations> operations_;
};

class FaultBackend final : public Backend {
 public:
  /// devices() tells of so many; any that is asked for can be made.
  explicit FaultBackend(int devices = 1) : descriptions_(static_cast<std::size_t>(devices)) {}

  [[nodiscard]] std::string name() const override { return host_backend().name(); }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override {
    return std::vector<DeviceDescription>(descriptions_, host_backend().devices().front());
  }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    auto operations = std::make_shared<FaultOperations>();
    operations_.push_back(operations);
    return std::make_unique<FaultDevice>(host_backend().make_device(index, budget_bytes), index,
                                         ledger_, operations);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return host_backend().kernels(); }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return host_backend().reaches(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override {
    return host_backend().linked(from, to);
  }
  [[nodiscard]] bool on_host() const override { return true; }
  [[nodiscard]] DeviceKind kind() const override { return host_backend().kind(); }

  /// From now on these wrongs, and counts from 1. Not while anything runs.
  void set(const DeviceFaults& faults) {
    ledger_->faults = faults;
    ledger_->device_allocations = 0;
    ledger_->host_allocations = 0;
    ledger_->pins = 0;
    ledger_->waiting = 0;
    ledger_->missed = false;
    for (const auto& operations : operations_) *operations = {};
  }
  void heal() { set({}); }
  /// How many devices have been made.
  [[nodiscard]] std::size_t made() const { return operations_.size(); }
  /// Operations of the device that was made as number `d`, since `set`.
  [[nodiscard]] std::int64_t operations(std::size_t d) const { return operations_[d]->count; }
  [[nodiscard]] const std::set<std::thread::id>& threads(std::size_t d) const {
    return operations_[d]->threads;
  }
  /// Whether a device waited in vain for the others.
  [[nodiscard]] bool missed() const { return ledger_->missed; }
  [[nodiscard]] std::int64_t buffers() const { return ledger_->buffers; }

 private:
  std::size_t descriptions_;
  std::shared_ptr<FaultLedger> ledger_ = std::make_shared<FaultLedger>();
  mutable std::vector<std::shared_ptr<FaultOperations>> operations_;
};

}  // namespace strata::test
