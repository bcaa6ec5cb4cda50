#pragma once
// PassingQueue and PassingDevice: they pass every call on, for tests that change some of them.
//
// Contract: as device.hpp, by another queue or device, which they own.

#include <memory>
#include <utility>

#include "device/device.hpp"

namespace strata::test {

class PassingQueue : public Queue {
 public:
  explicit PassingQueue(std::unique_ptr<Queue> inner) : inner_(std::move(inner)) {}

  void copy(void* destination, const void* source, std::int64_t bytes,
            CopyDirection direction) override {
    inner_->copy(destination, source, bytes, direction);
  }
  void submit(std::function<void()> function) override { inner_->submit(std::move(function)); }
  Event record() override { return inner_->record(); }
  void wait(const Event& event) override { inner_->wait(event); }
  void synchronize() override { inner_->synchronize(); }
  void abandon() override { inner_->abandon(); }
  [[nodiscard]] bool failed() const override { return inner_->failed(); }

 protected:
  [[nodiscard]] Queue& inner() { return *inner_; }

 private:
  std::unique_ptr<Queue> inner_;
};

class PassingDevice : public Device {
 public:
  explicit PassingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] const DeviceDescription& description() const override {
    return inner_->description();
  }
  [[nodiscard]] std::int64_t budget_bytes() const override { return inner_->budget_bytes(); }
  [[nodiscard]] std::int64_t allocated_bytes() const override { return inner_->allocated_bytes(); }
  [[nodiscard]] std::int64_t peak_allocated_bytes() const override {
    return inner_->peak_allocated_bytes();
  }
  Buffer allocate(std::int64_t bytes) override { return inner_->allocate(bytes); }
  Buffer allocate_host(std::int64_t bytes) override { return inner_->allocate_host(bytes); }
  Buffer pin_host(std::byte* data, std::int64_t bytes) override {
    return inner_->pin_host(data, bytes);
  }
  std::unique_ptr<Queue> make_queue(QueuePriority priority) override {
    return inner_->make_queue(priority);
  }

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace strata::test
