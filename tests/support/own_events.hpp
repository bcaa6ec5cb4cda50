#pragma once
// OwnEventsBackend: a backend whose queues take no events but their own.
//
// Contract: it passes everything on to another backend, but an event belongs to the backend that
// recorded it, and a queue that is told to wait for another one's fails: Error{device}, "an event
// of another backend", thrown by `wait`. That is what a GPU's queues and the host's are to each
// other.

#include <memory>
#include <utility>

#include "base/check.hpp"
#include "kernels/backend/backend.hpp"
#include "tests/support/passing_device.hpp"

namespace strata::test {

class OwnEventsBackend final : public Backend {
 public:
  explicit OwnEventsBackend(const Backend& inner) : inner_(inner) {}

  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override { return inner_.devices(); }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return std::make_unique<OwnDevice>(inner_.make_device(index, budget_bytes), this);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return inner_.kernels(); }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return inner_.reaches(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override { return inner_.linked(from, to); }
  [[nodiscard]] bool on_host() const override { return inner_.on_host(); }
  [[nodiscard]] DeviceKind kind() const override { return inner_.kind(); }

 private:
  class OwnEvent final : public Event::State {
   public:
    OwnEvent(Event inner, const OwnEventsBackend* owner)
        : inner_(std::move(inner)), owner_(owner) {}
    [[nodiscard]] bool done() const override { return inner_.done(); }
    void wait() const override { inner_.wait(); }
    [[nodiscard]] double seconds() const override { return inner_.seconds(); }

    [[nodiscard]] const Event& inner() const { return inner_; }
    [[nodiscard]] const OwnEventsBackend* owner() const { return owner_; }

   private:
    Event inner_;
    const OwnEventsBackend* owner_;
  };

  class OwnQueue final : public PassingQueue {
   public:
    OwnQueue(std::unique_ptr<Queue> inner, const OwnEventsBackend* owner)
        : PassingQueue(std::move(inner)), owner_(owner) {}
    Event record() override {
      return Event(std::make_unique<OwnEvent>(PassingQueue::record(), owner_));
    }
    void wait(const Event& event) override {
      if (event.state() == nullptr) return;
      const auto* own = dynamic_cast<const OwnEvent*>(event.state());
      require(own != nullptr && own->owner() == owner_, ErrorKind::device, "test",
              "an event of another backend");
      PassingQueue::wait(own->inner());
    }

   private:
    const OwnEventsBackend* owner_;
  };

  class OwnDevice final : public PassingDevice {
   public:
    OwnDevice(std::unique_ptr<Device> inner, const OwnEventsBackend* owner)
        : PassingDevice(std::move(inner)), owner_(owner) {}
    std::unique_ptr<Queue> make_queue(QueuePriority priority) override {
      return std::make_unique<OwnQueue>(PassingDevice::make_queue(priority), owner_);
    }

   private:
    const OwnEventsBackend* owner_;
  };

  const Backend& inner_;
};

}  // namespace strata::test
