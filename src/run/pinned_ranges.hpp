#pragma once
// PinnedRanges: which host memory the queues of a set of devices copy at full speed.
//
// Contract: thread-safe. Ranges do not overlap. A copy may not reach from one range into the next,
// even where they touch: they were pinned apart.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace strata {

class PinnedRanges {
 public:
  struct Answer {
    bool pinned = false;
    std::int64_t bytes = 0;  ///< for so many bytes it is, in one range, or is not
  };

  void add(const std::byte* first, std::int64_t bytes);
  void remove(const std::byte* first);
  /// Whether the memory at `first` is pinned, and how far, within the next `bytes` bytes.
  [[nodiscard]] Answer at(const std::byte* first, std::int64_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  // first → behind the last
};

}  // namespace strata
