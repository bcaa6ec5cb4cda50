#pragma once
// PinnedBackend: CPU devices that copy as GPUs do, from and to pinned host memory only.
//
// Contract: it passes everything on to another backend (the host's, or one with faults), and
// * is not `on_host`: no queue reads or writes a store, all goes by copies;
// * a copy whose host side does not lie within one piece of memory of `allocate_host` or `pin_host`
//   fails in its queue, Error{device}: "copy of N bytes that are not pinned";
// * each copy between host and device first sleeps `seconds_slow` in its queue.
// Device memory is not told from pageable memory: what is checked is the host's side of a copy.

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "kernels/backend/backend.hpp"
#include "run/pinned_ranges.hpp"
#include "tests/support/passing_device.hpp"

namespace strata::test {

/// What the backend and its devices share.
struct PinnedLedger {
  PinnedRanges ranges;
  std::atomic<std::int64_t> pinned_bytes = 0;    ///< by `pin_host`, now
  std::atomic<std::int64_t> most_allocated = 0;  ///< by `allocate_host`, in all
  std::atomic<std::int64_t> copies = 0;          ///< between host and device
  double seconds_slow = 0;
};

class PinnedQueue final : public PassingQueue {
 public:
  PinnedQueue(std::unique_ptr<Queue> inner, std::shared_ptr<PinnedLedger> ledger)
      : PassingQueue(std::move(inner)), ledger_(std::move(ledger)) {}

  void copy(void* destination, const void* source, std::int64_t bytes,
            CopyDirection direction) override {
    if (direction != CopyDirection::device_to_device) check(destination, source, bytes, direction);
    PassingQueue::copy(destination, source, bytes, direction);
  }

 private:
  void check(const void* destination, const void* source, std::int64_t bytes,
             CopyDirection direction) {
    ++ledger_->copies;
    const void* host = direction == CopyDirection::host_to_device ? source : destination;
    const PinnedRanges::Answer answer =
        ledger_->ranges.at(static_cast<const std::byte*>(host), bytes);
    const bool good = bytes <= 0 || (answer.pinned && answer.bytes >= bytes);
    const double slow = ledger_->seconds_slow;
    if (good && slow <= 0) return;
    inner().submit([good, bytes, slow] {
      if (!good) fail(ErrorKind::device, "test", "copy of {} bytes that are not pinned", bytes);
      std::this_thread::sleep_for(std::chrono::duration<double>(slow));
    });
  }

  std::shared_ptr<PinnedLedger> ledger_;
};

class PinnedDevice final : public PassingDevice {
 public:
  PinnedDevice(std::unique_ptr<Device> inner, std::shared_ptr<PinnedLedger> ledger)
      : PassingDevice(std::move(inner)), ledger_(std::move(ledger)) {}

  Buffer allocate_host(std::int64_t bytes) override {
    ledger_->most_allocated += bytes;
    return noted(PassingDevice::allocate_host(bytes), 0);
  }
  Buffer pin_host(std::byte* data, std::int64_t bytes) override {
    return noted(PassingDevice::pin_host(data, bytes), bytes);
  }
  std::unique_ptr<Queue> make_queue(QueuePriority priority) override {
    return std::make_unique<PinnedQueue>(PassingDevice::make_queue(priority), ledger_);
  }

 private:
  [[nodiscard]] Buffer noted(Buffer buffer, std::int64_t pinned) const {
    std::byte* data = buffer.data();
    const std::int64_t bytes = buffer.bytes();
    ledger_->ranges.add(data, bytes);
    ledger_->pinned_bytes += pinned;
    auto held = std::make_shared<Buffer>(std::move(buffer));
    return {data, bytes, [held, ledger = ledger_, pinned](std::byte* memory) mutable {
              ledger->ranges.remove(memory);
              ledger->pinned_bytes -= pinned;
              held.reset();
            }};
  }

  std::shared_ptr<PinnedLedger> ledger_;
};

class PinnedBackend final : public Backend {
 public:
  explicit PinnedBackend(const Backend& inner = host_backend()) : inner_(inner) {}

  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override { return inner_.devices(); }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return std::make_unique<PinnedDevice>(inner_.make_device(index, budget_bytes), ledger_);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return inner_.kernels(); }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return inner_.reaches(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override { return inner_.linked(from, to); }
  [[nodiscard]] bool on_host() const override { return false; }
  [[nodiscard]] DeviceKind kind() const override { return inner_.kind(); }

  [[nodiscard]] PinnedLedger& ledger() const { return *ledger_; }

 private:
  const Backend& inner_;
  std::shared_ptr<PinnedLedger> ledger_ = std::make_shared<PinnedLedger>();
};

}  // namespace strata::test
