#pragma once
// Matrices in the memory of a device, for what works on them where they lie.
//
// Contract: one device of a backend; what was put is there until this is destroyed.

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "strata/matrix_view.hpp"
#include "tests/support/backends.hpp"

namespace strata::test {

class DeviceMemory {
 public:
  explicit DeviceMemory(const std::string& backend, std::int64_t bytes = std::int64_t{16} << 20,
                        int index = 0)
      : device_(backend_of(backend).make_device(index, bytes)),
        queue_(device_->make_queue(QueuePriority::normal)) {}

  /// A rows × cols matrix, whose columns lie ld apart in `values`.
  template <class T>
  MatrixView<T> put(const std::vector<T>& values, std::int64_t rows, std::int64_t cols,
                    std::int64_t ld) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    buffers_.push_back(device_->allocate(bytes + 64));
    queue_->copy(buffers_.back().data(), values.data(), bytes, CopyDirection::host_to_device);
    queue_->synchronize();
    return {reinterpret_cast<T*>(buffers_.back().data()), rows, cols, ld};
  }
  /// Other values in the place of those that were put.
  template <class T>
  void set(MatrixView<T> a, const std::vector<T>& values) {
    queue_->copy(a.data, values.data(), static_cast<std::int64_t>(values.size() * sizeof(T)),
                 CopyDirection::host_to_device);
    queue_->synchronize();
  }
  /// Everything that was put, with what lies between the columns.
  template <class T>
  std::vector<T> get(MatrixView<T> a) {
    std::vector<T> values(static_cast<std::size_t>(a.ld * a.cols));
    queue_->copy(values.data(), a.data, static_cast<std::int64_t>(values.size() * sizeof(T)),
                 CopyDirection::device_to_host);
    queue_->synchronize();
    return values;
  }

 private:
  std::unique_ptr<Device> device_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace strata::test
