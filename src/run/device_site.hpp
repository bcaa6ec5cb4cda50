#pragma once
// DeviceSite: a device that serves calls on matrices which lie in its memory already.
//
// Contract: a site is made when it is first needed and kept until the process ends, so that a call
// costs what its kernels cost: handles, workspaces and graphs are made on the first. Whoever holds
// the mutex has the site to himself, so calls for one device follow one another.

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "kernels/backend/backend.hpp"
#include "run/potrf_tuning.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

struct DeviceSite {
  const Backend* backend = nullptr;
  int index = 0;
  std::mutex mutex;
  std::unique_ptr<Device> device;  ///< with a budget of nothing: matrices are the caller's
  PotrfTuning tuning;
  Buffer statuses;  ///< pinned host memory, …
  Buffer entries;   ///< … kept from call to call
  std::unique_ptr<Queue> queue;

  /// How many queues fill the device, and one of them, which is made when it is first asked for; 0
  /// is `queue`.
  [[nodiscard]] int queues() const { return device->description().compute_queues; }
  [[nodiscard]] Queue& queue_at(int i);
  /// At least so many bytes of the device, aligned to 256, kept from call to call; what they held
  /// is lost when they have to grow. Throws Error{memory}. Only for who holds the mutex.
  [[nodiscard]] std::byte* work(std::int64_t bytes) { return work_.at_least(bytes, *this); }
  /// As that, in another place: for what one part of a call leaves to the next.
  [[nodiscard]] std::byte* kept(std::int64_t bytes) { return kept_.at_least(bytes, *this); }
  /// At least so many bytes of host memory that the queues of the device copy at full speed, kept
  /// and lost in the same way.
  [[nodiscard]] std::byte* staging(std::int64_t bytes);
  /// `count` values that the host and the device see, in one of the buffers above; kept from call
  /// to call, as page-locking is slow.
  template <class V>
  [[nodiscard]] V* shared_array(Buffer& memory, std::int64_t count) const {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(V));
    if (memory.bytes() < bytes) memory = device->allocate_host(bytes);
    V* first = reinterpret_cast<V*>(memory.data());
    std::uninitialized_fill_n(first, count, V{});
    return first;
  }

 private:
  struct Place {
    std::unique_ptr<Device> lender;  ///< with the buffer as its budget
    Buffer buffer;
    [[nodiscard]] std::byte* at_least(std::int64_t bytes, const DeviceSite& site);
  };
  Place work_;
  Place kept_;
  Buffer staging_;
  std::vector<std::unique_ptr<Queue>> further_;
};

/// A matrix that a caller says lies on a device.
struct PlacedMatrix {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t bytes = 0;  ///< from its first element to its last; 0: it has none
};

/// Throws Error{misuse}, in the name of `what`, if the leading dimension, the address or the size
/// of a matrix cannot be.
template <class T>
[[nodiscard]] PlacedMatrix placed(MatrixView<T> a, const char* what);

/// Throws Error{device}, in the name of `what`, if the backend has no such kernel.
[[nodiscard]] KernelFunction kernel_of(const Backend& backend, const Operation& operation,
                                       const Elements& elements, const char* what);

/// The device that `text` names ("auto": the one in whose memory the first matrix lies). Throws
/// Error{misuse} if a matrix is not in its memory or several devices are named, Error{device} if
/// there is no such device.
[[nodiscard]] DeviceSite& choose_site(const std::string& text,
                                      std::span<const PlacedMatrix> matrices, const char* what);

/// The same for matrices on a device each, whose backend is one: "auto" are those in whose memory
/// they lie; "cuda:0,1" has one for each matrix, in their order. A matrix without elements is on
/// any. Throws as choose_site(), and Error{misuse} if two are on one device.
[[nodiscard]] std::vector<DeviceSite*> choose_sites(const std::string& text,
                                                    std::span<const PlacedMatrix> matrices,
                                                    const char* what);

}  // namespace strata
