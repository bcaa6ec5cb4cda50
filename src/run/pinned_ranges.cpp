#include "run/pinned_ranges.hpp"

#include <algorithm>

namespace strata {

void PinnedRanges::add(const std::byte* first, std::int64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  const std::lock_guard lock(mutex_);
  ranges_[begin] = begin + static_cast<std::uintptr_t>(bytes);
}

void PinnedRanges::remove(const std::byte* first) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(reinterpret_cast<std::uintptr_t>(first));
}

PinnedRanges::Answer PinnedRanges::at(const std::byte* first, std::int64_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(bytes);
  const auto until = [&](std::uintptr_t stop) {
    return static_cast<std::int64_t>(std::min(stop, end) - begin);
  };
  const std::lock_guard lock(mutex_);
  const auto behind = ranges_.upper_bound(begin);
  if (behind != ranges_.begin()) {
    const auto& [range_first, range_end] = *std::prev(behind);
    if (begin < range_end) return {true, until(range_end)};
  }
  return {false, until(behind == ranges_.end() ? end : behind->first)};
}

}  // namespace strata
