#pragma once
// NumbersThere: doubles in the memory of a device, for measurements of calls on such.
//
// Contract: of the first device that options name; valid as long as the object is.

#include <cstdint>
#include <memory>
#include <span>

#include "run/device_set.hpp"

namespace strata::bench {

class NumbersThere {
 public:
  /// Room for `count` numbers.
  NumbersThere(const RunOptions& options, std::int64_t count) {
    const DeviceChoice choice = choose_all_devices(options.devices).front();
    device_ = backend_named(choice.backend, options.devices)
                  .make_device(choice.indices.front(), (count + 64) * 8);
    queue_ = device_->make_queue(QueuePriority::normal);
    memory_ = device_->allocate(count * 8);
  }
  /// `numbers`, in the place of what was there before.
  double* put(std::span<const double> numbers) {
    queue_->copy(memory_.data(), numbers.data(), std::ssize(numbers) * 8,
                 CopyDirection::host_to_device);
    queue_->synchronize();
    return reinterpret_cast<double*>(memory_.data());
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  Buffer memory_;
};

}  // namespace strata::bench
